"""The job file has what the list of jobs shows of samples and traces."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.made_store import rows
from tfprof.collector.errors import StoreError
from tfprof.collector.query.listing import job_listing
from tfprof.collector.store import catalog
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.store.writer import LocalStoreWriter
from tfprof.collector.summaries.jobs import Usage
from tfprof.formats import layout

UID = 7
SECOND = 10**9


def samples(*seconds: int, rss: int = 5) -> dict[str, object]:
    """Return samples at ``seconds``, of a job that uses 0.75 CPUs."""
    return {
        "samples": rows(
            "samples",
            [
                {"t_ns": at * SECOND, "cpu_user_s": 0.5 * at, "cpu_system_s": 0.25 * at, "rss_bytes": rss * at}
                for at in seconds
            ],
        )
    }


def traces(*kinds: int) -> dict[str, object]:
    return {"traces": rows("traces", [{"trace": number, "kind": kind} for number, kind in enumerate(kinds)])}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Path]:
    """A store in which a job is open until the test is over."""
    writer = LocalStoreWriter(tmp_path / "store", "testhost")
    job = writer.job(UID)
    job.set_identity({"name": "a.py"})
    job.append(samples(1, 2))
    job.append(samples(3, rss=9))
    job.append(traces(layout.RUN, layout.RUN, layout.TRAIN))
    job.set_counters({"counts": {"run": 9}, "times": {"run": 90}})
    job.sync_if_due(1e9)
    yield writer.path
    writer.close()


def change_job_file(store: Path, **values: object) -> None:
    folder = catalog.job_folder(store, UID)
    (folder / catalog.JOB_FILE).write_text(json.dumps(json.loads(catalog.load(folder).dump()) | values))


def listed(store: Path) -> tuple[Usage, int | None]:
    (job,) = job_listing(LocalStore(store), 0).jobs
    return job.usage, job.traced


@pytest.mark.parametrize("lacks", [(), ("usage", "traced")], ids=["job file", "tables, of an older collector"])
def test_the_list_of_jobs_has_the_same_figures_from_either_source(store: Path, lacks: tuple[str, ...]) -> None:
    change_job_file(store, **dict.fromkeys(lacks))
    assert listed(store) == (Usage(0.75, 27), 2)


def test_a_new_collector_continues_the_totals(store: Path, tmp_path: Path) -> None:
    job = LocalStoreWriter(tmp_path / "other", "testhost").job(UID)
    job.append(samples(1, 2))
    job.append(traces(layout.RUN))
    job.release()
    job = LocalStoreWriter(tmp_path / "other", "otherhost").job(UID)
    job.append(samples(5))
    job.append(traces(layout.RUN))
    job.close("exited")
    info = catalog.load(job.folder)
    assert info.usage == {
        "t_ns": [1e9, 5e9],
        "cpu_user_s": [0.5, 2.5],
        "cpu_system_s": [0.25, 1.25],
        "rss_bytes": [5, 25],
    }
    assert info.traced == {str(layout.RUN): 2}


def test_samples_that_are_no_numbers_do_not_count(tmp_path: Path) -> None:
    writer = LocalStoreWriter(tmp_path / "store", "testhost")
    job = writer.job(UID)
    odd = {"t_ns": 2 * SECOND, "cpu_user_s": math.nan, "cpu_system_s": math.inf, "rss_bytes": 1}
    job.append({"samples": rows("samples", [odd])})
    job.append(samples(4))
    job.close("exited")
    assert listed(tmp_path / "store") == (Usage(1.5, 20), 0)


@pytest.mark.parametrize(
    "values",
    [
        {"usage": {"t_ns": [1, 2]}},
        {"usage": {name: [1] for name in catalog.USAGE_COLUMNS}},
        {"usage": {name: [1, "2"] for name in catalog.USAGE_COLUMNS}},
        {"usage": {name: [1, math.inf] for name in catalog.USAGE_COLUMNS}},
        {"usage": dict.fromkeys(catalog.USAGE_COLUMNS, 5)},
        {"usage": 1},
        {"traced": {"1": "2"}},
        {"traced": []},
    ],
)
def test_invalid_totals_are_a_damaged_job_file(store: Path, values: dict[str, object]) -> None:
    change_job_file(store, **values)
    with pytest.raises(StoreError, match=r"job\.json is damaged"):
        catalog.load(catalog.job_folder(store, UID))


def test_a_job_whose_segments_are_damaged_is_opened_with_unknown_totals(tmp_path: Path) -> None:
    path = tmp_path / "store"
    job = LocalStoreWriter(path, "testhost").job(UID)
    job.append(samples(1))
    job.close("exited")
    next(job.folder.glob("samples-*")).write_bytes(b"PAR1")
    job = LocalStoreWriter(path, "otherhost").job(UID)
    job.append(traces(layout.RUN))
    job.close("exited")
    info = catalog.load(job.folder)
    assert replace(info, usage=None, traced=None) == info
    (listed_job,) = job_listing(LocalStore(path), 0).jobs
    assert listed_job.row.state == "damaged"
