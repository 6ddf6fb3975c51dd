"""The tables `steps` and `spans`: the steps and phases as the job timed them."""

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from ...formats import layout, span_kinds
from ..query.engine import Selection
from ..store.columns import pc, row_tuples
from ..store.protocols import JobReader
from ..summaries.jobs import functions_of
from ..summaries.kinds import kind_name, step_kind_of
from .columns import FLAGS, SPANS
from .parts import table_of_columns, texts

_FLAG_BITS: Final = (layout.FLAG_TRACED, layout.FLAG_FAILED, layout.FLAG_SETUP, layout.FLAG_SAMPLED)


def steps(selection: Selection) -> Iterator[pa.Table]:
    """Yield the steps of each job."""
    return _of_kinds(selection, frozenset(span_kinds.steps()))


def spans(selection: Selection) -> Iterator[pa.Table]:
    """Yield the steps and phases of each job."""
    return _of_kinds(selection, frozenset(span_kinds.KINDS))


def kind_names(job: JobReader, rows: pa.Table) -> list[str]:
    """Return the name of the kind of each trace or span in ``rows`` (columns kind and key)."""
    functions = functions_of(job.info)
    return [kind_name(step_kind_of(kind, key), functions) for kind, key in row_tuples(rows, "kind", "key")]


def _of_kinds(selection: Selection, kinds: frozenset[int]) -> Iterator[pa.Table]:
    for job in selection.jobs:
        rows = job.table("spans")
        rows = rows.filter(pc.is_in(rows["kind"], value_set=pa.array(kinds, pa.uint16())))
        flags = {name: _has_flag(rows, bit) for name, bit in zip(FLAGS, _FLAG_BITS, strict=True)}
        columns = {name: rows[name] for name in rows.column_names} | flags
        columns |= {"kind": texts(kind_names(job, rows)), "number": rows["ordinal"]}
        yield table_of_columns(job, columns, rows.num_rows, SPANS)


def _has_flag(rows: pa.Table, bit: int) -> Any:
    bits = pc.bit_wise_and(rows["flags"], pa.scalar(bit, pa.uint16()))
    return pc.not_equal(bits, pa.scalar(0, pa.uint16()))
