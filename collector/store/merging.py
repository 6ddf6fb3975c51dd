"""Merges rollups."""

from typing import Any, Final

import pyarrow as pa

from .aggregation import RESULTS
from .columns import changes, constant, flat, pc, run_sums
from .node_keys import device_of, node_of, pack
from .schema import NONE_ID, ROLLUP

_NO_DEVICE: Final = constant(NONE_ID, pa.uint32())


def merge(*rollups: pa.Table) -> pa.Table:
    """Return the merged ROLLUP of ``rollups``, oldest first; their traces must be disjoint."""
    parts = [rollup for rollup in rollups if rollup.num_rows]
    if len(parts) < 2:
        return parts[0] if parts else ROLLUP.empty_table()
    table = pa.concat_tables(parts)
    key = pack(flat(table["node"]), flat(table["device"]))
    order = pc.array_sort_indices(key)
    sorted_key = key.take(order)
    is_start = changes(sorted_key)
    run_starts, keys = pc.indices_nonzero(is_start), sorted_key.filter(is_start)
    columns: dict[str, Any] = {name: run_sums(flat(table[name]).take(order), run_starts) for name in RESULTS}
    columns |= {"node": node_of(keys), "device": device_of(keys)}
    columns["canonical"] = _oldest_canonical(flat(table["canonical"]), key, keys)
    return pa.table({name: columns[name] for name in ROLLUP.names}, schema=ROLLUP)


def with_canonical(rollup: pa.Table, canonical: Any) -> pa.Table:
    """Return ``rollup`` with ``canonical``, the final canonical devices by node id.

    A node may get its canonical device in a later generation.
    """
    is_node_row = pc.equal(flat(rollup["device"]), _NO_DEVICE)
    column = pc.if_else(is_node_row, canonical.take(flat(rollup["node"])), _NO_DEVICE)
    return rollup.set_column(rollup.column_names.index("canonical"), rollup.schema.field("canonical"), column)


def _oldest_canonical(canonical: Any, key: Any, keys: Any) -> Any:
    """Return the first device in ``canonical`` for each of ``keys``, NONE_ID for a key without one.

    ``key``: the key of each element of ``canonical``.
    """
    is_known = pc.not_equal(canonical, _NO_DEVICE)
    devices = canonical.filter(is_known).take(pc.index_in(keys, value_set=key.filter(is_known)))
    return pc.fill_null(devices, _NO_DEVICE)
