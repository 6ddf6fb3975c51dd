"""Profiles at the end of a launch, and messages if nothing was traced."""

from pathlib import Path

import pytest
from fakes.made_store import rows, trace, trace_tables, write_job
from fakes.run_metadata import run_metadata
from tfprof.cli import report
from tfprof.collector.decoders.proto.graph_pb2 import GraphDef
from tfprof.collector.proto.tfprof_log_pb2 import ProfileProto

GRAPH = GraphDef(node=[{"name": "a", "op": "Op"}]).SerializeToString()
LAUNCH = "00000000000000aa"


def write_launch(store: Path, *jobs: int, steps: int = 2) -> None:
    """Write a launch whose jobs have ``steps`` traced runs each: the 4th, the 7th, and so on."""
    for number, uid in enumerate(jobs):
        tables = trace_tables(GRAPH, [run_metadata([b"a"])] * steps)
        tables["traces"] = rows("traces", [trace(at, 4 + 3 * at, 1, 0) for at in range(steps)])
        end = {"counts": {"run": 10 + number}, "traced": steps}
        write_job(store, uid, tables if steps else {}, identity={"launch": LAUNCH, "name": f"j{number}"}, end=end)


def profile_messages(
    store: Path, folder: Path, steps: str, *options: str, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    """Return the messages about profiles at the end of the launch.

    Their paths are relative to ``folder``.
    """
    arguments = [LAUNCH, "--store", str(store), "--dump-steps", steps, "--dump-dir", str(folder), *options]
    assert report.main(arguments) == 0
    lines = capsys.readouterr().out.replace(f"{folder}/", "").splitlines()
    return [line.removeprefix("tfprof: ") for line in lines if "profile_" in line and "--store" not in line]


def steps_of(path: Path) -> list[int]:
    return list(ProfileProto.FromString(path.read_bytes()).steps)


def test_each_profile_contains_the_traced_steps_up_to_its_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_launch(tmp_path / "s", 1)
    out = tmp_path / "new" / "folder"
    assert profile_messages(tmp_path / "s", out, "3,4,5,10,200", capsys=capsys) == [
        "no profile_3: no step up to 3 was traced (--trace selects the steps)",
        "wrote profile_4: 1 traced step",
        "wrote profile_5: 1 traced step, the last is step 4",
        "wrote profile_10: 2 traced steps, the last is step 7",
        "wrote profile_200: 2 traced steps, the last is step 7; the job ended after step 10",
    ]
    assert {path.name: steps_of(path) for path in out.iterdir()} == {
        "profile_4": [4],
        "profile_5": [4],
        "profile_10": [4, 7],
        "profile_200": [4, 7],
    }


def test_several_jobs_get_a_folder_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_launch(tmp_path / "s", 0xAA00 << 48, 0xBB00 << 48)
    messages = profile_messages(tmp_path / "s", tmp_path, "4", capsys=capsys)
    assert messages == ["wrote bb00/profile_4: 1 traced step", "wrote aa00/profile_4: 1 traced step"]
    assert steps_of(tmp_path / "aa00" / "profile_4") == [4]


def test_a_quiet_launch_prints_only_missing_profiles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_launch(tmp_path / "s", 1)
    assert profile_messages(tmp_path / "s", tmp_path, "3,4", "--quiet", capsys=capsys) == [
        "no profile_3: no step up to 3 was traced (--trace selects the steps)"
    ]
    assert (tmp_path / "profile_4").exists()


def test_a_job_without_traced_steps_has_no_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_launch(tmp_path / "s", 1, steps=0)
    (message,) = [
        line
        for line in profile_messages(tmp_path / "s", tmp_path, "4,8", "--quiet", capsys=capsys)
        if "profile_" in line
    ]
    assert message.startswith("no profile_4, profile_8: no traced steps")


def test_a_launch_without_data_is_reported_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_job(tmp_path / "s", 1, {})
    arguments = ["00000000000000bb", "--store", str(tmp_path / "s"), "--dump-steps", "4", "--quiet"]
    assert report.main(arguments) == 0
    assert capsys.readouterr().out.startswith("tfprof: no profile: no data of this command reached the store")


def test_an_unwritable_folder_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_launch(tmp_path / "s", 1)
    (tmp_path / "file").touch()
    messages = profile_messages(tmp_path / "s", tmp_path / "file" / "sub", "4,7", capsys=capsys)
    assert messages == [f"no profile_{step}: Not a directory [io]" for step in (4, 7)]
