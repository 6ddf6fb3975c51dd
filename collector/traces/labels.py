"""The labels of a job's slices: its nodes with op types and stacks, and its kinds of spans."""

from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa

from ..query.facts import GRAPH, STACKS
from ..query.job_selection import Selection
from ..query.profile import profile
from ..store.columns import flat, occurrences, pc
from ..store.devices import INPUT_DEVICES, can_be_canonical
from ..store.protocols import JobReader
from ..store.schema import DEVICE, NODE
from ..tfviews.encoding import octets
from ..tfviews.nodes import STREAM, device_names, interned_bytes, interned_texts
from ..tfviews.places import Places
from .model import INPUT, OP, OTHER, Label

#: The factor of the upper half of 64 bits.
_HIGH_WORD: Final = pa.scalar(1 << 32, pa.uint64())
#: Mask of the device in a packed number.
_DEVICES: Final = (1 << 31) - 1


class Labels:
    """The labels of one job by number; labels are added when they are first used.

    ``has_several_devices``: whether flows between devices are possible.
    """

    def __init__(self, job: JobReader, traces: pa.Table) -> None:
        """Read the nodes of ``job``; ``traces``: the traces whose executions get labels."""
        kinds = tuple(kind for kind, _ in occurrences(traces["kind"]))
        devices = set(device_names(job.table("names")).values())
        self.has_several_devices = sum(STREAM in name or can_be_canonical(octets(name)) for name in devices) > 1
        facts = frozenset({STACKS, GRAPH} if self.has_several_devices else {STACKS})
        job_profile = profile(Selection((job,), kinds=kinds), required_facts=facts, averaged=False) if kinds else None
        nodes = job_profile.nodes if job_profile else []
        self._nodes = {node.name: node for node in nodes}
        self._places = Places(nodes)
        self._numbers: dict[tuple[str, str], int] = {}  # by name and category
        self.all: list[Label] = []

    def inputs_of(self, name: str) -> Iterable[str]:
        """Return the names of the nodes whose outputs a node uses; none unless it is in a graph."""
        node = self._nodes.get(name)
        return dict.fromkeys(node.facts.inputs) if node else ()

    def number(self, label: Label) -> int:
        """Return the number of ``label``."""
        number = self._numbers.setdefault((label.op, label.category), len(self.all))
        if number == len(self.all):
            self.all.append(label)
        return number

    def of_executions(self, rows: pa.Table, names: pa.Table) -> Any:
        """Return the number of the label of each execution.

        ``rows`` and ``names`` are those of an `executions.Batch`. Each node, device and category is
        looked up once.
        """
        node, device, counted = (flat(rows[name]).cast(pa.uint64()) for name in ("node", "device", "counted"))
        packed = flat(pc.add(pc.multiply(node, _HIGH_WORD), pc.add(pc.add(device, device), counted)))
        encoded = packed.dictionary_encode()
        keys: list[int] = encoded.dictionary.to_pylist()
        texts, devices = interned_texts(names, NODE), interned_bytes(names, DEVICE)
        numbers = []
        for key in keys:
            name, on_device = texts[key >> 32], devices[key >> 1 & _DEVICES]
            is_op = key & 1 and name in self._nodes  # the views leave out some names
            category = OP if is_op else INPUT if on_device in INPUT_DEVICES else OTHER
            numbers.append(self._executed(name, category))
        return pa.array(numbers, pa.uint32()).take(encoded.indices)

    def _executed(self, name: str, category: str) -> int:
        """Return the number of the label of executions of a node."""
        number = self._numbers.get((name, category))
        return self._add(name, category) if number is None else number

    def _add(self, name: str, category: str) -> int:
        node = self._nodes.get(name)
        stack, line = ((self._places.stack(node) or ()), self._places.line(node)) if node else ((), "")
        self._numbers[name, category] = len(self.all)
        self.all.append(Label(node.op if node else name, category, name, line, stack))
        return len(self.all) - 1
