"""When the collector writes the figures of the running jobs."""

import time

import pytest
from tfprof.collector.ingest import live_jobs
from tfprof.collector.ingest.live_jobs import LiveJobs


def test_a_busy_host_delays_no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that waits for a processor or a disk takes long, but no work."""
    written = []

    def write_text(path: str, text: str) -> None:
        time.sleep(0.1)
        written.append((path, text))

    monkeypatch.setattr(live_jobs.private_files, "write_text", write_text)
    jobs = LiveJobs()
    jobs.open(1, has_rows=False)
    for now in (100.0, 100.3, 100.5):
        jobs.write_if_due("live.json", "collector", now)
    assert [path for path, _ in written] == ["live.json"] * 2
    assert '"0000000000000001"' in written[-1][1]
