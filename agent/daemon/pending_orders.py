"""Orders to the jobs of this agent: each is written, checked and answered in bounded time."""

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...formats import orders, wire
from ...formats.errors import FormatError, TfprofError, VersionError
from ...formats.ids import hex_id
from ...formats.orders import JobGoneError, Order, OrderAnswer
from ...formats.policy import NEVER
from ...formats.version import CHANNEL_VERSION
from ...formats.wire import Head
from .. import control
from ..channels import ChannelReader
from ..transport.message_queue import Send, encode
from .detaching import Detaching
from .job import Job

#: An order is refused when the job has been stopped for this time (seconds).
STOPPED_S: Final = 2.0
#: Number of orders above which answered ones are forgotten; a repeated order gets the same answer.
REMEMBERED_MAX: Final = 256
#: Time limit for storing the traced steps after the end of an order (seconds).
STORED_S: Final = 30.0
#: Slug of the answer to an order that another one replaced.
REPLACED: Final = "order-replaced"


@dataclass
class _OrderProgress:
    """The progress of one order: policy number, time of writing (real ns), last answer."""

    job: Job
    order: Order
    policy_number: int
    deadline_s: float
    written_ns: int
    counts: Mapping[str, int]
    stopped_s: float = 0.0
    detaching: Detaching | None = None
    answer: OrderAnswer | None = None
    final_answer: OrderAnswer | None = None  # sent once all traced steps are stored
    records_end: int = 0  # position in the ring that must be acked first
    store_deadline_s: float = 0.0
    is_done: bool = False

    @property
    def is_pending(self) -> bool:
        """Whether the job has not applied the order yet."""
        return self.answer is None

    @property
    def is_in_force(self) -> bool:
        """Whether the job has applied the order, which ends by itself and has not ended."""
        return not (self.is_pending or self.is_done) and self.final_answer is None


class PendingOrders:
    """The orders of one agent; `take` accepts one, `check` checks all of them in each turn.

    ``refusal`` returns the reason why any order is refused now, None if orders are obeyed.
    """

    def __init__(
        self, jobs: Mapping[int, Job], send: Send, refusal: Callable[[], TfprofError | None] = lambda: None
    ) -> None:
        self._jobs = jobs
        self._send = send
        self._refusal = refusal
        self._orders: OrderedDict[int, _OrderProgress] = OrderedDict()

    @property
    def has_pending(self) -> bool:
        """Whether any order is not applied yet."""
        return any(progress.is_pending for progress in self._orders.values())

    @property
    def has_unstored_steps(self) -> bool:
        """Whether the traced steps of an ended order are being stored."""
        return any(progress.final_answer is not None and not progress.is_done for progress in self._orders.values())

    def take(self, head: Head, body: Mapping[str, Any], now: float) -> None:
        """Write the order ``head.last`` for job ``head.uid``; answer a repeated order again."""
        refusal = self._refusal()
        if refusal is not None:
            self._send_refusal(head, refusal)
            return
        earlier_order = self._orders.get(head.last)
        if earlier_order is not None:
            if earlier_order.answer is not None:
                self._send_answer(head.last, earlier_order.answer)
            return
        try:
            self._write(head, orders.order_of(body), now)
        except TfprofError as error:
            self._send_refusal(head, error)

    def check(self, now: float) -> None:
        """Answer orders that were applied, have timed out, or have ended."""
        for number, progress in list(self._orders.items()):
            if progress.is_done:
                continue
            (self._check_applied if progress.is_pending else self._check_ended)(number, progress, now)
        done_numbers = [number for number, progress in self._orders.items() if progress.is_done]
        for number in done_numbers[: max(0, len(self._orders) - REMEMBERED_MAX)]:
            del self._orders[number]

    def _write(self, head: Head, order: Order, now: float) -> None:
        job = self._jobs.get(head.uid)
        if job is None:
            raise JobGoneError("the job has ended")
        channel = job.channel
        if channel.version != CHANNEL_VERSION:
            raise VersionError("channel", channel.version, CHANNEL_VERSION)
        if head.last and channel.word("policy_order") == head.last:  # an earlier agent wrote the order
            policy_number = channel.word("policy")
        elif not job.is_running:
            raise JobGoneError("the job has ended")
        elif channel.word("detached"):
            raise TfprofError("tfprof was detached from the job", "job-detached")
        elif order.gives_way and control.has_order(channel):
            raise TfprofError("another order is in force", "order-in-force")
        else:
            policy_number = _ACTIONS[order.action](job, head.last, order)
        counts = channel.counters()["counts"]
        progress = _OrderProgress(job, order, policy_number, now + order.patience_s, time.time_ns(), counts)
        progress.detaching = Detaching(job, now) if order.action == orders.DETACH else None
        self._orders[head.last] = progress

    def _check_applied(self, number: int, progress: _OrderProgress, now: float) -> None:
        """Check whether the job applies the order; withdraw the order after its time limit."""
        channel = progress.job.channel
        if self._jobs.get(progress.job.uid) is not progress.job:  # the channel is closed, too
            self._refuse(number, progress, JobGoneError("the job is gone"))
            return
        seen_policy = channel.word("policy_seen")
        if seen_policy == progress.policy_number or (
            progress.order.action == orders.DETACH and channel.word("detached")
        ):
            answer = OrderAnswer(progress.job.uid, orders.OBEYED, from_ns=progress.written_ns)
            if seen_policy == progress.policy_number:
                kind = channel.kinds().get(channel.word("order_kind"))
                answer = answer._replace(kind=kind.name if kind else "", step=_limited_word(channel, "order_step"))
            first_step = f" from {answer.kind} step {answer.step} on" if answer.kind else ""
            self._answer(number, progress, answer, f"obeyed{first_step}")
            progress.is_done = not progress.order.ends_by_itself
        elif channel.word("policy_refused") == progress.policy_number:
            self._refuse(number, progress, FormatError("the job finds the policy invalid", "trace-policy"))
        elif channel.word("policy") != progress.policy_number:
            self._refuse(number, progress, TfprofError("another order was given before a step began", REPLACED))
        elif (error := _obstacle(progress, now)) is not None:
            self._withdraw(number, progress, error, now)
        elif progress.detaching is not None:
            progress.detaching.check(now)

    def _withdraw(self, number: int, progress: _OrderProgress, error: TfprofError, now: float) -> None:
        """Withdraw an order that the job does not apply, because of ``error``, and refuse it."""
        channel, text = progress.job.channel, error.args[0]
        if progress.job.is_running:
            control.withdraw(channel)
            if channel.word("policy_seen") == progress.policy_number:  # the job has applied it meanwhile
                progress.policy_number = _ACTIONS[progress.order.action](progress.job, number, progress.order)
                progress.deadline_s = now + progress.order.patience_s
                return
            if any(other.job is progress.job and other.is_in_force for other in self._orders.values()):
                text += "; the order in force ends, too"
        if progress.detaching is not None:
            progress.detaching.withdraw()
            text += f"; without a step: {progress.detaching.error}" if progress.detaching.error else ""
        self._refuse(number, progress, TfprofError(text, error.slug))

    def _check_ended(self, number: int, progress: _OrderProgress, now: float) -> None:
        """Check whether the order has ended; answer when its traced steps are stored."""
        channel, outbox = progress.job.channel, progress.job.outbox
        is_open = self._jobs.get(progress.job.uid) is progress.job
        if progress.final_answer is None:
            is_over = not is_open or not progress.job.is_running or channel.word("detached")
            if not is_over and channel.word("order_over") < progress.policy_number >= channel.word("policy_seen"):
                return
            end = OrderAnswer(progress.job.uid, orders.ENDED, from_ns=progress.written_ns, to_ns=time.time_ns())
            if is_open:
                if channel.word("policy_seen") == progress.policy_number:
                    end = end._replace(traced=_limited_word(channel, "order_traced"))
                else:  # the next order counts its own steps
                    end = end._replace(slug=REPLACED, text="another order was given")
                progress.records_end = channel.word("head")
                outbox.send_now()
            progress.final_answer, progress.store_deadline_s = end, now + STORED_S
        answer = progress.final_answer
        is_stored = outbox.records.acked >= progress.records_end and not outbox.is_spooled
        if not is_open or is_stored or now > progress.store_deadline_s:
            result = f"ended, {answer.text}" if answer.text else f"ended after {answer.traced} traced steps"
            self._answer(number, progress, answer, result)
            progress.is_done = True

    def _refuse(self, number: int, progress: _OrderProgress, error: TfprofError) -> None:
        answer = OrderAnswer(progress.job.uid, orders.REFUSED, error.slug, error.args[0])
        self._answer(number, progress, answer, f"not obeyed, {error.args[0]}")
        progress.is_done = True

    def _answer(self, number: int, progress: _OrderProgress, answer: OrderAnswer, result: str) -> None:
        """Send the answer, and queue an event of the job with the ``result``."""
        progress.answer = answer
        if self._jobs.get(progress.job.uid) is progress.job:
            text = f"order {hex_id(number)} of {progress.order.giver}, {progress.order}: {result}"
            progress.job.outbox.events.put(
                {"slug": _EVENTS[answer.state], "text": text, "count": 1, "t_ns": time.time_ns()}
            )
        self._send_answer(number, answer)

    def _send_refusal(self, head: Head, error: TfprofError) -> None:
        """Refuse an order that was not written."""
        self._send_answer(head.last, OrderAnswer(head.uid, orders.REFUSED, error.slug, error.args[0]))

    def _send_answer(self, number: int, answer: OrderAnswer) -> None:
        """Send an answer; if that fails, the client repeats its order."""
        self._send(Head(wire.ANSWER, answer.uid, wire.ORDER, 0, number), encode(answer.document()))


def _limited_word(channel: ChannelReader, name: str) -> int:
    """Return the word ``name`` of the job, limited to the range of numbers in an answer."""
    return min(channel.word(name), NEVER - 1)


def _obstacle(progress: _OrderProgress, now: float) -> TfprofError | None:
    """Return the reason why the job does not apply the order, None while it still may."""
    if not progress.job.is_running:
        return JobGoneError("the job ended before a step began")
    is_stopped = progress.job.owner is not None and progress.job.owner.is_stopped
    progress.stopped_s = (progress.stopped_s or now) if is_stopped else 0.0
    if is_stopped and now >= min(progress.deadline_s, progress.stopped_s + STOPPED_S):
        return TfprofError("the job is stopped, by SIGSTOP or by a debugger", "job-stopped")
    if now < progress.deadline_s:
        return None
    text = f"no step that can be traced began within {progress.order.patience_s:g} s"
    if progress.job.channel.counters()["counts"] == progress.counts:
        text = f"no step began within {progress.order.patience_s:g} s: the job is in one long step, or between steps"
    return TfprofError(text, "no-step-began")


def _trace(job: Job, number: int, order: Order) -> int:
    end_ns = time.monotonic_ns() + order.for_ns if order.for_ns else 0
    return control.write_policy(job.channel, order.policy, number, order.steps, end_ns)


_ACTIONS: Final[Mapping[str, Callable[[Job, int, Order], int]]] = {
    orders.TRACE: _trace,
    orders.END: lambda job, number, _order: control.end_order(job.channel, number),
    orders.DETACH: lambda job, number, _order: control.detach(job.channel, number),
}
#: Slug of the event that records an answer, by the answer's state.
_EVENTS: Final = {orders.OBEYED: "order-given", orders.REFUSED: "order-given", orders.ENDED: "order-ended"}
