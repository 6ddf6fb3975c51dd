"""Placement of a job's nodes on CPUs, from its graphs; profiler sessions do not record it."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from .session_ops import HOST_DEVICE

#: A CPU of the job's process other than the first one; unplaced nodes run on the first. In the
#: graph of a function, the name of a device has only the parts that the job gave.
_FURTHER_CPU: Final = r"^(?:/job:localhost)?(?:/replica:0)?(?:/task:0)?/device:CPU:[1-9][0-9]*$"
#: Beginnings of the names of devices: those of any process, and those of the job's own.
_ANY_PROCESS, _OWN_PROCESS = "/job:", "/job:localhost/"
#: Maximum number of stored nodes; further nodes count as placed on the first CPU.
_NODES_MAX: Final = 1 << 17


class Placement:
    """The CPUs of the nodes in a job's graphs; nodes on the first CPU are not stored."""

    def __init__(self) -> None:
        """Start without nodes."""
        self._devices: dict[bytes, bytes] = {}
        #: whether a node is placed on a device of another process
        self.has_remote_nodes = False

    def add_nodes(self, nodes: pa.Table | pa.RecordBatch) -> None:
        """Add rows of GRAPH_NODES, or their names and devices."""
        placed_nodes = nodes.select(["name", "device"])
        devices = placed_nodes["device"].cast(pa.string())
        is_remote = pc.and_not(pc.starts_with(devices, _ANY_PROCESS), pc.starts_with(devices, _OWN_PROCESS))
        self.has_remote_nodes |= bool(pc.any(is_remote).as_py())
        placed_nodes = placed_nodes.filter(pc.match_substring_regex(devices, _FURTHER_CPU))
        for row in placed_nodes.slice(0, max(0, _NODES_MAX - len(self._devices))).to_pylist():
            self._devices[_bytes(row["name"])] = HOST_DEVICE[:-1] + _bytes(row["device"]).rpartition(b":")[2]

    def device_of(self, node: bytes, default: bytes) -> bytes:
        """Return the CPU of ``node``, ``default`` if the node is not stored."""
        return self._devices.get(node, default)


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text
