"""Writes orders into the control page of a running job (docs/channel.md)."""

import time

from ..formats import layout
from ..formats.policy import Policy, PolicyError
from .channels import ChannelReader

_WORDS = ("policy_mode", "policy_level", "policy_first", "policy_last", "policy_every", "policy_budget")


def write_policy(channel: ChannelReader, policy: Policy, order: int, count: int, end_ns: int) -> int:
    """Write ``policy`` into the agent's words of ``channel`` and return its number.

    The policy ends after ``count`` traced steps or at ``end_ns`` (monotonic), whichever is first; 0
    means no such end. ``order`` is the order's id. The job confirms the policy in `policy_seen`.
    PolicyError if it has too many ranges.
    """
    if len(policy.ranges) > layout.RANGES_MAX:
        raise PolicyError(f"an order can have {layout.RANGES_MAX} ranges of steps at most")
    return _write(channel, policy, order, count, end_ns)


def end_order(channel: ChannelReader, order: int) -> int:
    """Make the job return to the policy before the order in force; return the new policy number.

    After an order without an end this is the policy of the job's start.
    """
    return _write(channel, Policy(layout.MODE_OFF), order, 0, time.monotonic_ns(), order_end=1)


def withdraw(channel: ChannelReader) -> int:
    """Withdraw an order that the job has not applied; return the new policy number."""
    return _write(channel, Policy(layout.MODE_OFF), 0, 0, time.monotonic_ns())


def detach(channel: ChannelReader, order: int = 0) -> int:
    """Make the job disarm the shim, which it confirms in `detached`; return the policy number."""
    return _write(channel, Policy(layout.MODE_OFF), order, 0, 0, detach=1)


def _write(
    channel: ChannelReader, policy: Policy, order: int, count: int, end_ns: int, *, detach: int = 0, order_end: int = 0
) -> int:
    channel.set_word("policy_writing", 1)
    for name, value in zip(_WORDS, policy.words(), strict=True):
        channel.set_word(name, value)
    ranges = policy.ranges if policy.mode == layout.MODE_STEPS else ()
    channel.set_ranges(ranges)
    for name, value in (
        ("policy_ranges", len(ranges)),
        ("policy_count", count),
        ("policy_end_ns", end_ns),
        ("policy_order", order),
        ("detach", detach),
        ("order_end", order_end),
    ):
        channel.set_word(name, value)
    policy_number = channel.word("policy") + 1
    # A current heartbeat shows the job that an agent is alive.
    channel.set_word("agent_beat_ns", time.monotonic_ns())
    channel.set_word("policy", policy_number)
    channel.set_word("policy_writing", 0)
    return policy_number


def has_order(channel: ChannelReader) -> bool:
    """Return whether an order is in force, or is written and not confirmed yet."""
    return channel.word("policy") > channel.word("order_over")
