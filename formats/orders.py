"""Orders to running jobs and the answers to them, as JSON bodies of the wire (docs/wire.md)."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple

from .errors import FormatError, TfprofError
from .policy import NEVER, Policy, PolicyError

#: Actions: trace steps, end the order in force, detach.
TRACE, END, DETACH = "trace", "end", "detach"
#: States of an answer: the order is in force, has ended, or was refused.
OBEYED, ENDED, REFUSED = "obeyed", "ended", "refused"
#: State of a missing answer: the order may have been applied.
UNANSWERED = "unanswered"
#: Slug of a temporary refusal: the agent is starting or away, or the job is being opened again.
NO_AGENT = "no-agent"
#: Maximum size of the body of an order or an answer (bytes).
BODY_MAX = 1 << 16
#: Maximum time for a job to apply an order (seconds).
PATIENCE_MAX_S = 3600.0
NO_SLUG = ""
_TEXT_MAX = 1000
_WORD_MAX = 64


class OrderError(FormatError):
    """An order or an answer is malformed, or the policy of an order is invalid."""

    slug = "bad-order"


class JobGoneError(TfprofError):
    """The job of an order has ended, or its agent does not know it."""

    slug = "job-gone"


class Giver(NamedTuple):
    """The process that gave an order, as stated in the order; nothing verifies it."""

    user: str
    host: str
    pid: int

    def __str__(self) -> str:
        return "%s on %s (process %d)" % self


class Order(NamedTuple):
    """One order: which steps are traced, and when the order ends.

    The order ends after ``steps`` traced steps of the main kind of steps, or after ``for_ns``; 0
    means no such end. The job must apply it within ``patience_s``. If ``gives_way``, the order is
    refused while another one is in force.
    """

    action: str
    giver: Giver
    trace: str = "all"
    level: str = "auto"
    steps: int = 0
    for_ns: int = 0
    patience_s: float = 10.0
    gives_way: bool = False

    @property
    def policy(self) -> Policy:
        """The ordered policy; PolicyError if it is invalid."""
        return Policy.from_text(self.trace, self.level)

    @property
    def ends_by_itself(self) -> bool:
        """Whether the order ends by itself, which restores the policy before it."""
        return self.action == TRACE and bool(self.steps or self.for_ns or self.trace.startswith("steps="))

    def document(self) -> dict[str, Any]:
        """Return the order as a JSON object."""
        return dict(self._asdict(), giver=dict(self.giver._asdict()))

    def __str__(self) -> str:
        if self.action != TRACE:
            return {END: "the order in force ends", DETACH: "detach"}[self.action]
        text = _policy_in_words(self.trace)
        if self.steps:
            steps = "%d step%s" % (self.steps, "" if self.steps == 1 else "s")
            next_steps = "the next %s" % ("step" if self.steps == 1 else steps)
            text = next_steps if self.trace == "all" else "%s, %s" % (text, steps)
        return text + (" for %g s" % (self.for_ns / 1e9) if self.for_ns else "")


class OrderAnswer(NamedTuple):
    """The answer to an order to job ``uid``.

    ``kind`` and ``step`` identify the first step that the order selects by its number, else the
    first step under the order. After its end, ``traced`` steps were traced between ``from_ns`` and
    ``to_ns`` (real time); with a ``slug``, their number is unknown. A refusal has ``slug`` and
    ``text``.
    """

    uid: int
    state: str
    slug: str = NO_SLUG
    text: str = ""
    kind: str = ""
    step: int = 0
    traced: int = 0
    from_ns: int = 0
    to_ns: int = 0

    @property
    def is_temporary(self) -> bool:
        """Whether this is a temporary refusal."""
        return self.state == REFUSED and self.is_without_agent

    @property
    def is_without_agent(self) -> bool:
        """Whether no agent was connected that could receive the order."""
        return self.slug == NO_AGENT

    def document(self) -> dict[str, Any]:
        """Return the answer as a JSON object; the uid of the job is in the message's head."""
        values = dict(self._asdict())
        del values["uid"]
        return values


def order_of(values: Mapping[str, Any]) -> Order:
    """Return the order in a JSON object; OrderError if the order or its policy is invalid."""
    order = Order(
        _text(values, "action", ""),
        giver_of(values),
        _text(values, "trace", "all"),
        _text(values, "level", "auto"),
        _number(values, "steps"),
        _number(values, "for_ns"),
        _seconds(values.get("patience_s", 10.0)),
        values.get("gives_way") is True,
    )
    if order.action not in (TRACE, END, DETACH):
        raise OrderError("unknown order %r" % order.action[:_WORD_MAX])
    try:
        order.policy  # noqa: B018 - validates it
    except PolicyError as error:
        raise OrderError(error.args[0], error.slug) from None
    return order


def giver_of(values: Mapping[str, Any]) -> Giver:
    """Return the sender in the JSON object of an order; OrderError if it has none."""
    giver = values.get("giver")
    if not isinstance(giver, dict):
        raise OrderError("an order without a sender")
    return Giver(_text(giver, "user", "?")[:_WORD_MAX], _text(giver, "host", "?")[:_WORD_MAX], _number(giver, "pid"))


def answer_of(uid: int, values: Mapping[str, Any]) -> OrderAnswer:
    """Return the answer about job ``uid`` in a JSON object; OrderError if it is invalid."""
    state = _text(values, "state", "")
    if state not in (OBEYED, ENDED, REFUSED):
        raise OrderError("unknown state of an answer: %r" % state[:_WORD_MAX])
    slug, text, kind = (_text(values, name, "") for name in ("slug", "text", "kind"))
    return OrderAnswer(
        uid, state, slug, text, kind, *(_number(values, name) for name in ("step", "traced", "from_ns", "to_ns"))
    )


def _policy_in_words(trace: str) -> str:
    """Return the policy in ``trace``, a text of --trace, in words."""
    word, _, value = trace.strip().partition("=")
    if word == "every" and value == "1":
        return "every step"
    phrases = {
        "off": "no step",
        "all": "every step",
        "steps": "steps %s",
        "budget": "a budget of %s",
        "every": "one step in %s",
    }
    text = phrases.get(word, word)
    return text % value if "%s" in text else text


def _text(values: Mapping[str, Any], name: str, default: str) -> str:
    value = values.get(name, default)
    if not isinstance(value, str):
        raise OrderError("%s is not a text" % name)
    # JSON allows lone surrogates, which cannot be stored as UTF-8.
    return value[:_TEXT_MAX].encode("utf-8", "replace").decode()


def _number(values: Mapping[str, Any], name: str) -> int:
    value = values.get(name, 0)
    if type(value) is not int or not 0 <= value < NEVER:
        raise OrderError("%s is not a whole number from 0" % name)
    return value


def _seconds(value: Any) -> float:
    if type(value) not in (int, float) or not 0 < value <= PATIENCE_MAX_S:
        raise OrderError("patience_s is not a number of seconds above 0 and up to %d" % PATIENCE_MAX_S)
    return float(value)
