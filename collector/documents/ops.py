"""Op types by their time in a step."""

from typing import Annotated, TypedDict


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
