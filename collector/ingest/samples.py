"""SAMPLES messages: the samples of a host and of the jobs on it."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from ...commands.streams import WARNING, log
from ...formats import wire
from ...formats.wire import Head
from ..decoders.columns import INT64_MAX
from ..errors import FormatError, StoreError, TfprofError
from ..records import document
from ..store.writer import LocalStoreWriter
from .failures import Failures
from .guarded_detector import GuardedDetector
from .jobs import OpenJobs
from .parsing import integer, sample_row

#: Maximum number of REOPENs that answer one SAMPLES message. The agent sends the message again and
#: then gets the others. Hundreds of REOPENs for each message would fill the agent's queue, and
#: ZeroMQ would drop other answers to this agent.
REOPENS_MAX: Final = 16
#: Slugs of StoreErrors that do not end by themselves.
_LASTING: Final = frozenset({"store-damaged", "store-foreign", "store-version"})
_UID: Final = re.compile(r"[0-9a-fA-F]{1,16}")


class Samples:
    """Stores samples; `lost` counts samples of hosts and jobs with a damaged file."""

    def __init__(self, store: LocalStoreWriter, jobs: OpenJobs, failures: Failures, detector: GuardedDetector) -> None:
        self.lost = 0
        self._store = store
        self._jobs = jobs
        self._failures = failures
        self._detector = detector

    def take(self, host: str, head: Head, body: memoryview, node: str | None = None) -> list[Head]:
        """Store the samples of ``host`` and of the jobs on it, and return the answers.

        ``node``: as for `OpenJobs.take`.
        Samples of jobs that have ended, are in quarantine or failed to open are dropped. If a job
        is unknown, nothing is stored, and the answers are REOPENs for at most REOPENS_MAX jobs.
        Samples of a damaged host or job are lost, so that the agent sends those of the others.
        """
        values = document(body)
        t_ns = integer(values, "t_ns", -1)
        job_samples, host_sample = values.get("jobs", {}), values.get("host", {})
        if not 0 <= t_ns < INT64_MAX or not isinstance(job_samples, dict) or not isinstance(host_sample, dict):
            raise FormatError("samples with an invalid time, host or jobs")
        samples_by_uid = {_uid(text): _object(sample) for text, sample in job_samples.items()}
        if reopens := [Head(wire.REOPEN, uid) for uid in samples_by_uid if not self._jobs.knows(uid)]:
            return reopens[:REOPENS_MAX]
        for uid in samples_by_uid:
            self._jobs.check_node(uid, node)
        errors = []
        if host_sample:
            errors += self._try_to_store(0, partial(self._store_host_sample, host, head.last, t_ns, host_sample))
        for uid in samples_by_uid.keys() & self._jobs.open.keys():
            store_sample = partial(self._jobs.open[uid].sample, head.last, t_ns, samples_by_uid[uid])
            errors += self._try_to_store(uid, store_sample)
        if temporary_errors := [error for error in errors if error.slug not in _LASTING]:
            raise temporary_errors[0]
        if errors and not self.lost:
            log(f"tfprof: samples are lost: {errors[0]}", level=WARNING)
        self.lost += len(errors)
        return [Head(wire.ACK, 0, wire.SAMPLES, head.first, head.last)]

    def _try_to_store(self, uid: int, action: Callable[[], None]) -> list[StoreError]:
        """Run ``action``, which stores a sample of job ``uid``; return its StoreError, if any.

        ``uid`` is 0 for a sample of the host. Any other TfprofError is raised: the sample is
        invalid. All other errors are counted for job ``uid``, so that the other jobs are served.
        """
        try:
            action()
        except StoreError as error:
            return [error]
        except TfprofError:
            raise
        except Exception as error:  # noqa: BLE001  # the failure stays within this job
            self._failures.count_failure(uid, error)
        return []

    def _store_host_sample(self, host: str, number: int, t_ns: int, values: Mapping[str, Any]) -> None:
        row = sample_row(values, t_ns, "host_samples")
        writer = self._store.host(host)
        if wire.is_repeated(number, writer.acked(wire.SAMPLES)):
            return
        try:
            writer.append({"host_samples": row}, wire.SAMPLES, number)
        except StoreError:
            if not writer.is_gone:
                raise
            self._store.forget(writer)
            self._store.host(host).append({"host_samples": row}, wire.SAMPLES, number)
        self._detector.add_host_sample(host, t_ns, values)


def _uid(text: str) -> int:
    if not _UID.fullmatch(text):
        raise FormatError(f"{text[:40]!r} is not the id of a job")
    return int(text, 16)


def _object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise FormatError("a sample is not an object")
    return value
