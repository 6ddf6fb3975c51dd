import pytest
from tfprof.collector.errors import NoSuchJobError
from tfprof.collector.store import catalog
from tfprof.collector.store.catalog import JobInfo, select

JOBS = [
    JobInfo(0x7F3A000000000001, "exited", {"name": "train.py", "launch": "00000000000000aa"}, opened_ns=1),
    JobInfo(0x7F3B000000000002, "exited", {"name": "eval.py"}, opened_ns=2),
    JobInfo(0x1000000000000003, "running", {"name": "train.py"}, opened_ns=4),
    JobInfo(0x2000000000000004, "exited", {"name": "eval.py"}, opened_ns=3),
]


@pytest.mark.parametrize(
    ("selector", "opened_ns"),
    [
        ("7f3a", 1),
        ("7F3B", 2),
        ("1", 4),
        ("2000000000000004", 3),
        ("last", 4),
        ("train.py", 4),
        ("00000000000000aa", 1),
    ],
)
def test_a_selector_means_one_job(selector, opened_ns):
    assert select(JOBS, selector).opened_ns == opened_ns


@pytest.mark.parametrize("selector", ["7f3", "eval.py"])
def test_an_ambiguous_selector_lists_the_candidates(selector):
    with pytest.raises(NoSuchJobError, match=r"means 2 jobs: .*eval\.py") as caught:
        select(JOBS, selector)
    assert "7f3b000000000002" in str(caught.value)


@pytest.mark.parametrize("selector", ["ffff", "other.py", "", "00000000000000ab"])
def test_a_selector_may_mean_no_job(selector):
    with pytest.raises(NoSuchJobError, match="no job"):
        select(JOBS, selector)


def test_an_empty_store_has_no_last_job():
    with pytest.raises(NoSuchJobError, match="no job was profiled"):
        select([], "last")


def test_a_job_record_is_read_as_it_was_written(tmp_path):
    info = JobInfo(
        5,
        "killed",
        {"name": "é"},
        {"traced": 3},
        {"signal": 9},
        2,
        1,
        {"spans": [0, 2]},
        {"ops": 7},
        {3: 9},
        10,
        11,
        {"id": "x"},
        {"samples": 2},
    )
    catalog.save(tmp_path, info)
    assert catalog.load(tmp_path) == info


@pytest.mark.parametrize("host", ["a", "node-7.example_b", ".", "..", "../x", ".hidden", "a/b", "ü", "", "x" * 500])
def test_the_folder_of_a_host_cannot_leave_the_folder_of_hosts(tmp_path, host):
    path = catalog.host_folder(tmp_path, host)
    assert path.parent == tmp_path / "hosts"
    path.mkdir(parents=True)
    assert path.resolve() == path
