"""A job that numbers its records and steps, and the check that all of them are stored once."""

from typing import Any

from fakes.channel_job import OPEN_CHANNEL
from tfprof.collector.store.protocols import JobReader


def numbered_job(steps: int) -> str:
    """Return the code of a job of ``steps`` steps of 5 ms, with a record for each."""
    return f"""{OPEN_CHANNEL}
for number in range(1, {steps + 1}):
    writer.put(json.dumps({{"slug": "fake", "text": str(number)}}).encode())
    writer.put_span(number)
    time.sleep(0.005)
"""


def assert_stored_once(job: JobReader, steps: int, samples_min: int) -> list[int]:
    """Check that all records and steps are stored in order, and no sample twice.

    Return the times of the samples (ns), of which there are at least ``samples_min``.
    """
    texts = [event["text"] for event in job.table("events").to_pylist() if event["slug"] == "fake"]
    assert texts == [str(number) for number in range(1, steps + 1)]
    assert job.table("spans")["ordinal"].to_pylist() == list(range(1, steps + 1))
    times: list[Any] = job.table("samples")["t_ns"].to_pylist()
    assert len(times) >= samples_min
    assert len(set(times)) == len(times)
    return times
