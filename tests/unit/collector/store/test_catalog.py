import pytest
from tfprof.collector.store import catalog
from tfprof.collector.store.catalog import JobInfo


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


@pytest.mark.parametrize(
    ("identity", "host", "pid"),
    [
        ({"host": "node7", "pid": 4711}, "node7", 4711),
        ({}, "", 0),
        ({"host": None, "pid": None}, "", 0),
        ({"host": 7, "pid": "4711"}, "7", 0),
        ({"pid": 1 << 70}, "", 0),
    ],
)
def test_host_and_pid_are_empty_and_0_if_the_identity_has_none(identity, host, pid):
    info = JobInfo(1, identity=identity)
    assert (info.host, info.pid) == (host, pid)
