"""Input of the checkers: records of a job's steps, ops, memory and graphs.

Unknown parts are empty.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ..summaries.shares import Times
from ..tfviews.entries import Entry
from ..tfviews.nodes import Node
from ..tfviews.parity import DEFAULT, Parity


class TimedSteps(NamedTuple):
    """Consecutive steps of one thread that were timed together; times in ns.

    `steps`: their number; `total_ns`: sum of their durations, without the pauses between them.
    """

    ordinal: int
    steps: int
    start_ns: int
    total_ns: int
    is_normal: bool  # neither traced nor failed, and not a setup step
    key: int = 0  # equal for steps of the same call


class OpExecution(NamedTuple):
    """One execution in a traced step; times in ns."""

    node: str
    op: str
    device: str  # lower case
    thread: int
    start_ns: int
    end_ns: int


class StepTrace(NamedTuple):
    """A traced step: its duration in ns, and all its executions."""

    step: int
    duration_ns: int
    executions: tuple[OpExecution, ...]


class StepMemory(NamedTuple):
    """Memory of a traced step in bytes.

    `residual`: bytes still in use when its ops had ended; `in_use`: maximum in use by the allocator
    of a GPU.
    """

    step: int
    residual: int
    in_use: int


class MemorySample(NamedTuple):
    """Memory of a job's processes in bytes; `t_ns` is in ns of real time."""

    t_ns: int
    rss_bytes: int


class Load(NamedTuple):
    """Use of the host's CPUs between two samples; times in ns of real time.

    `own_cores`: cores that the job used; `other_cores`: cores that other processes used; `cpus`:
    number of CPUs of the host.
    """

    start_ns: int
    end_ns: int
    own_cores: float
    other_cores: float
    cpus: int


class NewNodes(NamedTuple):
    """Number of nodes that ran in a traced step for the first time.

    `call` is equal for steps of the same call.
    """

    call: tuple[int, int]
    nodes: int


class IdenticalGraphs(NamedTuple):
    """Graphs with the same ops: number of graphs, nodes per graph, and the name of one node.

    `line` is the user's line that created most of the nodes, '' if unknown. It is looked up only
    for the largest graphs.
    """

    graphs: int
    nodes: int
    example: str
    line: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that checkers know about a job.

    `nodes` have averages over the traced steps. `last_entries`: for each node on a GPU, its last
    step with an entry, and the entry. `times`: times of nodes in µs, by name, one for each selected
    traced step. `timed_steps`: the latest steps of the job's main kind, on the thread with the most
    time in them, sorted by time. `step_traces`: the latest traced steps. `step_memory`: memory
    after each traced step. `memory_samples`: memory while steps ran, without the warm-up; `load`:
    use of the CPUs during the job. `new_nodes`: one record for each traced step, in order.
    `first_calls`: the time of each function's first call, as a fraction of the time from the start
    of the job's first span (0) to the start of its last span (1).
    """

    nodes: tuple[Node, ...] = ()
    has_steps: bool = False
    last_entries: Mapping[str, tuple[int, Entry]] = field(default_factory=dict)
    times: Times = field(default_factory=dict)
    parity: Parity = DEFAULT
    step_kind: str = ""
    timed_steps: tuple[TimedSteps, ...] = ()
    step_traces: tuple[StepTrace, ...] = ()
    step_memory: tuple[StepMemory, ...] = ()
    memory_samples: tuple[MemorySample, ...] = ()
    load: tuple[Load, ...] = ()
    new_nodes: tuple[NewNodes, ...] = ()
    graphs: tuple[IdenticalGraphs, ...] = ()
    first_calls: tuple[float, ...] = ()
