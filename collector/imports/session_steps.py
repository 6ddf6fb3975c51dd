"""Divides a profiler session into steps: TensorFlow records several in one XSpace."""

import zlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from ...formats import layout
from ..decoders.columns import saturated
from ..decoders.session_ops import Execution, Marker
from ..ingest.parsing import TracedStep
from ..summaries.op_classes import WAITING_OPS

#: Names of kinds, as tfprof itself writes them beside its markers.
_KINDS: Final = {name: kind for kind, name in layout.SPAN_NAMES.items() if kind in layout.STEP_KINDS}
#: Beginnings of the names of markers in TensorFlow and Keras.
_PREFIXES: Final = {"train": layout.BATCH, "test": layout.TEST_BATCH, "predict": layout.PREDICT_BATCH}
_FUNCTION_PREFIX: Final = f"{layout.SPAN_NAMES[layout.FUNCTION]}:"
_NUMBER_MAX: Final = 1 << 63
#: Maximum number of steps that are going on at the same time, on different threads.
_OVERLAPPING_MAX: Final = 16


class SessionStep(NamedTuple):
    """A step with its executions; ``function``: the name of the function that it calls, or ''."""

    step: TracedStep
    function: str
    ops: Sequence[Execution]


def session_steps(markers: Sequence[Marker], ops: Sequence[Execution]) -> list[SessionStep]:
    """Return the steps of a session in order of time.

    These are the marked steps. If no step is marked, the calls of functions are the steps. If there
    are no calls either, the whole session is one run. Executions between two steps belong to the
    second step, since the input of a step is read before it. Executions after the last step belong
    to the last step. Executions before the first step are an initialization, except for waits for
    input.
    """
    marked = [marker for marker in markers if marker.number is not None] or list(markers) or _whole(ops)
    marked.sort(key=lambda marker: (marker.start_ns, -marker.duration_ns))
    steps = _numbered(marked)
    starts = [step.start_ns for step, _ in steps]
    ends = [step.start_ns + step.duration_ns for step, _ in steps]
    before: list[Execution] = []
    of_step: list[list[Execution]] = [[] for _ in steps]
    for op in ops:
        if op.start_ns < starts[0] and op.label.decode(errors="replace") not in WAITING_OPS:
            before.append(op)
        else:
            of_step[_step_of(op.start_ns, starts, ends)].append(op)
    return [
        *([_initialization(before, starts[0])] if before else []),
        *(SessionStep(step, function, ops) for (step, function), ops in zip(steps, of_step, strict=True)),
    ]


def _initialization(ops: Sequence[Execution], end_ns: int) -> SessionStep:
    start_ns = min(op.start_ns for op in ops)
    times = saturated(start_ns), saturated(end_ns - start_ns)
    return SessionStep(TracedStep(layout.INIT, 1, 0, 0, *times), "", ops)


def _step_of(time_ns: int, starts: Sequence[int], ends: Sequence[int]) -> int:
    """Return the number of the last step that contains ``time_ns``, or else of the next step."""
    last = bisect_right(starts, time_ns) - 1
    for number in range(last, max(last - _OVERLAPPING_MAX, -1), -1):
        if time_ns < ends[number]:
            return number
    return min(last + 1, len(starts) - 1)


def _whole(ops: Sequence[Execution]) -> list[Marker]:
    start_ns = min((op.start_ns for op in ops), default=0)
    end_ns = max((op.start_ns + op.own_ns for op in ops), default=start_ns)
    return [Marker(layout.SPAN_NAMES[layout.RUN].encode(), b"run", 0, 0, start_ns, end_ns - start_ns)]


def _numbered(markers: Sequence[Marker]) -> list[tuple[TracedStep, str]]:
    """Return the step of each marker, and the name of its function.

    The numbers are those of the markers. If these are not unique within a kind, steps are numbered
    from 1.
    """
    kinds = [_kind(marker) for marker in markers]
    given = Counter((kind, marker.number) for kind, marker in zip(kinds, markers, strict=True))
    renumbered = {
        kind for (kind, number), times in given.items() if number is None or times > 1 or not 0 <= number < _NUMBER_MAX
    }
    counts: Counter[tuple[int, str]] = Counter()
    steps = []
    for (kind, function), marker in zip(kinds, markers, strict=True):
        counts[kind, function] += 1
        number = counts[kind, function] if (kind, function) in renumbered else marker.number or 0
        key = zlib.crc32(function.encode("utf-8", "surrogateescape")) if function else 0
        times = saturated(marker.start_ns), saturated(marker.duration_ns)
        steps.append((TracedStep(kind, number, key, marker.thread, *times), function))
    return steps


def _kind(marker: Marker) -> tuple[int, str]:
    """Return the kind of a step and, if it is a function, its name."""
    name, title = (text.decode("utf-8", "surrogateescape") for text in (marker.name, marker.title))
    if marker.number is not None:
        if title in _KINDS:
            return _KINDS[title], ""
        if title.startswith(_FUNCTION_PREFIX):
            return layout.FUNCTION, title.removeprefix(_FUNCTION_PREFIX)
        for prefix, kind in _PREFIXES.items():
            if name.startswith(prefix):
                return kind, ""
    return layout.FUNCTION, name
