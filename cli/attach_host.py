"""`tfprof attach --host`: the agent of another host attaches, and its job is steered from here."""

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from ..collector.client import give
from ..collector.documents.attached import Unattached, attached_of
from ..collector.numbers import duration
from ..collector.query.order_targets import jobs_for_order
from ..collector.render import order_text
from ..collector.store.catalog import MAY_CONTINUE, integer_of
from ..collector.store.opening import open_reader
from ..collector.store.protocols import JobReader
from ..collector.summaries.jobs import channel_words, main_steps
from ..commands.streams import note, print_lines
from ..formats import orders
from ..formats.errors import TfprofError
from ..formats.ids import hex_id
from ..formats.orders import Order
from ..formats.requests import ATTACH
from .command import store_lines, width
from .hosts import one_reply
from .job_names import short_id
from .outputs import Outputs, write_outputs
from .report import report
from .trace import giver

#: Time limits for the job to appear in the store here, and for its data after it is detached; poll
#: interval (seconds).
FOUND_S: Final = 30.0
_STORED_S: Final = 60.0
_POLL_S: Final = 0.5


class NotStoredError(TfprofError):
    """The job that another host has attached to does not appear in the store."""

    slug = "not-stored"


def attach_on(store: str, host: str, pid: int, options: Mapping[str, str], steps: int | None, outputs: Outputs) -> int:
    """Attach to process ``pid`` of ``host``; return the exit status.

    ``options``: those of the command there. With ``steps``, wait until they are traced, and detach.
    """
    reply = one_reply(store, host, ATTACH, pid, options)
    try:
        attached = reply.content(attached_of)
    except TfprofError as error:
        note(f"{reply.host} {pid}: {error}")
        return 1
    if isinstance(attached, Unattached):
        note(f"{reply.host} {pid}: {attached.text} [{attached.slug}]")
        return 1
    title = f"{reply.host} {pid} {attached.name}".rstrip()
    stop = f", longest stop {duration(attached.stopped_ns)}" if attached.stopped_ns else ""
    note(f"{title}: attached by {attached.method}{stop}")
    job = _Job(store, reply.host, hex_id(attached.uid))
    if steps is None:
        short = job.id
        note(f"{title}: its steps are shown by  tfprof follow {short}; detach it with  tfprof detach {short}")
        for line in store_lines(store):
            note(line)
        return 0
    try:
        with suppress(KeyboardInterrupt):
            _await_steps(job, steps)
    finally:
        status = _detach(job)
    return _print_outputs(job, outputs) or status


class _Job(NamedTuple):
    """The job ``uid`` in ``store``, which must be a job of ``host``."""

    store: str
    host: str
    uid: str

    @property
    def id(self) -> str:
        """The start of the id, by which users name it."""
        return short_id(self.uid, self.store)

    @property
    def reader(self) -> JobReader | None:
        """The job, None if it is not stored yet."""
        with suppress(TfprofError):
            job = open_reader(self.store).job(self.uid)
            return job if job.info.host == self.host else None
        return None


def _await_steps(job: _Job, steps: int) -> None:
    """Wait until the first ``steps`` steps, or the job, are over; NotStoredError without it."""
    deadline = time.monotonic() + FOUND_S
    while (reader := job.reader) is None:
        if time.monotonic() > deadline:
            raise NotStoredError(f"no job {job.uid} of {job.host} is stored here after {FOUND_S:g} s")
        time.sleep(_POLL_S)
    while reader is not None and reader.info.state in MAY_CONTINUE:
        words = channel_words(reader.info)
        if integer_of(words, "traced") >= steps or main_steps(words)[1] > steps:
            return
        time.sleep(_POLL_S)
        reader = job.reader


def _detach(job: _Job) -> int:
    """Order the job to detach, and wait until its data is stored; return the exit status."""
    if job.reader is None:
        note(f"{job.id}: not detached: no such job of {job.host} is stored here")
        return 1
    targets = jobs_for_order(open_reader(job.store), [job.uid])
    status = 0
    order = Order(orders.DETACH, giver())
    for target, answer in give(job.store, targets, order):
        is_over = answer.state == orders.OBEYED or answer.slug in ("job-gone", "job-detached")
        status = status if is_over else 1
        print_lines(order_text.lines(target, order, answer, None, width() or 100))
    deadline = time.monotonic() + _STORED_S
    while not status and (reader := job.reader) is not None and reader.info.state in MAY_CONTINUE:
        if time.monotonic() > deadline:
            note(f"{job.id}: some data is not stored yet")
            return 1
        time.sleep(_POLL_S)
    return status


def _print_outputs(job: _Job, outputs: Outputs) -> int:
    reader = job.reader
    if reader is None:
        return 1
    if outputs.views:
        launch = str(reader.info.identity.get("launch"))
        print_lines(report(open_reader(job.store), launch, None, width() or 120))
    written = list(write_outputs([reader], [job.id], outputs.paths))
    for text, _ in written:
        note(text)
    return int(not all(is_written for _, is_written in written))
