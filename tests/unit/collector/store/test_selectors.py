"""The words that select a job of a store."""

import time

import pytest
from tfprof.collector.errors import NoSuchJobError
from tfprof.collector.store.catalog import JobInfo
from tfprof.collector.store.selectors import select, short_ids

MINUTE_NS = 60 * 10**9
NOW_NS = time.time_ns() // MINUTE_NS * MINUTE_NS
LAUNCH = "00000000000000aa"


def job(uid: int, name: str, minutes_ago: int, state: str = "exited", **identity: object) -> JobInfo:
    return JobInfo(uid, state, {"name": name, **identity}, opened_ns=NOW_NS - minutes_ago * MINUTE_NS)


JOBS = [
    job(0x7F3A000000000001, "train.py", 90, launch=LAUNCH, pid=7),
    job(0x7F3B000000000002, "eval.py", 80, state="running"),
    job(0x1000000000000003, "train.py", 50, pid=4711),
    job(0x2000000000000004, "eval.py", 60),
    job(0xEEEE000000000005, "eval_all.py", 40),
    job(0xADDA000000000006, "a~1@b.py", 30),
]


def at(minutes_ago: int, form: str = "%Y-%m-%dT%H:%M") -> str:
    return time.strftime(form, time.localtime((NOW_NS - minutes_ago * MINUTE_NS) / 1e9))


@pytest.mark.parametrize(
    ("selector", "minutes_ago"),
    [
        ("7f3a", 90),
        ("7F3B", 80),
        ("1", 50),
        ("2000000000000004", 60),
        ("last", 30),
        ("last~2", 50),
        ("train.py", 50),
        ("train.py~1", 90),
        ("train~1", 90),
        ("tr", 50),
        ("TRAIN", 50),
        ("eval.py", 60),
        ("eval", 60),
        ("eval_", 40),
        ("a~1@b.py", 30),
        ("a~1@b.py~0", 30),
        (LAUNCH, 90),
        (f"train@{at(50)}", 50),
        (f"train@{at(51)}", 90),
        ("train@70m", 90),
        ("4711", 50),
        (f"last~1@{at(60)}", 80),
    ],
)
def test_a_selector_means_one_job(selector: str, minutes_ago: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: NOW_NS)  # the test may run long after the tests were collected
    assert select(JOBS, selector).opened_ns == NOW_NS - minutes_ago * MINUTE_NS


def test_a_time_of_day_lasts_as_long_as_it_is_precise() -> None:
    late_in_the_minute = JobInfo(5, "exited", {"name": "train.py"}, opened_ns=NOW_NS - MINUTE_NS + 59 * 10**9)
    assert select([late_in_the_minute], f"train@{at(1, '%H:%M')}") == late_in_the_minute
    with pytest.raises(NoSuchJobError):
        select([late_in_the_minute], f"train@{at(1, '%H:%M:%S')}")


def test_the_time_of_an_imported_job_is_that_of_its_start() -> None:
    imported = [
        JobInfo(number, "imported", {"name": "logs", "created_real_ns": NOW_NS - ago * MINUTE_NS}, opened_ns=NOW_NS)
        for number, ago in ((1, 100), (2, 200))
    ]
    assert select(imported, "logs@90m") == imported[0]
    assert select(imported, "logs@150m") == select(imported, "logs") == imported[1]


@pytest.mark.parametrize(("selector", "count"), [("7f3", 2), ("eva", 3)])
def test_an_ambiguous_selector_lists_times_and_short_ids(selector: str, count: int) -> None:
    with pytest.raises(NoSuchJobError, match=rf"means {count} jobs: ") as caught:
        select(JOBS, selector)
    assert f"7f3b eval.py of {at(80, '%Y-%m-%dT%H:%M:%S')} (running)" in str(caught.value)


def test_the_processes_of_a_launch_are_listed() -> None:
    workers = [job(uid << 60, f"worker{uid}.py", 1, launch=LAUNCH, pid=uid) for uid in (1, 2)]
    with pytest.raises(NoSuchJobError, match="means 2 jobs"):
        select(workers, LAUNCH)


def test_a_name_does_not_mean_a_process_that_the_job_forked() -> None:
    parent = job(1, "train.py", 5, launch=LAUNCH, pid=100, ppid=1)
    child = job(2, "train.py", 4, launch=LAUNCH, pid=101, ppid=100)
    second_script = job(3, "train.py", 3, launch=LAUNCH, pid=102, ppid=1)
    assert select([parent, child], "train.py") == parent
    assert select([parent, child, second_script], "train.py") == second_script
    assert select([parent, child], "last") == child


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("ffff", "no job 'ffff': `tfprof jobs`"),
        ("trian.py", "did you mean train.py?"),
        ("", "no job"),
        ("train~9", "no job 'train~9', only 1000 train.py"),
        (f"train@{at(91)}", "only 1000 train.py"),
        ("train@noon", "'noon' is not a time"),
        ("00000000000000ab", "no job"),
    ],
)
def test_a_selector_may_mean_no_job(selector: str, message: str) -> None:
    with pytest.raises(NoSuchJobError, match="no job") as caught:
        select(JOBS, selector)
    assert message in str(caught.value)


def test_an_empty_store_has_no_last_job() -> None:
    with pytest.raises(NoSuchJobError, match="no job was profiled"):
        select([], "last")


def test_short_ids_are_unique() -> None:
    assert short_ids(["12345678", "12349999", "ffff0000"]) == {
        "12345678": "12345",
        "12349999": "12349",
        "ffff0000": "ffff",
    }
