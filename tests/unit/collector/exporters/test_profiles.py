"""Profiles for speedscope and pprof: times by stack, and timelines that speedscope accepts.

Tests collector/exporters/pprof.py, collector/exporters/speedscope.py,
collector/exporters/stacks.py.
"""

import gzip
import shutil
import subprocess
from pathlib import Path

import pytest
from fakes import ended_jobs, exported_profiles, hostile_store
from fakes.command import Run
from fakes.made_store import START_NS, rows, write_job
from fakes.many_executions import write_many_executions
from tfprof.collector.traces import job_trace

TIMES = [100 + at * 37 % 2500 for at in range(40)]


@pytest.mark.parametrize("part_rows", [7, 20_000])
def test_speedscope_has_the_time_of_each_stack_and_each_lane(
    part_rows: int, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This also holds if slices are added in many parts."""
    monkeypatch.setattr(job_trace, "PART_ROWS", part_rows)
    write_many_executions(tmp_path / "store")
    assert run("export", "last", "-o", "a.speedscope.json") == (0, "", "")
    file = exported_profiles.speedscope(Path("a.speedscope.json").read_bytes())
    sampled = [profile for profile in file["profiles"] if profile["type"] == "sampled"]
    assert [profile["name"].rpartition(": ")[2] for profile in sampled] == ["name scopes", "lines of Python"]
    for profile in sampled:
        weights = zip(profile["samples"], profile["weights"], strict=True)
        assert sum(weight for stack, weight in weights if stack[-1] == "Add") == 3 * sum(
            time for at, time in enumerate(TIMES) if at % 5 % 2
        )
        assert profile["endValue"] == 3 * sum(TIMES)
    timelines = [profile for profile in file["profiles"] if profile["type"] == "evented"]
    assert {(profile["startValue"], profile["endValue"]) for profile in timelines} == {(0, timelines[0]["endValue"])}, (
        "lanes are aligned"
    )
    events = [event for profile in timelines if "device" in profile["name"] for event in profile["events"]]
    assert len(events) == 2 * 120
    assert sum(event["at"] if event["type"] == "C" else -event["at"] for event in events) == 3 * sum(TIMES)


def test_pprof_has_every_counter_with_labels(run: Run, tmp_path: Path) -> None:
    write_many_executions(tmp_path / "store", 1)
    write_many_executions(tmp_path / "store", 2, name="other.py", host="elsewhere", pid=99)
    assert run("export", "train.py", "other.py", "-o", "a.pb", "-o", "a.pb.gz") == (0, "", "")
    data = Path("a.pb").read_bytes()
    assert gzip.decompress(Path("a.pb.gz").read_bytes()) == data
    samples = exported_profiles.pprof(data)
    assert sum(sample.values["time"] for sample in samples) == 2 * 3 * sum(TIMES)
    assert sum(sample.values["executions"] for sample in samples) == 2 * 120
    assert {(str(sample.labels["job"])[:8], sample.labels["host"], sample.labels["pid"]) for sample in samples} == {
        ("train.py", "node7", 4711),
        ("other.py", "elsewhere", 99),
    }
    assert {(sample.labels["kind"], sample.labels["step"]) for sample in samples} == {
        ("batch", step) for step in (7, 8, 9)
    }
    assert {sample.stack for sample in samples} == {("MatMul",), ("Add",)}
    assert {sample.labels["node"] for sample in samples} == {f"node_{number}" for number in range(5)}


def test_a_step_without_a_name_of_the_host_is_written(run: Run, tmp_path: Path) -> None:
    write_many_executions(tmp_path / "store", host="")
    assert run("export", "last", "--steps", "7", "-o", "a.pb") == (0, "", "")
    assert sum(sample.values["time"] for sample in exported_profiles.pprof(Path("a.pb").read_bytes())) == sum(TIMES)


@pytest.mark.skipif(shutil.which("go") is None, reason="no go, whose pprof reads the file")
def test_go_tool_pprof_reads_the_file(run: Run, tmp_path: Path) -> None:
    write_many_executions(tmp_path / "store")
    assert run("export", "last", "-o", "a.pb.gz") == (0, "", "")

    def go(*options: str) -> str:
        command = ["go", "tool", "pprof", *options, "a.pb.gz"]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout

    top = go("-top", "-unit=ns", "-nodefraction=0")
    assert f"{3 * sum(TIMES)}ns total" in top
    assert "MatMul" in top
    assert "node7" in go("-tags")
    assert "120 total" in go("-top", "-sample_index=executions", "-nodefraction=0")
    assert "accounting for 24, 20.00% of 120 total" in go("-top", "-sample_index=executions", "-tagfocus=node=node_1")


def test_hostile_texts_leave_the_files_valid(run: Run, tmp_path: Path) -> None:
    hostile_store.write(tmp_path / "store")
    assert run("export", f"{hostile_store.JOB:x}", "-o", "a.speedscope.json", "-o", "a.pb") == (0, "", "")
    file = exported_profiles.speedscope(Path("a.speedscope.json").read_bytes())
    assert hostile_store.LONG in {frame["name"] for frame in file["shared"]["frames"]}
    exported_profiles.pprof(Path("a.pb").read_bytes())
    write_many_executions(tmp_path / "store", 3, name=hostile_store.LONG, host=hostile_store.HOSTILE)
    assert run("export", "last", "-o", "b.pb") == (0, "", "")
    samples = exported_profiles.pprof(Path("b.pb").read_bytes())
    assert {sample.labels["host"] for sample in samples} == {hostile_store.COMMANDS + "\ufffd"}
    assert all(str(sample.labels["job"]).startswith(hostile_store.LONG) for sample in samples)


def test_a_job_without_traces_has_timelines_and_no_profile(run: Run, tmp_path: Path) -> None:
    ended_jobs.write(tmp_path / "store")
    assert run("export", "7f3a", "-o", "a.speedscope.json") == (0, "", "")
    (profile,) = exported_profiles.speedscope(Path("a.speedscope.json").read_bytes())["profiles"]
    assert profile["type"] == "evented"
    status, _, error = run("export", "7f3a", "-o", "a.pb")
    assert (status, error[-10:]) == (1, "[no-data]\n")
    assert not Path("a.pb").exists()


def test_a_job_with_events_only_is_a_valid_file(run: Run, tmp_path: Path) -> None:
    write_job(tmp_path / "store", 1, {"events": rows("events", [{"t_ns": START_NS, "slug": "gap", "count": 1}])})
    assert run("export", "last", "-o", "a.speedscope.json") == (0, "", "")
    assert exported_profiles.speedscope(Path("a.speedscope.json").read_bytes())["profiles"] == []
