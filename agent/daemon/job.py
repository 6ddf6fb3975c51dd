"""One profiled process: its channel, identity, resource usage and end."""

import os
import time
from collections.abc import Callable
from typing import Any, Final

from ...formats import given_up
from ...formats.ids import hex_id
from .. import identity, launches
from ..launches import Launch
from ..processes import ProcessTree
from ..rings import InvalidChannelError
from ..transport.message_queue import Outbox, Send
from .finder import FoundChannel
from .host import TreeSampler

#: Minimum interval of COUNTERS messages and of the heartbeat in the channel (seconds).
COUNTERS_S: Final = 2.0
#: Minimum interval of OPEN messages after a changed hello (seconds).
HELLO_S: Final = 1.0
#: Time for which a job counts as active after its end or the last answer about it (seconds).
ACTIVE_S: Final = 5.0
#: Maximum wait for the launcher's report of how its child ended (seconds).
LAUNCHER_WAIT_S: Final = 2.0


class Job:
    """One channel of a launch, from its discovery to the collector's ack of its end."""

    def __init__(self, found_channel: FoundChannel, launch: Launch, host: str) -> None:
        self.channel = found_channel.channel
        self.inode = found_channel.inode
        self.owner = found_channel.owner
        self.uid = found_channel.channel.identity.uid
        self.launch = launch.launch
        # If the process was gone before it was found, only the pid in its own namespace is known.
        self.pid = found_channel.owner.pid if found_channel.owner else found_channel.channel.identity.pid
        self.outbox = Outbox(found_channel.channel)
        self.state = "running"
        self.error: str | None = None
        self.served_s = 0.0  # time of the last turn in which all its due messages were sent
        self._tree_sampler = TreeSampler()
        self._last_sample: dict[str, Any] = {}
        self._fixed_identity = _fixed_identity(found_channel, launch, host)
        self._sent_generation = -1
        self._sent_counters: dict[str, Any] = {}
        self._last_counters_s = 0.0
        self._next_hello_s = 0.0
        self._gone_s = 0.0
        self._gone_ns = 0
        self._agent_lost = 0
        self.channel.set_word("agent_pid", os.getpid())

    @property
    def hex(self) -> str:
        """The uid in the form used in files and output."""
        return hex_id(self.uid)

    @property
    def is_running(self) -> bool:
        """Whether the process of the job had the channel at the last check."""
        return not self._gone_s

    def _identity(self, hello: dict[str, Any]) -> dict[str, Any]:
        return {**identity.accepted_hello(hello), **self._fixed_identity}

    def give_up(self, instance_dir: str) -> None:
        """Write identity and end of the job to a file for the collector; OSError on failure."""
        end = self._end(launches.read(instance_dir, self.launch), float("inf")) or {}
        given_up.write(instance_dir, self.uid, self._identity(self.channel.hello()), {**self.channel.counters(), **end})

    def queue_changes(self, now: float) -> None:
        """Queue changes: the identity after a new hello, the counters every COUNTERS_S."""
        generation = self.channel.hello_generation()
        if generation != self._sent_generation and (now >= self._next_hello_s or not self.is_running):
            self._next_hello_s = now + HELLO_S
            hello = self.channel.hello()
            if hello or self._sent_generation < 0:
                self._sent_generation = generation if hello else 0
                self.outbox.opens.put(self._identity(hello), self._sent_generation)
        if now >= self._last_counters_s + COUNTERS_S:
            self._last_counters_s = now
            self.channel.set_word("agent_beat_ns", time.monotonic_ns())
            self._note_agent_lost()
            counters = self.channel.counters()
            if counters != self._sent_counters:
                self._sent_counters = counters
                self.outbox.counters.put(counters)

    def _note_agent_lost(self) -> None:
        """Queue an event if the job has stopped tracing because no agent was running."""
        agent_lost = self.channel.word("agent_lost")
        if agent_lost and not self._agent_lost:
            text = "no agent ran for 30 s: no step is traced until the next order (tfprof trace)"
            self.outbox.events.put({"slug": "agent-lost", "text": text, "count": 1, "t_ns": time.time_ns()})
        self._agent_lost = agent_lost

    def send_due(self, now: float, send: Send, room: int, share: int) -> int:
        """Send due messages, return the bytes of records sent; a broken channel is read no more."""
        try:
            return self.outbox.send_due(now, send, room, share)
        except InvalidChannelError as error:
            self.error = str(error)
            self.outbox.give_up(error)
            return 0

    @property
    def is_transferring(self) -> bool:
        """Whether records await an ack, or so many wait that they are sent at once."""
        return self._query_outbox(lambda: self.outbox.is_transferring)

    @property
    def wants_answers(self) -> bool:
        """Whether an answer of the collector must be handled at once."""
        return self._query_outbox(lambda: self.outbox.wants_answers)

    @property
    def is_filling(self) -> bool:
        """Whether the job has ended, or unacked data fills much of a ring."""
        return self._query_outbox(lambda: self.outbox.is_filling)

    @property
    def is_ending(self) -> bool:
        """Whether the process has ended and messages about it are unanswered."""
        return not self.is_running and self.outbox.unanswered > 0

    @property
    def has_more_to_do(self) -> bool:
        """Whether the next turn follows at once: many records wait, or the job has ended."""
        return not self.is_running or self._query_outbox(lambda: self.outbox.must_flush)

    def _query_outbox(self, query: Callable[[], bool]) -> bool:
        try:
            return query()
        except InvalidChannelError:
            return True  # the next `send_due` finds the error, too, and gives the channel up

    def is_active(self, now: float) -> bool:
        """Whether the collector takes the job's data, and its end or last answer is recent."""
        return self.outbox.stall is None and now < max(self._gone_s, self.outbox.resending.last_answer_s) + ACTIVE_S

    def has_just_ended(self, now: float) -> bool:
        """Whether the job ended recently.

        Its launcher may then still report how the job ended, and ask for the result.
        """
        return not self.is_running and now < self._gone_s + LAUNCHER_WAIT_S

    def sample(self, tree: ProcessTree, excluded_pids: frozenset[int]) -> dict[str, Any]:
        """Return the current usage of the job's processes; after their end, their last usage."""
        if self.is_running and self.owner is not None:
            self._last_sample = self._tree_sampler.sample(
                tree.subtree(self.owner.pid, excluded_pids - {self.owner.pid})
            )
        return self._last_sample

    @property
    def unsaved_records(self) -> int:
        """The number of records that are neither stored nor in the spool."""
        return max(0, self.channel.word("records") - self.outbox.saved_records)

    @property
    def is_detached(self) -> bool:
        """Whether the shim is disarmed, so that no more data follows."""
        return bool(self.channel.word("detached"))

    # -- the end ---------------------------------------------------------------------------------
    def note_gone(self, now: float) -> None:
        """Record that the job writes no more.

        Its process has ended, executed another program or been detached.
        """
        self._gone_s, self._gone_ns = now, time.time_ns()
        self.queue_changes(now)  # names of the job's last second
        self.outbox.end()

    def close_if_over(self, instance_dir: str, now: float) -> None:
        """Queue the CLOSE once the process is gone and all its data is acked."""
        if self.is_running or len(self.outbox.closes) or not self._is_drained():
            return
        end = self._end(launches.read(instance_dir, self.launch), now)
        if end is not None:
            self.state = end["state"]
            self.outbox.closes.put({**self.channel.counters(), **end}, 1)

    def _is_drained(self) -> bool:
        try:
            return self.outbox.is_drained
        except InvalidChannelError as error:
            self.error = str(error)
            self.outbox.give_up(error)
            return True

    def _end(self, launch: Launch | None, now: float) -> dict[str, Any] | None:
        """Return state, status, signal and end time (real ns) of the job.

        None while the launcher may still report them.
        """
        if self.error is not None or self.is_detached:
            state = "detached" if self.error is None else "lost"
            return {**launches.end_of(None, self.pid, self._gone_ns), "state": state}
        is_reported = launch is None or launch.job_pid != self.pid or launch.ended_ns or launch.has_become_job
        is_due = is_reported or now >= self._gone_s + LAUNCHER_WAIT_S
        return launches.end_of(launch, self.pid, self._gone_ns) if is_due else None

    def summary(self) -> dict[str, Any]:
        """Return the entry for the launch result and the status file."""
        counters = self.channel.counters()
        return {
            "uid": self.hex,
            "pid": self.pid,
            "state": self.state,
            "records": counters["records"],
            "acked": self.outbox.acked_records,
            "spooled": self.outbox.is_spooled,
            "lag_bytes": max(0, counters["head"] - self.channel.records.tail),
            "dropped_records": counters["dropped_records"],
            "dropped_traces": counters["dropped_traces"],
            "dropped_spans": counters["dropped_spans"],
            "refused": self.outbox.refused,
            "error": self.error,
        }


def _fixed_identity(found_channel: FoundChannel, launch: Launch, host: str) -> dict[str, Any]:
    """Return the identity fields that a hello cannot change.

    `name` and `command` are present only where the launcher recorded them.
    """
    channel, owner = found_channel.channel, found_channel.owner
    environ = identity.environment_of(owner.pid) if owner else {}
    fields: dict[str, Any] = {
        "uid": hex_id(channel.identity.uid),
        "pid": owner.pid if owner else channel.identity.pid,
        "started": owner.started if owner else None,
        "user": identity.user_name(channel.user_id),
        "user_id": channel.user_id,
        "host": host,
        "launch": hex_id(launch.launch),
        "rank": identity.rank(environ),
        "folder": identity.folder_of(owner.pid) if owner else None,
        "group": identity.group(environ),
        "tags": (launch.tags or {}) | (identity.process_tags(owner.pid) if owner else {}),
        "created_real_ns": channel.created_real_ns,
    }
    if launch.name is not None:
        fields["name"] = launch.name
    if launch.command is not None:
        fields["command"] = launch.command
    return fields
