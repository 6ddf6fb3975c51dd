"""Op types, ranked by their time in a step."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..tfviews.nodes import Node, total_of
from ..tfviews.own_files import Stack, own_line, own_location, stack_lookup
from .shares import Times, shares

#: Looks up the stack of a node, made by `stack_lookup`.
StackOf = Callable[[Node], Stack | None]


@dataclass(frozen=True, slots=True)
class TopOp:
    """One op type on one device: its times, calls and bytes per step, and its slowest line.

    ``least_us``, ``median_us`` and ``most_us`` are the minimum, median and maximum of the steps.
    ``share`` refers to the medians, as in shares.Share. ``calls`` and ``bytes`` are means.
    ``line``: the user's line with the most time of these ops.
    """

    op: str
    device: str
    least_us: int
    median_us: float
    most_us: int
    share: float
    calls: float
    bytes: float
    line: str


def short_device(device: str) -> str:
    """Return the short form of a device's name: CPU:0, GPU:1."""
    return device.rsplit("/", 1)[-1].removeprefix("device:").upper() or "-"


def top_ops(nodes: Sequence[Node], times: Times, steps: int) -> list[TopOp]:
    """Return the (op type, device) pairs with any time, largest median first.

    ``nodes`` have sums over ``steps`` steps; ``times`` are the nodes' times in each selected step.
    """
    stack_of = stack_lookup(nodes)
    groups: dict[tuple[str, str], list[Node]] = defaultdict(list)
    for node in nodes:
        groups[node.op, short_device("|".join(node.devices))].append(node)
    ranked = shares(((key, node.name) for key, group in groups.items() for node in group), times)
    ops = []
    for (op, device), least, median, most, share in ranked:
        group = groups[op, device]
        stats = total_of(group)
        ops.append(
            TopOp(
                op,
                device,
                least,
                median,
                most,
                share,
                stats.runs / steps,
                stats.bytes / steps,
                top_line(group, times, stack_of),
            )
        )
    return ops


def top_line(nodes: Sequence[Node], times: Times, stack_of: StackOf) -> str:
    """Return the user's line with most of the time of ``nodes``, '' if unknown."""
    return _heaviest_line(nodes, times, stack_of, own_line)


def top_location(nodes: Sequence[Node], times: Times, stack_of: StackOf) -> str:
    """Return the line as ``top_line`` does, with its function."""
    return _heaviest_line(nodes, times, stack_of, own_location)


def _heaviest_line(
    nodes: Sequence[Node], times: Times, stack_of: StackOf, line_of: Callable[[Stack | None], str]
) -> str:
    weights: dict[str, int] = defaultdict(int)
    for node in nodes:
        if line := line_of(stack_of(node)):
            weights[line] += sum(times.get(node.name, ()))
    return max(weights, key=weights.__getitem__, default="")
