"""Decodes a job's records into rows of its tables."""

from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any, ClassVar, Final, NamedTuple

import pyarrow as pa

from ...formats import layout
from ..decoders.compiled import program_rows
from ..decoders.decode import Decoder
from ..decoders.frames import frames
from ..decoders.graphdef import graph_nodes
from ..decoders.interner import Interner, Mark
from ..decoders.placement import Placement
from ..decoders.xspace import xspace
from ..errors import FormatError
from ..records import Record, document
from ..store.columns import as_table, column_list
from .empty_steps import SLUG, EmptySteps, event_text
from .parsing import (
    Event,
    Trace,
    event_of,
    event_rows,
    graph_number,
    profiled_step,
    step_of,
    trace_of,
    trace_rows,
)

#: Estimated decoding times (seconds): per byte of a RunMetadata if the C decoder is used; in all
#: other cases, per record and per byte.
_QUICK_BYTE_S: Final = 3e-9
_RECORD_S: Final = 0.2e-3
_BYTE_S: Final = 0.5e-6
#: Slug of the events of undecodable records, which count as lost.
UNDECODABLE: Final = "undecodable"
DecodedTables = Mapping[str, pa.Table]


class MakerMark(NamedTuple):
    """The state of a RowMaker at some time."""

    names: Mark
    next_trace: int
    empty_steps: EmptySteps
    modules: frozenset[bytes]


class RowMaker:
    """A maker of one job's rows, which numbers traces and interns names.

    Trace numbers and names continue those in the store. An undecodable RunMetadata leaves its trace
    number unused.
    """

    def __init__(self, decoder: Decoder, names: pa.Table, next_trace: int, nodes: pa.Table | None = None) -> None:
        """Continue after the stored ``names``, with the trace number ``next_trace``.

        ``nodes``: names and devices of the nodes in the job's graphs.
        """
        #: names of the functions that the job's steps call, by key
        self.functions: Mapping[str, Any] = {}
        self._empty_steps = EmptySteps()
        #: modules of XLA whose ops already have rows
        self._modules: frozenset[bytes] = frozenset()
        self._decoder = decoder
        self._interner = Interner.from_names(names)
        self._placement = Placement()
        self.next_trace = next_trace
        if nodes is not None:
            self._placement.add_nodes(nodes)

    def cost(self, record: Record) -> float:
        """Return the estimated time in seconds to decode ``record``."""
        if record.kind == layout.RUN_METADATA and self._decoder.is_quick:
            return len(record.body) * _QUICK_BYTE_S
        return _RECORD_S + len(record.body) * _BYTE_S

    def mark(self) -> MakerMark:
        """Return the current state for ``rollback``."""
        return MakerMark(self._interner.mark(), self.next_trace, self._empty_steps.copy(), self._modules)

    def rollback(self, mark: MakerMark) -> None:
        """Restore the state at ``mark``, since the rows made after it are not stored.

        Nodes that were added since are kept: the retry adds the same.
        """
        self._interner.rollback(mark.names)
        self.next_trace, self._empty_steps, self._modules = mark.next_trace, mark.empty_steps, mark.modules

    def continue_after(self, tables: DecodedTables, next_trace: int) -> None:
        """Continue after ``tables``, which a worker process made with a copy of this maker."""
        if "names" in tables:
            self._interner.restore(tables["names"])
        if "graph_nodes" in tables:
            self._placement.add_nodes(tables["graph_nodes"])
        if "traces" in tables:
            for trace in tables["traces"].select(["kind", "key", "rows"]).to_pylist():
                self._empty_steps.note(trace["kind"], trace["key"], is_empty=not trace["rows"])
        if "programs" in tables:
            self._modules |= {module.encode() for module in column_list(tables["programs"], "module")}
        self.next_trace = next_trace

    def make(self, records: Iterable[Record], now_ns: int) -> dict[str, pa.Table]:
        """Return the rows of ``records`` by table.

        An undecodable record becomes an event at ``now_ns``. TooManyRowsError if several records
        together make too many rows; the caller can then pass fewer of them.
        """
        rows = RowTables(now_ns)
        for kind, group in groupby(records, key=lambda record: record.kind):
            self._add_rows(kind, list(group), rows)
        rows.add("names", self._interner.new_names())
        return rows.tables()

    def _add_rows(self, kind: int, records: list[Record], rows: "RowTables") -> None:
        if kind == layout.RUN_METADATA:  # decoded together
            self._run_metadata(records, rows)
        elif kind not in self._MAKERS:
            text = f"records of the unknown kind {kind}"
            rows.events.append(Event(rows.now_ns, slug="unknown-record", text=text, times=len(records)))
        else:
            for record in records:
                try:
                    self._MAKERS[kind](self, record, rows)
                except FormatError as error:
                    rows.add_undecodable(record, error.args[0])

    def _run_metadata(self, records: list[Record], rows: "RowTables") -> None:
        numbers = range(self.next_trace, self.next_trace + len(records))
        steps = self._decoder.run_metadata([record.body for record in records], numbers, self._interner)
        self.next_trace = numbers.stop
        rows.add("ops", steps.ops)
        rows.add("allocations", steps.allocations.on_gpus)
        rows.add("memory_changes", steps.allocations.others)
        rows.add("block_addresses", steps.allocations.addresses)
        for record, number, decoded in zip(records, numbers, steps.results, strict=True):
            if decoded.error is not None:
                rows.add_undecodable(record, decoded.error)
                continue
            rows.traces.append(trace_of(record.kind, step_of(record), number, decoded, len(record.body)))
            self._note_ops(record, rows, is_empty=not decoded.rows and not self._placement.has_remote_nodes)

    def _xspace(self, record: Record, rows: "RowTables") -> None:
        step, start_ns, caller, data = profiled_step(record)
        session = xspace(
            data,
            start_ns,
            self.next_trace,
            self._interner,
            self._placement,
            caller,
            may_be_idle=record.flags == layout.EAGER,  # a gradient tape may be empty
        )
        rows.add("ops", session.ops)
        rows.add("memory_changes", session.memory.changes)
        rows.add("block_addresses", session.memory.addresses)
        for module in session.programs.keys() - self._modules:
            rows.add("programs", program_rows(module, session.programs[module]))
        self._modules |= session.programs.keys()
        rows.traces.append(trace_of(record.kind, step, self.next_trace, session.step, len(record.body)))
        self._note_ops(record, rows, is_empty=not session.step.rows and not session.ran_no_op)
        self.next_trace += 1

    def _note_ops(self, record: Record, rows: "RowTables", *, is_empty: bool) -> None:
        """Note whether the trace in ``record`` has no op although ops ran; report it if need be."""
        kind, key = record.flags, record.key
        if self._empty_steps.note(kind, key, is_empty=is_empty):
            function = self.functions.get(str(key)) if kind == layout.FUNCTION else None
            text = event_text(kind, None if function is None else str(function))
            rows.events.append(Event(record.start_real_ns, SLUG, text))

    def _graph(self, record: Record, rows: "RowTables") -> None:
        nodes = graph_nodes(record.body, graph_number(record))
        self._placement.add_nodes(nodes)
        rows.add("graph_nodes", nodes)

    def _frames(self, record: Record, rows: "RowTables") -> None:
        decoded = frames(record.body, graph_number(record))
        rows.add("frames", decoded.frames)
        rows.add("stacks", decoded.stacks)
        rows.add("op_log", decoded.op_log)

    def _refused(self, record: Record, rows: "RowTables") -> None:
        rows.events.append(event_of(document(record.body), record.start_real_ns))

    #: Makers of the rows of one record, by its kind.
    _MAKERS: ClassVar[dict[int, Callable[["RowMaker", Record, "RowTables"], None]]] = {
        layout.GRAPH: _graph,
        layout.XSPACE: _xspace,
        layout.FRAMES: _frames,
        layout.REFUSED: _refused,
    }


class RowTables:
    """The rows of one batch of records, collected by table."""

    def __init__(self, now_ns: int) -> None:
        self.now_ns = now_ns
        self.traces: list[Trace] = []
        self.events: list[Event] = []
        self._parts: dict[str, list[pa.Table]] = {}

    def add(self, name: str, rows: pa.RecordBatch | pa.Table) -> None:
        """Add ``rows`` to table ``name``."""
        if rows.num_rows:
            self._parts.setdefault(name, []).append(as_table(rows))

    def add_undecodable(self, record: Record, reason: str) -> None:
        """Add an event about ``record``, which is undecodable."""
        name = layout.RECORD_NAMES.get(record.kind, str(record.kind))
        text = f"{name} of {len(record.body)} bytes, record {record.seq}: {reason}"
        self.events.append(Event(self.now_ns, slug=UNDECODABLE, text=text))

    def tables(self) -> dict[str, pa.Table]:
        """Return the collected rows by table."""
        if self.traces:
            self.add("traces", trace_rows(self.traces))
        if self.events:
            self.add("events", event_rows(self.events))
        return {name: pa.concat_tables(parts) for name, parts in self._parts.items()}
