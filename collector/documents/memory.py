"""The memory of a job: the peak of each allocator, growth, and host memory."""

from collections.abc import Iterable
from typing import Annotated, Literal, TypedDict

from ..query.memory import JobMemory
from ..summaries.memory import AllocatorMemory, HeldGrowth, Named, verdict
from .fields import fields


class NamedBytesDocument(TypedDict):
    """A name and its bytes."""

    name: Annotated[str, "What it is: a scope, a line, an op, a part of the process's memory."]
    bytes: Annotated[float, "Its bytes."]


class HolderDocument(TypedDict):
    """What one node holds at the peak for one use."""

    node: Annotated[str, "The name of the node; empty if the block was there before the step."]
    op: Annotated[str, "The op type, empty if it is unknown."]
    use: Annotated[str, "output, temporary (for the op's own work), persistent (for its later runs) or before."]
    line: Annotated[str, "The user's line that made the node, empty if it is unknown."]
    bytes: Annotated[int, "The bytes of its blocks."]


class HeldGrowthDocument(TypedDict):
    """Growth of what an allocator has in use before a step."""

    first_step: Annotated[int, "The first traced step after the warm-up."]
    last_step: Annotated[int, "The last traced step."]
    first_bytes: Annotated[float, "Bytes in use before the first one."]
    last_bytes: Annotated[float, "Bytes in use before the last one."]
    bytes_per_step: Annotated[float, "The growth a step."]
    kept: Annotated[list[NamedBytesDocument], "The ops that leave memory behind, with their mean bytes in a step."]


class AllocatorDocument(TypedDict):
    """The memory of one allocator on one device at the peak of all traced steps."""

    device: Annotated[str, "The device: CPU:0, GPU:1, …"]
    allocator: Annotated[str, "The allocator, as TensorFlow names it."]
    kind: Annotated[str, "The kind of the step with the peak."]
    step: Annotated[int, "The number of that step."]
    after_ns: Annotated[int, "When the peak is, after the start of the step, ns."]
    peak_bytes: Annotated[int, "Bytes at the peak; without before_bytes those of the step's own blocks."]
    traced_steps: Annotated[int, "The number of traced steps of this kind."]
    least_peak_bytes: Annotated[int, "The lowest peak of these steps."]
    most_peak_bytes: Annotated[int, "The highest peak of these steps."]
    source: Annotated[Literal["run_metadata", "session"], "What TensorFlow recorded it with."]
    before_bytes: Annotated[int | None, "Bytes at the peak from before the step; null if they are not recorded."]
    uses: Annotated[dict[str, int], "Bytes at the peak by use; they add up to peak_bytes."]
    holders: Annotated[list[HolderDocument], "Who holds the step's blocks at the peak; the most first."]
    scopes: Annotated[list[NamedBytesDocument], "The same by name scope."]
    lines: Annotated[list[NamedBytesDocument], "The same by line of the user's code, as far as it is known."]
    fragmentation: Annotated[float | None, "Fragmentation that the allocator reports at the peak, a fraction of 1."]
    least_block_bytes: Annotated[int, "Smaller blocks are not recorded; 0 if all are."]
    growth: Annotated[HeldGrowthDocument | None, "Steady growth from step to step; null without it."]


class MemoryFindingDocument(TypedDict):
    """Growth of the job's memory, as in `tfprof advise`."""

    text: Annotated[str, "The finding."]
    numbers: Annotated[dict[str, float | str], "Its numbers by name."]
    remedy: Annotated[str, "What to do."]
    line: Annotated[str, "The user's line, empty if it is unknown."]


class HostMemoryDocument(TypedDict):
    """The resident memory (RSS) of the job's processes."""

    samples: Annotated[int, "The number of samples, one a second."]
    most_bytes: Annotated[int, "The largest sample."]
    last_bytes: Annotated[int, "The last sample."]
    before_bytes: Annotated[int | None, "The last sample before the first step; null without one."]
    peak_bytes: Annotated[int | None, "The sample next to the highest peak on a CPU; null without a peak."]
    processes: Annotated[int, "The number of processes in that sample, or in the last one."]
    known: Annotated[list[NamedBytesDocument], "What of peak_bytes is known."]
    unknown_bytes: Annotated[float | None, "The rest of peak_bytes; null if that is unknown or of several processes."]


class MemoryDocument(TypedDict):
    """What a job holds in memory at the peak, what grows, and what its process holds."""

    schema: Annotated[Literal["tfprof.memory/1"], "The format and its version."]
    job: Annotated[str, "The id of the job."]
    verdict: Annotated[str, "One sentence about the peak and the growth."]
    no_peak: Annotated[str, "Why there is no peak; empty if there is one."]
    allocators: Annotated[list[AllocatorDocument], "Each allocator; the highest peak first."]
    growth: Annotated[list[MemoryFindingDocument], "Growth of the process's memory; empty without it."]
    growth_missing: Annotated[str, "What the job lacks to judge the growth; empty if it has all."]
    host: Annotated[HostMemoryDocument | None, "Host memory; null without samples."]


def memory_document(answer: JobMemory) -> MemoryDocument:
    """Return the memory of a job."""
    use = answer.use
    return {
        "schema": "tfprof.memory/1",
        "job": answer.job.info.hex,
        "verdict": verdict(use),
        "no_peak": use.no_peak,
        "allocators": list(map(_allocator, use.allocators)),
        "growth": [fields(MemoryFindingDocument, finding) for finding in use.findings],
        "growth_missing": use.growth_missing,
        "host": None if use.host is None else fields(HostMemoryDocument, use.host, known=_named(use.host.known)),
    }


def _allocator(memory: AllocatorMemory) -> AllocatorDocument:
    return fields(
        AllocatorDocument,
        memory,
        traced_steps=memory.steps,
        least_peak_bytes=memory.peaks[0],
        most_peak_bytes=memory.peaks[1],
        source="session" if memory.is_session else "run_metadata",
        holders=[fields(HolderDocument, holder) for holder in memory.holders],
        scopes=_named(memory.scopes),
        lines=_named(memory.lines),
        least_block_bytes=memory.block_min,
        growth=None if memory.growth is None else _growth(memory.growth),
    )


def _growth(growth: HeldGrowth) -> HeldGrowthDocument:
    return fields(HeldGrowthDocument, growth, bytes_per_step=growth.step_bytes, kept=_named(growth.kept))


def _named(values: Iterable[Named]) -> list[NamedBytesDocument]:
    return [fields(NamedBytesDocument, named) for named in values]
