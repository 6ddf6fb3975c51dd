"""The documents of the page: what the commands print with `--json`, byte by byte."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ..collector.documents import text
from ..collector.documents.advice import advice_document
from ..collector.documents.alerts import alerts_document
from ..collector.documents.breakdown import breakdown_document
from ..collector.documents.comparison import diff_document
from ..collector.documents.compiled import compiled_document
from ..collector.documents.curves import curves_document
from ..collector.documents.host import host_document
from ..collector.documents.jobs import jobs_document
from ..collector.documents.memory import memory_document
from ..collector.documents.overview import show_document
from ..collector.documents.source import source_document
from ..collector.documents.spans import spans_document
from ..collector.documents.steps import steps_document
from ..collector.documents.view import view_document
from ..collector.errors import UsageError
from ..collector.query import advising, own_layout
from ..collector.query.alerts import alerts_of, all_alerts
from ..collector.query.breakdown import breakdowns
from ..collector.query.compiled import compiled
from ..collector.query.curves import job_curves
from ..collector.query.diffing import diff
from ..collector.query.engine import QueryEngine
from ..collector.query.job_selection import Selection
from ..collector.query.job_source import job_source
from ..collector.query.job_steps import StepSelection, job_spans, job_steps
from ..collector.query.job_usage import job_usage
from ..collector.query.listing import job_listing
from ..collector.query.memory import job_memory
from ..collector.query.overview import overview
from ..collector.store.protocols import JobReader, StoreReader
from ..collector.summaries.kinds import parse_kinds, parse_steps
from ..collector.tfviews.options import from_texts
from ..collector.tfviews.parity import Parity

Parameters = Mapping[str, str]
#: Number of steps that `tfprof steps` lists by default.
_LISTED_STEPS: Final = 10
_VIEW_OPTIONS: Final = ("max_depth", "min_micros", "order_by", "show_name_regexes", "step")


class Document(NamedTuple):
    """How a document is made.

    ``make`` gets the store, the jobs and the parameters. ``jobs``: the number of jobs;
    ``parameters``: the names that it takes.
    """

    make: Callable[[StoreReader, Sequence[JobReader], Parameters], Mapping[str, Any]]
    jobs: int = 1
    parameters: tuple[str, ...] = ()


def document(store: StoreReader, name: str, jobs: Sequence[str], parameters: Parameters) -> Mapping[str, Any]:
    """Return the document ``name`` about ``jobs``.

    UsageError if a parameter is unknown or wrong; otherwise the errors of the command.
    """
    row = DOCUMENTS[name]
    unknown = [parameter for parameter in parameters if parameter not in row.parameters]
    if unknown:
        raise UsageError(f"no such parameter: {unknown[0]}")
    return row.make(store, [store.job(job) for job in jobs], parameters)


def pieces(store: StoreReader, name: str, jobs: Sequence[str], parameters: Parameters) -> Iterator[str]:
    """Yield the text of a document; the errors are those of `document`."""
    return text.pieces(document(store, name, jobs, parameters))


def _alerts(store: StoreReader, jobs: Sequence[JobReader], _parameters: Parameters) -> Mapping[str, Any]:
    return alerts_document(alerts_of(jobs) if jobs else all_alerts(store)[0])


def _view(name: str) -> Document:
    def make(_store: StoreReader, jobs: Sequence[JobReader], parameters: Parameters) -> Mapping[str, Any]:
        selection = Selection(
            tuple(jobs),
            parse_steps(parameters.get("steps")),
            parameters.get("device"),
            kinds=parse_kinds(parameters["kind"]) if "kind" in parameters else None,
        )
        texts = {option: parameters[option] for option in _VIEW_OPTIONS if option in parameters}
        options = from_texts(texts, parity=Parity())
        return view_document(own_layout.ask(QueryEngine(), selection, name, options, is_complete=True))

    return Document(make, 1, ("steps", "device", "kind", *_VIEW_OPTIONS))


#: All documents by the name of their command.
DOCUMENTS: Final = {
    "jobs": Document(lambda store, _jobs, _: jobs_document(job_listing(store, time.time_ns())), 0),
    "show": Document(lambda _store, jobs, _: show_document(overview(jobs[0]))),
    "breakdown": Document(lambda _store, jobs, _: breakdown_document(breakdowns(jobs[0]))),
    "curves": Document(lambda _store, jobs, _: curves_document(job_curves(jobs[0]))),
    "steps": Document(lambda _store, jobs, _: steps_document(job_steps(jobs[0], StepSelection(_LISTED_STEPS)))),
    "spans": Document(lambda _store, jobs, _: spans_document(job_spans(jobs[0]))),
    "host": Document(lambda _store, jobs, _: host_document(job_usage(jobs[0]))),
    "memory": Document(lambda _store, jobs, _: memory_document(job_memory(jobs[0]))),
    "alerts": Document(_alerts),
    "advise": Document(lambda _store, jobs, _: advice_document(advising.advise(Selection((jobs[0],))))),
    "compiled": Document(lambda _store, jobs, _: compiled_document(compiled(jobs[0]))),
    "op": _view("op"),
    "scope": _view("scope"),
    "code": _view("code"),
    "source": Document(lambda _store, jobs, _: source_document(job_source(jobs[0]))),
    "diff": Document(lambda _store, jobs, _: diff_document(diff([jobs[0]], [jobs[1]], time.time_ns())), 2),
}
