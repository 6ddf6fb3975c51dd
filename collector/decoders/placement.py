"""CPU placement of a job's nodes, from its graphs: profiler sessions do not record it."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

#: A CPU of this process other than its first, on which all nodes run that are placed nowhere else.
_FURTHER_CPU: Final = r"^/job:localhost/replica:0/task:0/device:CPU:[1-9][0-9]*$"
#: So many nodes of a job are known; a graph that places more has them on the first CPU.
_MOST: Final = 1 << 17


class Placement:
    """The nodes of a job's graphs that are placed on a CPU other than the first, and that CPU."""

    def __init__(self) -> None:
        """Know of none."""
        self._devices: dict[bytes, bytes] = {}

    def learn(self, nodes: pa.Table | pa.RecordBatch) -> None:
        """Take in rows of GRAPH_NODES, or their names and devices."""
        placed = nodes.select(["name", "device"])
        placed = placed.filter(pc.match_substring_regex(placed["device"].cast(pa.string()), _FURTHER_CPU))
        for row in placed.slice(0, max(0, _MOST - len(self._devices))).to_pylist():
            self._devices[_bytes(row["name"])] = _bytes(row["device"])

    def of(self, node: bytes, otherwise: bytes) -> bytes:
        """Return the CPU that ``node`` is placed on; ``otherwise`` where no graph says."""
        return self._devices.get(node, otherwise)


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text
