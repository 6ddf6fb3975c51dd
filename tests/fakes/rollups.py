"""Computes rollups and canonical devices with the code of the collector."""

from typing import Any

import pyarrow as pa
from tfprof.collector.store.devices import Devices
from tfprof.collector.store.rollup import canonical_after, rollup_of, sorted_by_node


def rollup(ops: pa.Table, traces: pa.Table, names: pa.Table, canonical: Any) -> tuple[pa.Table, Any]:
    """Return the ROLLUP of ``ops`` and the new canonical devices; ``canonical``: the old ones."""
    devices = Devices(names)
    canonical = canonical_after(ops, devices, canonical)
    return rollup_of(sorted_by_node(ops, devices), traces, devices, canonical), canonical
