"""The memory of a job: what its ops hold at the peak, what grows, and what its process holds."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ..numbers import percent, size

OUTPUT, TEMPORARY, PERSISTENT, BEFORE = "output", "temporary", "persistent", "before"
#: What a block is for, and its name in texts. `BEFORE`: it was there before the step.
USES: Final = {
    OUTPUT: "outputs",
    TEMPORARY: "temporary",
    PERSISTENT: "persistent",
    BEFORE: "from before the step",
}


#: The numbers of a finding whose names begin so are sizes of what may be kept.
_OUTPUT_PREFIX: Final = "output_"


class Holder(NamedTuple):
    """Blocks of one node and one use that are alive at the peak; ``line``: the user's line."""

    node: str
    op: str
    use: str
    line: str
    bytes: int


class Named(NamedTuple):
    """A name and its bytes."""

    name: str
    bytes: float


class HeldGrowth(NamedTuple):
    """What an allocator has in use before a step grows from traced step to traced step.

    ``kept``: the ops that leave a tenth of the growth or more behind, with their mean bytes in a
    step.
    """

    first_step: int
    last_step: int
    first_bytes: float
    last_bytes: float
    kept: tuple[Named, ...] = ()

    @property
    def step_bytes(self) -> float:
        """The growth a step."""
        return (self.last_bytes - self.first_bytes) / max(1, self.last_step - self.first_step)


@dataclass(frozen=True, slots=True)
class AllocatorMemory:
    """The memory of one allocator on one device at the peak of all traced steps.

    ``kind`` and ``step``: the step with the peak, which is at ``at_ns`` (real time), ``after_ns``
    after its start. ``peaks``: the least and the most peak of the ``steps`` traced steps of that
    kind. ``is_session``: a profiler session recorded it, otherwise RunMetadata. ``before_bytes``:
    the memory from before the step that is still in use at the peak, None if it is unknown.
    ``fragmentation``: as the allocator reports it at the peak, None if it does not. ``block_min``:
    smaller blocks are not recorded.
    """

    device: str
    allocator: str
    kind: str
    step: int
    at_ns: int
    after_ns: int
    peak_bytes: int
    steps: int
    peaks: tuple[int, int]
    holders: tuple[Holder, ...]
    is_session: bool = False
    before_bytes: int | None = None
    fragmentation: float | None = None
    block_min: int = 0
    growth: HeldGrowth | None = None

    @property
    def place(self) -> str:
        """The device and the allocator."""
        return f"{self.device} ({self.allocator})" if self.allocator else self.device

    @property
    def uses(self) -> dict[str, int]:
        """Use -> bytes at the peak; they add up to the peak."""
        sums = dict.fromkeys((OUTPUT, TEMPORARY, PERSISTENT), 0)
        if self.before_bytes is not None:
            sums[BEFORE] = self.before_bytes
        for holder in self.holders:
            sums[holder.use] = sums.get(holder.use, 0) + holder.bytes
        return sums

    @property
    def scopes(self) -> list[Named]:
        """The name scopes of the holders, the most bytes first."""
        return _summed((holder.node.rpartition("/")[0] or "(no scope)", holder.bytes) for holder in self._of_ops)

    @property
    def lines(self) -> list[Named]:
        """The user's lines of the holders, as far as they are known, the most bytes first."""
        return _summed((holder.line, holder.bytes) for holder in self._of_ops if holder.line)

    @property
    def _of_ops(self) -> list[Holder]:
        return [holder for holder in self.holders if holder.node]


class Finding(NamedTuple):
    """A finding of `tfprof advise` about growing memory."""

    text: str
    numbers: Mapping[str, float | str]
    remedy: str
    line: str


@dataclass(frozen=True, slots=True)
class HostMemory:
    """The resident memory (RSS) of the job's process and its child processes.

    ``most_bytes``, ``last_bytes``: the largest and the last of ``samples`` samples.
    ``before_bytes``: the last sample before the first step, None without one. ``peak_bytes``: the
    sample next to the highest peak on a CPU, None without a peak; ``known``: what of it is known.
    ``processes``: their number then.
    """

    samples: int
    most_bytes: int
    last_bytes: int
    before_bytes: int | None
    peak_bytes: int | None
    processes: int
    known: tuple[Named, ...]

    @property
    def unknown_bytes(self) -> float | None:
        """The rest of ``peak_bytes``; None if several processes share ``peak_bytes``."""
        if self.peak_bytes is None or self.processes != 1:
            return None
        return max(0.0, self.peak_bytes - sum(named.bytes for named in self.known))


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """The memory of a job.

    ``allocators``: the one with the highest peak comes first. ``no_peak``: why there is none, empty
    if there is one. ``findings``: growth of the process's memory; ``growth_missing``: what the job
    lacks to judge it, empty if it has all. ``host``: None without samples.
    """

    allocators: tuple[AllocatorMemory, ...]
    no_peak: str
    findings: tuple[Finding, ...]
    growth_missing: str
    host: HostMemory | None


def verdict(memory: MemoryUse) -> str:
    """Return one sentence about the peak and the growth."""
    first = next(iter(memory.allocators), None)
    clauses = [_peak_clause(first) if first else memory.no_peak]
    clauses += [f"on {other.place} {size(other.peak_bytes)}" for other in memory.allocators[1:2]]
    return "; ".join([*clauses, _growth_clause(memory)])


def _peak_clause(memory: AllocatorMemory) -> str:
    steps = "the traced step" if memory.steps == 1 else f"{memory.steps:,} traced steps"
    text = f"the peak of {steps} is {size(memory.peak_bytes)} on {memory.place}"
    top = next((holder for holder in memory.holders if holder.node), None)
    before = memory.before_bytes or 0
    if top is None or before > top.bytes:
        return f"{text}, {percent(before / max(1, memory.peak_bytes))} of it from before the step"
    return f"{text}, {percent(top.bytes / max(1, memory.peak_bytes))} of it by {top.node}"


def _growth_clause(memory: MemoryUse) -> str:
    held = next((allocator for allocator in memory.allocators if allocator.growth), None)
    if memory.findings:
        numbers = memory.findings[0].numbers
        rate, step = numbers.get("bytes_per_minute"), numbers.get("bytes_per_step")
        text = "the job's memory grows" + (f" by {size(rate)} a minute" if isinstance(rate, float) else "")
        text += f", {size(step)} a step" if isinstance(step, float) else ""
        keeper = next((name for name in numbers if name.startswith(_OUTPUT_PREFIX)), "")
        return f"{text}, as much as {keeper.removeprefix(_OUTPUT_PREFIX)} puts out" if keeper else text
    if held and held.growth:
        text = f"what is in use on {held.place} before a step grows by {size(held.growth.step_bytes)} a step"
        return f"{text}, left by {held.growth.kept[0].name}" if held.growth.kept else text
    return f"growth is unknown: {memory.growth_missing}" if memory.growth_missing else "no steady growth"


def _summed(values: Iterable[tuple[str, float]]) -> list[Named]:
    sums: dict[str, float] = defaultdict(float)
    for name, amount in values:
        sums[name] += amount
    return sorted((Named(*item) for item in sums.items()), key=lambda named: (-named.bytes, named.name))


def holders_of(blocks: Iterable[tuple[str, str, str, str, int]]) -> tuple[Holder, ...]:
    """Return the holders of blocks (node, op, use, line, bytes), the most bytes first."""
    sums: dict[tuple[str, str, str, str], int] = defaultdict(int)
    for *key, amount in blocks:
        node, op, use, line = key
        sums[node, op, use, line] += amount
    ranked = sorted(sums.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Holder(*key, amount) for key, amount in ranked)


def most(values: Sequence[Named], number: int) -> list[Named]:
    """Return the first ``number`` of ``values``, and the sum of the others as one more."""
    rest = values[number:]
    return [*values[:number], *([Named(others(len(rest)), sum(value.bytes for value in rest))] if rest else [])]


def others(number: int) -> str:
    """Return the name of so many others."""
    return "1 other" if number == 1 else f"{number} others"
