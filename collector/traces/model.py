"""The parts of a trace; times are real times in ns."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from ..store.columns import column_list, integers, row_tuples
from ..tfviews.nodes import Frame

#: Categories of labels. OP: an execution that the views count; INPUT: an element of a tf.data
#: iterator; OTHER: any other execution, such as a copy; STEP: a traced step; SPAN: a step or a
#: phase, as the job timed it.
OP, INPUT, OTHER, STEP, SPAN = "op", "input", "other", "step", "span"

#: Slices in the order of their starts; a slice follows the slice that encloses it. `depth` counts
#: the enclosing slices in the track. `label` is an index of `Slices.labels`, `step` one of
#: `Slices.steps`.
SLICES: Final = pa.schema(
    [
        ("track", pa.uint32()),
        ("depth", pa.uint32()),
        ("label", pa.uint32()),
        ("step", pa.uint32()),
        ("start_ns", pa.int64()),
        ("duration_ns", pa.int64()),
        ("bytes", pa.int64()),  # requested by the execution
        ("leaving", pa.list_(pa.uint64())),  # numbers of flows; null in a table without flows
        ("entering", pa.list_(pa.uint64())),
        ("waits", pa.bool_()),  # whether the step waits for its input meanwhile
    ]
)


#: Number of columns that every format writes: those before the flows.
_COMMON_COLUMNS: Final = SLICES.names.index("leaving")


class Process(NamedTuple):
    """A job; ``number``: its number in the trace, from 1 on; ``id``: its short id.

    ``pid``: its process id, 0 if unknown. ``own_pid``: the same; if another job of the trace has
    this id, a number that no process has.
    """

    number: int
    id: str
    name: str
    host: str
    pid: int
    own_pid: int

    @property
    def title(self) -> str:
        """The job's name with its id and host."""
        return f"{self.name} {self.id}" + (f" on {self.host}" if self.host else "")


class Track(NamedTuple):
    """A lane of slices, or a row of marks.

    ``number``: its number in the trace, from 1 on. ``group``: what it belongs to, such as a device;
    ``lane``: its number in the group.
    """

    number: int
    process: int
    group: str
    lane: int

    @property
    def title(self) -> str:
        """The name of the group, with the number of the lane unless it is the first."""
        return f"{self.group} ({self.lane + 1})" if self.lane else self.group


class Label(NamedTuple):
    """What slices have in common: a node with its op type, or a kind of span.

    ``op`` is the name of the slice, ``node`` the name of the node, empty for a span. ``stack``: the
    Python stack that created the node, outermost frame first; ``line``: the user's line in it.
    """

    op: str
    category: str
    node: str = ""
    line: str = ""
    stack: tuple[Frame, ...] = ()


class Step(NamedTuple):
    """A step: the name of its kind, and its number among the steps of that kind.

    ``steps``: number of steps from it on that are one slice.
    """

    kind: str
    number: int
    steps: int = 1


class Slices(NamedTuple):
    """Slices of one process (``table``: SLICES), with the labels and steps that they refer to.

    A number of a flow is unique in the trace. Each flow leaves one slice and enters one.
    """

    process: int
    table: pa.Table
    labels: Sequence[Label]
    steps: Sequence[Step]

    def rows(self) -> Iterator[tuple[int, ...]]:
        """Return the rows: all columns but those of the flows and waits."""
        return zip(*(integers(self.table[name]) for name in SLICES.names[:_COMMON_COLUMNS]), strict=True)

    def waits(self) -> list[bool]:
        """Return for each row whether the step waits for its input meanwhile."""
        return column_list(self.table, "waits")

    def flows(self) -> Iterator[tuple[int, Sequence[int], Sequence[int]]]:
        """Yield (row, numbers of leaving flows, numbers of entering flows) of slices with flows."""
        if self.table["leaving"].null_count < self.table.num_rows:
            rows = enumerate(row_tuples(self.table, "leaving", "entering"))
            yield from ((row, leaving, entering) for row, (leaving, entering) in rows if leaving or entering)


class Curve(NamedTuple):
    """Values of one quantity over time; ``unit``: bytes, ns, count, or another word."""

    process: int
    name: str
    unit: str
    times_ns: Sequence[int]
    values: Sequence[float]


class Mark(NamedTuple):
    """A moment: an event or an alert of the job."""

    track: int
    time_ns: int
    name: str
    text: str


Part = Process | Track | Slices | Curve | Mark
