"""The tables `steps` and `spans`: the steps and phases as the job timed them."""

from collections.abc import Collection, Iterator

import pyarrow as pa

from ...formats import span_kinds
from ..query.job_selection import Selection
from ..store.columns import flagged, row_tuples
from ..store.protocols import JobReader
from ..summaries.jobs import functions_of
from ..summaries.kinds import kind_name, step_kind_of
from ..summaries.steps import rows_of_kinds
from .columns import FLAGS, SPANS
from .parts import table_of_columns, texts


def steps(selection: Selection) -> Iterator[pa.Table]:
    """Yield the steps of each job."""
    return _of_kinds(selection, span_kinds.steps())


def spans(selection: Selection) -> Iterator[pa.Table]:
    """Yield the steps and phases of each job."""
    return _of_kinds(selection, span_kinds.KINDS)


def kind_names(job: JobReader, rows: pa.Table) -> list[str]:
    """Return the name of the kind of each trace or span in ``rows`` (columns kind and key)."""
    functions = functions_of(job.info)
    return [kind_name(step_kind_of(kind, key), functions) for kind, key in row_tuples(rows, "kind", "key")]


def _of_kinds(selection: Selection, kinds: Collection[int]) -> Iterator[pa.Table]:
    for job in selection.jobs:
        rows = rows_of_kinds(job.table("spans"), kinds)
        flags = {name: flagged(rows, flag) for name, flag in FLAGS.items()}
        columns = {name: rows[name] for name in rows.column_names} | flags
        columns |= {"kind": texts(kind_names(job, rows)), "number": rows["ordinal"]}
        yield table_of_columns(job, columns, rows.num_rows, SPANS)
