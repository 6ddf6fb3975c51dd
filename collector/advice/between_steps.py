"""What happens between steps: other steps and activities, and code that is in no span."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ..numbers import duration, percent, size
from ..summaries.kinds import FUNCTION_PREFIX, RUN_KIND_NAMES
from ..summaries.op_classes import PYTHON, WAITING
from ..summaries.parts import ASLEEP, BETWEEN, CODE_BETWEEN, FOR_CPU_BETWEEN, UNEXPLAINED, UNRECORDED, Breakdown
from .evidence import Evidence
from .interpreter import waiting_share
from .report import Report

#: Minimum number of steps, and of steps that take _LONG_NS together; minimum share of code between
#: them in the time from the start of a step to the next start; minimum time of that code (ns). The
#: interpreter alone takes less.
STEPS_MIN: Final = 20
LONG_STEPS_MIN: Final = 5
_LONG_NS: Final = 2_000_000_000
CODE_SHARE_MIN: Final = 0.3
_CODE_MIN_NS: Final = 200_000
#: Minimum share of that code in the job's CPU time on a busy host, where it waits for a CPU. The
#: second one is for jobs that write files other than checkpoints and summaries.
_CPU_SHARE_MIN: Final = 0.3
_CPU_SHARE_OF_WRITING_MIN: Final = 0.15
#: Minimum share by which waits for a CPU hide this code that is said.
_AWAKE_NOTE_MIN: Final = 0.05
#: Kinds of steps of Keras. Between two of them, a loop of Keras takes up to this time (ns), and a
#: call of train_on_batch up to this share of the time from step to step.
KERAS_KINDS: Final = frozenset({"batch", "test_batch", "predict_batch"})
_KERAS_LOOP_NS: Final = 5_000_000
_KERAS_CALL_SHARE: Final = 0.45
#: Minimum shares of other steps and activities in the time from step to step: of auxiliary ones,
#: and of steps of other kinds.
AUXILIARY_SHARE_MIN: Final = 0.1
OTHERS_SHARE_MIN: Final = 0.5
#: Share of the batches that have a call of predict of their own.
_SINGLE_SHARE: Final = 0.5
#: If one of several checkpoints, summaries or callbacks has this share of their time, it is named.
_MOST: Final = 0.8
#: Minimum number of bytes that are written for each step to be named.
_WRITTEN_MIN: Final = 1e6

_EVALUATE_LESS: Final = "evaluate less often or on fewer batches: validation_freq, validation_steps"
_PREDICT_LESS: Final = "predict less often, or many samples in one call"
#: First word of what takes the time between steps -> what to do about it.
_REMEDIES: Final = {
    "init": "initialize once, before the loop; each tf.global_variables_initializer() also adds ops to the graph",
    "checkpoint": "save every few minutes instead of every few steps; in TensorFlow 1 with write_meta_graph=False",
    "summary": "write summaries every N steps",
    "callback": "let the callback do its work every N batches, or at the end of an epoch",
    "evaluation": _EVALUATE_LESS,
    "predict": _PREDICT_LESS,
}
#: First words that several names may have -> their plural.
_PLURALS: Final = {
    "checkpoint": "checkpoints",
    "summary": "summaries",
    "callback": "callbacks",
    "mark": "marked spans",
    "part": "marked parts",
}
_REMEDY_WHILE_WRITING: Final = (
    "save checkpoints, logs and results less often, or in a thread of their own; if that is not it, see what the loop"
    " does between its steps (python -m cProfile)"
)
_REMEDY_WHILE_ASLEEP: Final = (
    "see what the loop waits for (faulthandler.dump_traceback_later prints the line): files, a network, another"
    " process, a lock, a sleep, or the next batch"
)
_LOOK: Final = "see what the loop does between its steps (python -m cProfile):"
_WORK: Final = (
    "preparation of batches, conversion of results, metrics, logging; do it less often, or in a thread of its own"
)
_REMEDY: Final = f"{_LOOK} {_WORK}"
_REMEDY_OF_FUNCTIONS: Final = (
    f"{_LOOK} ops and optimizer.apply_gradients(…) outside of the tf.function belong in it; otherwise {_WORK}"
)
#: `session.run` converts feeds before its step begins.
_REMEDY_OF_RUNS: Final = (
    f"{_LOOK} preparation of batches; session.run converts feeds that are lists, or arrays of another type than their"
    " placeholder, so feed arrays of its type; metrics, logging"
)


def check(evidence: Evidence) -> Sequence[Report]:
    """Report what takes the time between steps: steps, activities, and code that is in no span."""
    parts = evidence.breakdown
    if parts is None or not has_enough_steps(parts):
        return []
    return [*_recorded(parts), *_code(evidence, parts)]


def has_enough_steps(parts: Breakdown) -> bool:
    """Return whether there are so many steps, or such long ones, that their means say something."""
    is_long = parts.steps >= LONG_STEPS_MIN and parts.steps * parts.period_ns >= _LONG_NS
    return parts.period_ns > 0 and (parts.steps >= STEPS_MIN or is_long)


def awake_ns(parts: Breakdown) -> float:
    """Return the time from step to step in which their thread does not wait for a CPU (ns)."""
    return parts.period_ns - parts.queued_ns


def keras_ns(evidence: Evidence, parts: Breakdown) -> float:
    """Return the time between two steps that Keras itself may take (ns)."""
    if parts.kind not in KERAS_KINDS:
        return 0.0
    is_loop_of_keras = bool(evidence.epochs) or parts.kind != "batch"
    return _KERAS_LOOP_NS if is_loop_of_keras else _KERAS_CALL_SHARE * awake_ns(parts)


def has_single_calls(evidence: Evidence, parts: Breakdown) -> bool:
    """Return whether the steps are calls of predict that run about one batch each."""
    return parts.kind == "predict_batch" and evidence.predict_calls >= max(STEPS_MIN, _SINGLE_SHARE * parts.all_steps)


def _recorded(parts: Breakdown) -> Iterator[Report]:
    """Yield a report on the largest sort of steps or activities between the steps."""
    by_sort: defaultdict[str, float] = defaultdict(float)
    details = parts.detail_ns(BETWEEN)
    for name, ns in details.items():
        by_sort[name.split(" ")[0]] += ns
    shares = {
        sort: ns / parts.period_ns
        for sort, ns in by_sort.items()
        if ns / parts.period_ns >= (AUXILIARY_SHARE_MIN if sort in _REMEDIES else OTHERS_SHARE_MIN)
    }
    if not shares:
        return
    sort = max(shares, key=lambda name: shares[name])
    name, ns = max(((name, ns) for name, ns in details.items() if name.split(" ")[0] == sort), key=lambda pair: pair[1])
    what = name if " " in name or name in {"evaluation", "predict"} else f"{name} steps"
    verb, most = "take" if what.endswith("steps") else "takes", ""
    if ns < _MOST * by_sort[sort]:
        what, verb, most = _PLURALS.get(sort, f"{sort} steps"), "take", f", {duration(ns)} of it in {name}"
        ns = by_sort[sort]
    share = ns / parts.period_ns
    remedy = _REMEDIES.get(
        sort, f"most of the time can be saved in these steps: tfprof op JOB --kind {sort} shows their ops"
    )
    yield Report(
        f"{percent(share)} of the time is in {what} between the {parts.kind} steps: {duration(ns)} for each"
        f" {parts.kind} step{most}.",
        {"share": share, "kind": sort, "name": name, "ns_per_step": ns},
        saving=share,
        verdict=f"{what} {verb} place between the {parts.kind} steps",
        remedy=remedy,
    )


def _waits_of_code(evidence: Evidence, parts: Breakdown, python_ns: float, *, is_writing: bool) -> float:
    """Return how long code between the steps waits for a CPU, if it is much of the job's work.

    0 if it is not: a busy host prolongs any pause. So that code is judged by its CPU time.
    """
    waits_ns = parts.detail_ns(WAITING).get(FOR_CPU_BETWEEN, 0.0)
    share_min = _CPU_SHARE_OF_WRITING_MIN if is_writing else _CPU_SHARE_MIN
    cores = evidence.use.cores if evidence.use else 0.0
    is_much = cores > 0 and python_ns >= share_min * cores * parts.period_ns
    return waits_ns if is_much and python_ns + waits_ns >= CODE_SHARE_MIN * parts.period_ns else 0.0


class _Code(NamedTuple):
    """The code between the steps that is in no span: its times in a step, ns, by what it does.

    ``written_bytes``: what the job writes to files for each step, 0 if a part has what it writes.
    """

    python_ns: float
    asleep_ns: float
    unknown_ns: float
    written_bytes: float

    @property
    def total_ns(self) -> float:
        return self.python_ns + self.asleep_ns + self.unknown_ns

    @property
    def is_writing(self) -> bool:
        return self.written_bytes >= _WRITTEN_MIN


def _code_between(evidence: Evidence, parts: Breakdown) -> _Code:
    python_ns = parts.detail_ns(PYTHON).get(CODE_BETWEEN, 0.0)
    asleep_ns = parts.detail_ns(WAITING).get(ASLEEP, 0.0)
    unknown_ns = parts.detail_ns(UNEXPLAINED).get(UNRECORDED, 0.0)
    if waiting_share(evidence):  # the interpreter is what the thread waits for
        asleep_ns = unknown_ns = 0.0
    has_recorded_writes = any(name.startswith(("checkpoint", "summary")) for name in parts.detail_ns(BETWEEN))
    written_bytes = 0.0
    if evidence.use and not has_recorded_writes:
        written_bytes = evidence.use.written_bytes_per_s * parts.period_ns / 1e9
    return _Code(python_ns, asleep_ns, unknown_ns, written_bytes)


def _code(evidence: Evidence, parts: Breakdown) -> Iterator[Report]:
    """Yield a report on the code between the steps that is in no span."""
    code = _code_between(evidence, parts)
    if code.total_ns < keras_ns(evidence, parts) or has_single_calls(evidence, parts):
        return
    waits_ns = _waits_of_code(evidence, parts, code.python_ns, is_writing=code.is_writing)
    if (code.total_ns < CODE_SHARE_MIN * awake_ns(parts) and not waits_ns) or code.total_ns < _CODE_MIN_NS:
        return
    share = code.total_ns / parts.period_ns
    saving = max(code.total_ns / awake_ns(parts), (code.total_ns + waits_ns) / parts.period_ns)
    hidden = ""
    if waits_ns:
        hidden = f" With its waits for a CPU, that is {percent(saving)} of the time."
    elif saving - share >= _AWAKE_NOTE_MIN:
        hidden = f" That is {percent(saving)} of the time in which this thread does not wait for a CPU."
    clause, remedy, verdict = _texts(code, parts.kind)
    yield Report(
        f"{percent(share)} of the time goes by between steps, in code that is in no span: {duration(code.total_ns)} of"
        f" the {duration(parts.period_ns)} from the start of a step to that of the next.{clause}{hidden}",
        {
            "share": share,
            "between_ns": code.total_ns,
            "from_step_to_step_ns": parts.period_ns,
            "python_ns": code.python_ns,
            "asleep_ns": code.asleep_ns,
        },
        remedy,
        saving=saving,
        verdict=verdict,
    )


def _texts(code: _Code, kind: str) -> tuple[str, str, str]:
    """Return what the code does, what to do about it, and the verdict."""
    if code.is_writing:
        clause = f" The job writes {size(code.written_bytes)} of files for each step."
        return clause, _REMEDY_WHILE_WRITING, "the job writes files between its steps"
    if code.python_ns >= max(code.asleep_ns, code.unknown_ns):
        remedy = _REMEDY_OF_RUNS if kind in RUN_KIND_NAMES else _REMEDY
        if kind.startswith(FUNCTION_PREFIX):
            remedy = _REMEDY_OF_FUNCTIONS
        return " It is Python: the step's thread uses a CPU in it.", remedy, "Python code runs between the steps"
    if code.asleep_ns >= code.unknown_ns:
        clause = " The step's thread sleeps: it uses no CPU and waits for none."
        return clause, _REMEDY_WHILE_ASLEEP, "the job sleeps between its steps"
    return "", _REMEDY, ""
