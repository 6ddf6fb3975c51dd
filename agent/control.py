"""Changes the trace policy of a running job."""

from ..formats.policy import Policy, PolicyError
from .channels import Channel

_WORDS = ("policy_mode", "policy_level", "policy_first", "policy_last", "policy_every", "policy_budget")


def write_policy(channel: Channel, policy: Policy) -> int:
    """Write ``policy`` into the agent's words of ``channel`` and return its generation.

    The job confirms it in `policy_seen`. PolicyError when the words cannot hold the policy: they
    have room for one range of steps.
    """
    if Policy.from_words(policy.words()) != policy:
        raise PolicyError("a running job can be told one range of steps only")
    for name, value in zip(_WORDS, policy.words(), strict=True):
        channel.set_word(name, value)
    generation = channel.word("policy") + 1
    channel.set_word("policy", generation)
    return generation


def is_seen(channel: Channel) -> bool:
    """Return whether the job follows the policy that was written last."""
    return channel.word("policy_seen") >= channel.word("policy")
