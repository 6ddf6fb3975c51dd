"""The table `executions`: each execution of the selected traced steps."""

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from ..query.job_selection import Selection
from ..store.columns import flat, pc
from ..store.schema import DEVICE
from ..tfviews.nodes import interned_texts
from ..traces.chosen import chosen_traces
from ..traces.executions import batches
from ..traces.labels import Labels
from .columns import EXECUTIONS
from .parts import table_of_columns, texts
from .spans import kind_names

_LABELS: Final = ("node", "op", "category", "line")


def executions(selection: Selection) -> Iterator[pa.Table]:
    """Yield the executions in order of their steps."""
    for chosen in chosen_traces(selection):
        job, traces = chosen.job, chosen.traces
        labels = Labels(job, traces)
        kinds = texts(kind_names(job, traces))
        for rows, names in batches(job, traces, chosen.devices):
            at = pc.index_in(flat(rows["trace"]), value_set=flat(traces["trace"]))
            numbers = labels.of_executions(rows, names)
            columns = {name: texts(getattr(label, name) for label in labels.all).take(numbers) for name in _LABELS}
            yield table_of_columns(
                job,
                {name: rows[name] for name in rows.column_names}
                | columns
                | {"kind": kinds.take(at), "step": flat(traces["step"]).take(at), "device": _devices(rows, names)},
                rows.num_rows,
                EXECUTIONS,
            )


def _devices(rows: pa.Table, names: pa.Table) -> Any:
    device_names = interned_texts(names, DEVICE)
    return texts(device_names.get(number, "") for number in range(max(device_names, default=-1) + 1)).take(
        flat(rows["device"])
    )
