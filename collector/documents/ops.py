"""Op types by their time in a step."""

from typing import Annotated, TypedDict

from ..summaries.top import OpChange, TopOp


class OpDocument(TypedDict):
    """An op type on a device, per step."""

    op: Annotated[str, "The op type."]
    device: Annotated[str, "The device in short: CPU:0, GPU:1."]
    ns: Annotated[float, "Its time in a step, a sum of medians, ns."]
    least_ns: Annotated[int, "`ns`, or its shortest time in a traced step if that is less, ns."]
    most_ns: Annotated[int, "`ns`, or its longest time in a traced step if that is more, ns."]
    share: Annotated[float, "Its share of the time of all ops."]
    calls: Annotated[float, "The mean number of executions in a step."]
    bytes: Annotated[float, "The mean number of bytes that it requests in a step."]
    line: Annotated[str, "The user's line with most of the time; empty if unknown."]


class OpChangeDocument(TypedDict):
    """An op type on a device that takes longer than before."""

    op: Annotated[str, "The op type."]
    device: Annotated[str, "The device in short: CPU:0, GPU:1."]
    before_ns: Annotated[float, "Its time in a step before the change, ns."]
    now_ns: Annotated[float, "Its time in a step since the change, ns."]
    line: Annotated[str, "The user's line with most of the time; empty if unknown."]


def op_document(op: TopOp) -> OpDocument:
    """Return an op type."""
    return {
        "op": op.op,
        "device": op.device,
        "ns": op.ns,
        "least_ns": op.least_ns,
        "most_ns": op.most_ns,
        "share": op.share,
        "calls": op.calls,
        "bytes": op.bytes,
        "line": op.line,
    }


def op_change_document(change: OpChange) -> OpChangeDocument:
    """Return an op type that takes longer."""
    return {
        "op": change.op,
        "device": change.device,
        "before_ns": change.before_ns,
        "now_ns": change.now_ns,
        "line": change.line,
    }
