"""The figures of the running jobs now, in a file of the collector's runtime folder.

`tfprof top` would have to read the last ten minutes of each job's rows for them. What is here is
not needed to store anything: a reader without it reads the rows.
"""

import json
import time
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ...commands.daemons import interval_s
from ...formats import private_files
from ..records import Span
from ..summaries.live import HOST_COLUMNS, SAMPLE_COLUMNS, SAMPLES_MAX, LiveJob, host_figures

#: Shortest and longest interval between two writes (seconds), and the largest share of a core that
#: writing takes.
_INTERVALS_S: Final = (0.4, 5.0)
_SHARE: Final = 0.01
#: Time after which the figures of a job that was stored before, by another collector, are those of
#: all its rows that count (seconds).
_COMPLETE_S: Final = 600.0
#: Time without a sample after which a host is dropped (seconds).
_HOST_S: Final = 60.0


class _Host(NamedTuple):
    """The latest samples of a host, and when the last one came (monotonic)."""

    samples: deque[list[Any]]
    heard_s: float


class _Entry:
    """A job: its state, and its figures in the notation of the file; empty if they have changed."""

    def __init__(self, complete_s: float) -> None:
        self.job = LiveJob()
        self.complete_s = complete_s
        self.text = ""


class LiveJobs:
    """The running jobs of a collector, and the hosts that send samples."""

    def __init__(self) -> None:
        self._jobs: dict[int, _Entry] = {}
        self._hosts: dict[str, _Host] = {}
        self._next_write_s = 0.0

    def open(self, uid: int, *, has_rows: bool) -> None:
        """Add job ``uid``, unless it is known; ``has_rows``: whether rows of it are stored."""
        if uid not in self._jobs:
            self._jobs[uid] = _Entry(time.monotonic() + _COMPLETE_S if has_rows else 0.0)

    def close(self, uid: int) -> None:
        """Drop job ``uid``."""
        self._jobs.pop(uid, None)

    def add_spans(self, uid: int, spans: Iterable[Span], offset: int) -> None:
        """Add stored span entries; ``offset`` converts monotonic times to real times (ns)."""
        entry = self._jobs.get(uid)
        if entry is not None:
            entry.job.add_spans(
                (span.kind, span.key, span.ordinal, span.start_mono_ns + offset, span.total_ns, span.steps, span.flags)
                for span in spans
            )
            entry.text = ""

    def add_sample(self, uid: int, t_ns: int, values: Mapping[str, Any]) -> None:
        """Add a stored sample of job ``uid``."""
        entry = self._jobs.get(uid)
        if entry is not None:
            entry.job.add_samples([_values(SAMPLE_COLUMNS, t_ns, values)])
            entry.text = ""

    def add_alert(self, uid: int, found_ns: int, slug: str) -> None:
        """Add a stored alert about job ``uid``."""
        entry = self._jobs.get(uid)
        if entry is not None:
            entry.job.alert = max(entry.job.alert or (0, ""), (found_ns, slug))
            entry.text = ""

    def add_names(self, uid: int, names: pa.Table) -> None:
        """Add stored rows of NAMES of job ``uid``."""
        entry = self._jobs.get(uid)
        if entry is not None:
            entry.job.add_names(names)
            entry.text = ""

    def add_host_sample(self, host: str, t_ns: int, values: Mapping[str, Any]) -> None:
        """Add a stored sample of ``host``."""
        samples = self._hosts[host].samples if host in self._hosts else deque(maxlen=SAMPLES_MAX)
        samples.append(_values(HOST_COLUMNS, t_ns, values))
        self._hosts[host] = _Host(samples, time.monotonic())

    def write_if_due(self, path: str, collector: str, now: float) -> None:
        """Write the figures to ``path`` if that is due, ``collector`` being the id of this one.

        OSError if that fails. ``now``: monotonic clock in seconds.
        """
        if now < self._next_write_s or not self._jobs:
            return
        start_s = time.thread_time()
        try:
            private_files.write_text(path, self._text(collector, now))
        finally:
            took_s = time.thread_time() - start_s
            self._next_write_s = now + interval_s(took_s, _SHARE, _INTERVALS_S)

    def _text(self, collector: str, now: float) -> str:
        jobs = []
        for uid, entry in self._jobs.items():
            if now >= entry.complete_s:
                entry.text = entry.text or json.dumps(entry.job.figures().document())
                jobs.append(f'"{uid:016x}": {entry.text}')
        self._hosts = {name: host for name, host in self._hosts.items() if now - host.heard_s < _HOST_S}
        hosts = {name: host_figures(host.samples) for name, host in self._hosts.items()}
        head = json.dumps({"collector": collector, "written_ns": time.time_ns(), "hosts": hosts})
        return f'{head[:-1]}, "jobs": {{{", ".join(jobs)}}}}}'


def _values(columns: Iterable[str], t_ns: int, values: Mapping[str, Any]) -> list[Any]:
    return [t_ns if name == "t_ns" else values.get(name) or 0 for name in columns]
