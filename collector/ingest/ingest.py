"""The parts that store what agents send, from a message to the acks."""

import json
from typing import Any, NamedTuple

from ...formats import wire
from ...formats.wire import Head
from ..decoders.decode import Decoder
from ..store.shared import Owner
from ..store.writer import LocalStoreWriter
from .failures import FailureCallback, Failures
from .guarded_detector import GuardedDetector
from .job import LAST_NUMBERS
from .jobs import OpenJobs
from .parsing import integer
from .samples import Samples
from .slices import Slices
from .sockets import Sockets
from .upkeep import Upkeep


class Ingest(NamedTuple):
    """The open jobs of a collector, and what works for them."""

    store: LocalStoreWriter
    failures: Failures
    jobs: OpenJobs
    samples: Samples
    slices: Slices
    upkeep: Upkeep

    def end_given_up_job(
        self,
        uid: int,
        identity: dict[str, Any],
        end: dict[str, Any],
        event: dict[str, Any] | None = None,
        node: str | None = None,
    ) -> bool:
        """End job ``uid``, whose remaining data an agent has given up, and count that data as lost.

        ``identity``, ``event`` and ``end`` are the bodies of OPEN, EVENT and CLOSE; ``node``: as
        for `OpenJobs.take`. The job keeps what is stored of its identity and its end. Return
        whether the job has ended; otherwise the caller tries again. FormatError if one of the
        bodies is invalid.
        """
        jobs = self.jobs
        if jobs.has_ended(uid):
            return True
        if uid in jobs.open and jobs.open[uid].is_busy:
            return False  # records that are being stored are not lost
        jobs.check_node(uid, node)
        info = self.store.job(uid).info
        if info.closed_ns is not None:
            self.store.release(uid)
            return True
        jobs.take(Head(wire.OPEN, uid), _body({**identity, **info.identity}), node)
        job = jobs.open.get(uid)
        if job is None:
            return False
        if event is not None:
            jobs.take(Head(wire.EVENT, uid, 0, 1, 1), _body(event), node)
        for about, name in LAST_NUMBERS:
            job.note_lost(about, integer(end, name, 0), "given-up")
        jobs.take(Head(wire.CLOSE, uid), _body(end), node)
        for _ in self.slices.store(uid):  # no agent waits for the answers
            pass
        return jobs.has_ended(uid)

    def end_revoked(self, sockets: Sockets) -> None:
        """End jobs of nodes that may send no more as lost; a later OPEN makes one run again."""
        if not sockets.has_new_nodes:
            return
        nodes = {uid: node for uid in self.jobs.open if (node := self.jobs.node_of(uid)) is not None}
        revoked = {uid: node for uid, node in nodes.items() if not sockets.admits(node)}
        have_ended = True
        for uid, node in revoked.items():
            event = {"slug": wire.KEY_REVOKED, "text": f"the key of {node} was revoked"}
            have_ended &= self.end_given_up_job(uid, {}, {"state": "lost"}, event, node)
        sockets.has_new_nodes = not have_ended


def _body(values: dict[str, Any]) -> memoryview:
    return memoryview(json.dumps(values).encode())


def make_ingest(
    store: LocalStoreWriter, decoder: Decoder, report: FailureCallback, owner: Owner | None = None
) -> Ingest:
    """Return the parts for ``store``; ``report`` is called with every internal error.

    ``owner``: the verified user of all jobs, in a shared store.
    """
    failures, detector = Failures(report), GuardedDetector(report)
    jobs = OpenJobs(store, decoder, failures, detector, owner)
    samples = Samples(store, jobs, failures, detector)
    return Ingest(store, failures, jobs, samples, Slices(jobs, failures), Upkeep(store, jobs, failures, detector))
