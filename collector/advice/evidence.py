"""Input of the checkers: records of a job's steps, ops, memory and graphs; an unknown part is empty."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ..summaries.shares import Times
from ..tfviews.entries import Entry
from ..tfviews.nodes import Node
from ..tfviews.parity import DEFAULT, Parity


class Timed(NamedTuple):
    """``runs`` consecutive steps that were timed together, on one thread; times in ns, the sum without what lay between them."""

    ordinal: int
    runs: int
    start_ns: int
    total_ns: int
    usual: bool  # neither traced nor failed nor with one-off work of ours
    key: int = 0  # equal for steps that do the same


class OpExecution(NamedTuple):
    """One execution in a traced step; times in ns."""

    node: str
    op: str
    device: str  # lower case
    thread: int
    start_ns: int
    end_ns: int


class Traced(NamedTuple):
    """A traced step: how long it took, in ns, and all of its executions."""

    step: int
    duration_ns: int
    executions: tuple[OpExecution, ...]


class StepMemory(NamedTuple):
    """Memory after a traced step, in bytes: ``residual`` of its ops, and the peak in use of a GPU's allocator."""

    step: int
    residual: int
    in_use: int


class Level(NamedTuple):
    """Memory of a job's processes at a moment: real time in ns, bytes."""

    t_ns: int
    rss_bytes: int


class Load(NamedTuple):
    """Who used the host's CPUs between two samples: times in real ns; cores of the job, of all others, and how many there are."""

    start_ns: int
    end_ns: int
    own: float
    others: float
    cpus: int


class NewNodes(NamedTuple):
    """How many nodes ran in a traced step and in none before; ``call``: equal for steps that do the same."""

    call: tuple[int, int]
    nodes: int


class IdenticalGraphs(NamedTuple):
    """Graphs with the same ops: their number, their nodes each, and the name of one node.

    `line` is the user's own line that most of the nodes come from, empty where that is not known.
    """

    graphs: int
    nodes: int
    example: str
    line: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a job.

    `nodes` have averages over the traced steps; `last` has of each node of a GPU the last step in which it has an entry, and
    the entry. `timed` are the latest steps of the job's main kind on the thread that has most of them, by time; `traced` some of its
    traced steps, the latest; `new` is of all of them, in order. `times` are those of nodes by name, in us, one for each of the
    traced steps that are looked at for them. `levels` and `load` are of the time in which steps ran, without the first of them.
    `first_calls`: when each function was called from Python for the first time, 0 the job's first step or call and 1 its last.
    """

    nodes: tuple[Node, ...] = ()
    has_steps: bool = False
    last: Mapping[str, tuple[int, Entry]] = field(default_factory=dict)
    times: Times = field(default_factory=dict)
    parity: Parity = DEFAULT
    step_kind: str = ""
    timed: tuple[Timed, ...] = ()
    traced: tuple[Traced, ...] = ()
    kept: tuple[StepMemory, ...] = ()
    levels: tuple[Level, ...] = ()
    load: tuple[Load, ...] = ()
    new: tuple[NewNodes, ...] = ()
    graphs: tuple[IdenticalGraphs, ...] = ()
    first_calls: tuple[float, ...] = ()
