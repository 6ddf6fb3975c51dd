"""What traces recorded of nodes' outputs, read from a store: no more of it than tells one step from another."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from ..flops.executed import EquivalentSteps, Row, Sample
from ..store.columns import pc
from ..store.devices import is_canonical
from ..store.reader import Ask
from ..store.schema import DEVICE, LABEL, NODE, NONE_ID, OUTPUTS
from ..tfviews.nodes import raw, texts

#: Traces whose rows are read at once; traces that are looked at for one execution of each node.
_AT_ONCE: Final = 256
_SAMPLED: Final = 64


class Recorder:
    """Reads what some traces of a job recorded."""

    def __init__(self, ask: Ask, names: pa.Table, traces: pa.Table, chosen: Sequence[int] | None) -> None:
        """``traces``: all of the job; ``chosen``: the numbers of those that are asked for, None for all."""
        self._ask = ask
        self._traces = traces
        self._chosen = chosen
        self._node_names = texts(names, NODE)
        self._nodes = {name: number for number, name in self._node_names.items()}
        self._labels = texts(names, LABEL)
        self._signatures = raw(names, OUTPUTS)
        devices = {number: is_canonical(text.lower()) for number, text in raw(names, DEVICE).items()}
        self._devices = None if all(devices.values()) else [number for number, own in devices.items() if own]

    def name(self, number: int) -> str:
        """Return the name of a node."""
        return self._node_names.get(number, "")

    def ran(self, rollup: pa.Table) -> list[str]:
        """Return the nodes that ran in the traces of ``rollup``."""
        here = pc.and_(pc.not_equal(rollup["device"], NONE_ID), pc.greater(rollup["runs"], 0))
        numbers: list[Any] = pc.unique(rollup.filter(here)["node"]).to_pylist()
        return list(map(self.name, numbers))

    def alike(self, varying: Collection[str], sized: Collection[str]) -> Iterator[EquivalentSteps]:
        """Yield the kinds of traces that there are, as far as nodes in ``varying`` go; ``sized``: whose output bytes tell.

        Nothing where no such node ran.
        """
        where = self._where(varying)
        if where is None:
            return
        size = f"CASE WHEN {self._among(sized)} THEN output_bytes ELSE 0 END" if sized else ""
        found = self._ask(f"""
            SELECT min(trace) AS trace, count(*) AS traces
            FROM (SELECT trace, sum(hash({", ".join(filter(None, ("node", "outputs", size)))})) AS kind FROM ops WHERE {where} GROUP BY trace)
            GROUP BY kind ORDER BY trace""")  # noqa: S608  # numbers and names of ours
        kinds = dict(_rows(found, "trace", "traces"))
        numbers = list(kinds)
        for at in range(0, len(numbers), _AT_ONCE):
            rows = self._of_traces(numbers[at : at + _AT_ONCE], where, size)
            orders = self._orders(rows, where)
            for number in numbers[at : at + _AT_ONCE]:
                yield EquivalentSteps(kinds[number], rows[number], orders.get(number, {}))

    def _orders(self, rows: Mapping[int, Sequence[Row]], where: str) -> dict[int, dict[str, list[bytes]]]:
        """Return by trace the output signatures of the executions of each node with several, as they began."""
        several = {
            trace: {name for name, count in Counter(row.node for row in found).items() if count > 1}
            for trace, found in rows.items()
        }
        traces = [trace for trace, names in several.items() if names]
        if not traces:
            return {}
        among = self._among(set().union(*several.values()))
        found = self._ask(f"""
            SELECT trace, node, outputs FROM ops WHERE trace IN ({_listed(traces)}) AND {where} AND {among}
            ORDER BY trace, node, start_ns""")  # noqa: S608  # numbers and names of ours
        orders: dict[int, dict[str, list[bytes]]] = {}
        for trace, node, outputs in _rows(found, "trace", "node", "outputs"):
            name = self.name(node)
            if name in several[trace]:
                orders.setdefault(trace, {}).setdefault(name, []).append(self._signatures.get(outputs, b""))
        return orders

    def _of_traces(self, traces: Sequence[int], where: str, size: str) -> Mapping[int, list[Row]]:
        found = self._ask(f"""
            SELECT trace, node, outputs, {f"max({size})" if size else 0} AS size, count(*) AS runs FROM ops
            WHERE trace IN ({_listed(traces)}) AND {where}
            GROUP BY trace, node, outputs ORDER BY trace, node, outputs""")  # noqa: S608
        rows: dict[int, list[Row]] = {trace: [] for trace in traces}
        for trace, node, outputs, bytes_, runs in _rows(found, "trace", "node", "outputs", "size", "runs"):
            rows[trace].append(Row(self.name(node), self._signatures.get(outputs, b""), bytes_, runs))
        return rows

    def samples(self, ran: Iterable[str]) -> dict[str, Sample]:
        """Return one execution of each node in ``ran``: of the first traces of every kind of run, else of whichever."""
        wanted, first = set(ran), self._first_traces()
        found = self._samples(wanted, f"trace IN ({_listed(first)})") if first else {}
        missing = wanted - found.keys()
        return found | self._samples(missing) if missing else found

    def _first_traces(self) -> list[int]:
        chosen = None if self._chosen is None else frozenset(self._chosen)
        kinds: dict[Any, int] = {}
        for trace, *kind in _rows(self._traces, "trace", "source", "kind", "key"):
            if chosen is None or trace in chosen:
                kinds.setdefault(tuple(kind), trace)
        return list(kinds.values())[:_SAMPLED]

    def _samples(self, wanted: Collection[str], traces: str = "true") -> dict[str, Sample]:
        where = self._where(wanted)
        if where is None:
            return {}
        found = self._ask(f"""
            SELECT node, min(outputs) AS outputs, arg_min(label, outputs) AS label FROM ops
            WHERE {traces} AND {where} GROUP BY node""")  # noqa: S608
        return {
            self.name(node): Sample(self._labels.get(label, ""), self._signatures.get(outputs, b""))
            for node, outputs, label in _rows(found, "node", "outputs", "label")
        }

    def first(self, names: Collection[str], *, early: bool = False) -> Iterator[tuple[str, bytes]]:
        """Yield the output signatures of nodes, in the order in which the job's traces have them first; ``early``: few traces."""
        where = self._where(names, chosen=False)
        if where is None:
            return
        if early:
            where += f" AND trace < {_SAMPLED}"
        found = self._ask(f"""
            SELECT node, outputs, min(trace) AS trace FROM ops WHERE {where} AND outputs <> {NONE_ID}
            GROUP BY node, outputs ORDER BY trace, node, outputs""")  # noqa: S608
        by_node: dict[int, list[tuple[int, int]]] = {}
        for node, outputs, trace in _rows(found, "node", "outputs", "trace"):
            by_node.setdefault(node, []).append((trace, outputs))
        for node, seen in by_node.items():
            several = len(seen) > 1 and seen[0][0] == seen[1][0]
            for outputs in self._in_trace(node, seen[0][0]) if several else ():
                yield self.name(node), self._signatures.get(outputs, b"")
            for _, outputs in seen:
                yield self.name(node), self._signatures.get(outputs, b"")

    def _in_trace(self, node: int, trace: int) -> Iterable[int]:
        """Return the output signatures of a node's executions in one trace as they ended."""
        found = self._ask(f"SELECT outputs FROM ops WHERE trace = {trace} AND node = {node}")  # noqa: S608
        return dict.fromkeys(outputs for (outputs,) in _rows(found, "outputs"))

    def _where(self, names: Collection[str], *, chosen: bool = True) -> str | None:
        """Return the condition that rows are of ``names``, on CPUs and GPUs, in the traces asked for; None where nothing is."""
        if not any(name in self._nodes for name in names):
            return None
        conditions = [self._among(names)]
        if chosen and self._devices is not None:
            conditions.append(f"device IN ({_listed(self._devices)})" if self._devices else "false")
        if chosen and self._chosen is not None:
            conditions.append(_within(self._chosen))
        return " AND ".join(conditions)

    def _among(self, names: Collection[str]) -> str:
        """Return the condition that a row is of ``names``: by one bit a node, since a list takes twice as long."""
        numbers = {self._nodes[name] for name in names if name in self._nodes}
        if len(numbers) == len(self._node_names):
            return "true"
        return _bit("node", numbers, max(self._node_names))


def _within(traces: Sequence[int]) -> str:
    """Return the condition that a row is of ``traces``, in ascending order."""
    if not traces:
        return "false"
    span = f"trace BETWEEN {traces[0]} AND {traces[-1]}"
    return span if len(traces) == traces[-1] - traces[0] + 1 else f"{span} AND {_bit('trace', traces, traces[-1])}"


def _bit(column: str, numbers: Iterable[int], highest: int) -> str:
    """Return the condition that a column is one of ``numbers``: what is above ``highest`` finds the bits of lower ones."""
    size = 1 << highest.bit_length()
    bits = bytearray(b"0" * size)
    for number in numbers:
        bits[number] = ord("1")
    return f"get_bit('{bits.decode()}'::BIT, ({column} & {size - 1})::INT) = 1"


def _listed(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


def _rows(table: pa.Table, *names: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of some columns."""
    columns: list[list[Any]] = [table[name].to_pylist() for name in names]
    return zip(*columns, strict=True)
