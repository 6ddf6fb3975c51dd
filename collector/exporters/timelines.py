"""What the exporters of timelines share: the choice of the steps, and the order of the parts."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ..errors import StoreError
from ..query.explanations import untraced_reason
from ..traces.chosen import SLICES_MAX
from ..traces.model import Curve
from ..traces.trace import Trace
from .request import Request


def trace_of(request: Request) -> Trace:
    """Return the trace of the request's jobs, with a note if steps are left out.

    Steps are left out only if none are selected. StoreError ``no-data`` if there is nothing at all.
    """
    selection = request.selection
    is_limited = selection.steps is None and not request.all_steps
    trace = Trace(selection, SLICES_MAX if is_limited else None)
    if trace.left_out:
        request.notes.append(
            f"the last {trace.steps} of {trace.steps + trace.left_out} traced steps; --steps all writes all"
        )
    if trace.is_empty:
        raise StoreError(untraced_reason(selection.jobs[0]), slug="no-data")
    return trace


def written(trace: Trace, writers: Mapping[type[Any], Callable[[Any], Iterable[bytes]]]) -> Iterator[bytes]:
    """Yield the output of ``writers`` for the parts of ``trace``.

    ``writers`` maps the type of a part to its writer. Parts without a writer are left out.
    """
    for part in trace.parts(with_curves=Curve in writers):
        if type(part) in writers:
            yield from writers[type(part)](part)
