"""The programs that XLA compiled in a job."""

from typing import Annotated, Literal, TypedDict

from ..query.compiled import Compiled
from ..summaries.compiled import Program
from .fields import fields


class ProgramOpDocument(TypedDict):
    """A TensorFlow op of a program, or what XLA added to it."""

    node: Annotated[str, "The name of the node."]
    op: Annotated[str, "Its op type; of an executed fusion with `_fusion` after it."]
    ns: Annotated[float | None, "Its time per step as in `tfprof op`, ns; null if it has none of its own."]
    fused_into: Annotated[str, "The node that has its time, empty if there is none."]
    instructions: Annotated[int, "The number of HLO instructions that came from it, 0 if unknown."]
    line: Annotated[str, "The user's line that created it, such as `train.py:12`; empty if unknown."]


class ProgramDocument(TypedDict):
    """What XLA made of a function, or of a cluster of ops."""

    name: Annotated[str, "The name of the function or cluster."]
    ns: Annotated[float | None, "Its time per step, ns; null if it did not run in the traced steps."]
    share: Annotated[float, "Its share of the time of all ops, 0 to 1."]
    variants: Annotated[int, "How many programs it has, such as one for each shape; 0 if unknown."]
    first_runs: Annotated[int | None, "How many calls made a graph and compiled it; null if not recorded."]
    first_runs_ns: Annotated[int | None, "The time of these calls after the graph was made, ns; null if not recorded."]
    ops: Annotated[list[ProgramOpDocument], "Its ops, the longest time first."]


class CompiledDocument(TypedDict):
    """The programs that XLA compiled in a job."""

    schema: Annotated[Literal["tfprof.compiled/1"], "The format and its version."]
    job: Annotated[str, "The id of the job, 16 hexadecimal digits."]
    steps: Annotated[int, "The number of traced steps of the main kind."]
    programs: Annotated[list[ProgramDocument], "The programs, the longest time first."]


def compiled_document(answer: Compiled) -> CompiledDocument:
    """Return the programs of a job."""
    return {
        "schema": "tfprof.compiled/1",
        "job": answer.job.info.hex,
        "steps": answer.steps,
        "programs": list(map(_program, answer.programs)),
    }


def _program(program: Program) -> ProgramDocument:
    runs = program.first_runs
    return {
        "name": program.name,
        "ns": program.ns,
        "share": program.share,
        "variants": program.variants,
        "first_runs": runs.number if runs else None,
        "first_runs_ns": runs.ns if runs else None,
        "ops": [fields(ProgramOpDocument, op) for op in program.ops],
    }
