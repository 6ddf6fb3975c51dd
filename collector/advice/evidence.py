"""Input of the checkers: records of a job's steps, ops, memory and graphs.

Unknown parts are empty.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from ..summaries.parts import Breakdown
from ..summaries.step_records import StepTrace, ThreadUse, TimedSteps
from ..summaries.top import OpChange, Times
from ..tfviews.entries import Entry
from ..tfviews.nodes import Node
from ..tfviews.parity import DEFAULT, Parity
from ..tfviews.places import Places


class Use(NamedTuple):
    """Mean use of resources by the job's processes while steps ran."""

    cores: float
    written_bytes_per_s: float


class PythonThread(NamedTuple):
    """A thread of the job's Python other than the main one, and the CPUs that it used, at most 1.

    ``function`` is the outermost one of the job, ``line`` its first line (`train.py:12`).
    """

    name: str
    function: str
    line: str
    cores: float


class StepShift(NamedTuple):
    """A lasting increase of the step times from ``step`` on, which began at ``start_ns`` (real ns).

    All of the steps have the span key ``key``. ``before_ns`` and ``now_ns``: median step times.
    ``is_gradual``: they grow all along. ``has_alert``: the collector raised an alert about it, so
    the host's load does not explain it. ``ops`` take longer since then, as far as they are known.
    ``of_pauses``: most of it is due to the pauses after the steps, and the times are those from the
    start of a step to the next start.
    """

    step: int
    key: int
    start_ns: int
    before_ns: float
    now_ns: float
    is_gradual: bool
    has_alert: bool
    ops: tuple[OpChange, ...] = ()
    of_pauses: bool = False


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


@dataclass(frozen=True)  # without slots, for the cached property
class Evidence:
    """Everything that checkers know about a job.

    `nodes` have sums over `traced_steps` steps, or averages if `parity` is exact. `last_entries`:
    for each node on a GPU, its last step with an entry, and the entry. `traced_kinds`: number of
    traced steps by the name of their kind. `times`: times of nodes in ns, by name, one for each of
    at most 50 traced steps. `epochs`, `predict_calls`: numbers of epochs and of calls of predict.
    `thread_use`: what the thread of the steps did; `python_threads`: the busiest one comes first.
    `breakdown`: the parts of the steps of the main kind, None if none was timed. `timed_steps`: the
    latest steps of the job's main kind, on the thread with the most time in them, sorted by time.
    `shift`: the step from which on they take longer; `pause_shift`: without one, that from which on
    the pauses after them do; `shift_use`: what the main thread did before the shift, and since.
    `map_functions`: names of functions that `map` of input pipelines traced to graphs.
    `use`: the job's use of resources, None if unknown. `step_traces`: the latest traced steps,
    without the ops of the input pipeline's functions, which are in `pipeline_traces`.
    `step_memory`: memory after each traced step. `memory_samples`: memory while steps ran, without
    the warm-up; `load`: use of the CPUs during the job. `host_damage`: why it could not be read,
    empty if it could. `new_nodes`: one record for each traced step, in order. `first_calls`: the
    time of each function's first call, as a fraction of the time from the start of the job's first
    span (0) to the end of the main call's last step (1). `other_run_keys`: the keys of session runs
    of other kinds than the main one, in order of time. `longest_ns`: the duration of the longest
    activity of each category after the first timed step.
    """

    nodes: tuple[Node, ...] = ()
    has_steps: bool = False
    last_entries: Mapping[str, tuple[int, Entry]] = field(default_factory=dict)
    traced_steps: int = 1
    traced_kinds: Mapping[str, int] = field(default_factory=dict)
    times: Times = field(default_factory=dict)
    parity: Parity = DEFAULT
    step_kind: str = ""
    epochs: int = 0
    predict_calls: int = 0
    thread_use: ThreadUse | None = None
    python_threads: tuple[PythonThread, ...] = ()
    breakdown: Breakdown | None = None
    timed_steps: tuple[TimedSteps, ...] = ()
    shift: StepShift | None = None
    pause_shift: StepShift | None = None
    shift_use: tuple[ThreadUse | None, ThreadUse | None] = (None, None)
    map_functions: tuple[str, ...] = ()
    use: Use | None = None
    step_traces: tuple[StepTrace, ...] = ()
    pipeline_traces: tuple[StepTrace, ...] = ()
    step_memory: tuple[StepMemory, ...] = ()
    memory_samples: tuple[MemorySample, ...] = ()
    load: tuple[Load, ...] = ()
    host_damage: str = ""
    new_nodes: tuple[NewNodes, ...] = ()
    graphs: tuple[IdenticalGraphs, ...] = ()
    first_calls: tuple[float, ...] = ()
    other_run_keys: tuple[int, ...] = ()
    longest_ns: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def places(self) -> Places:
        """The places in the user's program that made the nodes."""
        return Places(self.nodes)

    def ns_per_step(self, time: int) -> float:
        """Return a time of `nodes` in ns per step."""
        return time * 1000 / (self.traced_steps * self.parity.time_unit)
