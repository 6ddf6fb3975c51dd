"""The files of a launch: description and result."""

import json
import os
import time
from pathlib import Path

import pytest
from tfprof.agent import launches
from tfprof.agent.launches import Launch, LeftChannel, Result


@pytest.fixture
def instance_dir(tmp_path: Path) -> str:
    (tmp_path / "launches").mkdir()
    return str(tmp_path)


LAUNCH = Launch(0xAB, 12, 34, "/store", "host", "user", "name", ["a", "b"], {"rank": "1"}, 13, 99, None, 9)


JOB = {"uid": "ff", "state": "exited", "records": 2, "acked": 1, "dropped_traces": 0, "dropped_spans": 0}


def test_a_description_round_trips(instance_dir) -> None:
    launches.write(instance_dir, LAUNCH)
    assert launches.read(instance_dir, 0xAB) == LAUNCH
    assert launches.list_launches(instance_dir) == [0xAB]


def test_a_result_round_trips(instance_dir) -> None:
    result = Result(0xAB, True, 7, [JOB], [], {"slug": "store-full", "text": "full"})
    launches.write_result(instance_dir, result)
    assert launches.read_result(instance_dir, 0xAB) == result
    assert launches.list_launches(instance_dir) == []


def test_the_state_of_a_left_channel_round_trips(instance_dir) -> None:
    left = LeftChannel(0xCD, {"name": "a.py"}, {"records": 3})
    launches.write_left(instance_dir, 0xAB, left)
    assert launches.read_left(instance_dir, 0xAB, 0xCD) == left
    assert launches.read_left(instance_dir, 0xAB, 0xCE) is None
    assert launches.list_launches(instance_dir) == []
    for text in ("{}", '{"hello": [], "counters": {}}', "["):
        Path(instance_dir, "launches", "00000000000000ab-00000000000000cd.left").write_text(text)
        assert launches.read_left(instance_dir, 0xAB, 0xCD) is None


@pytest.mark.parametrize(
    "change",
    [
        *({"pid": "self"}, {"tags": ["a"]}, {"tags": {"a": 1}}, {"command": "ls"}, {"command": [1]}),
        *({"ended_ns": None}, {"launch": 0xAC}, {"started_ns": "now"}, {"name": 7}, {"status": []}),
    ],
)
def test_a_description_with_a_field_of_another_type_is_invalid(instance_dir, change) -> None:
    launches.write(instance_dir, LAUNCH)
    assert launches.read(instance_dir, 0xAB) is not None
    text = json.dumps({**LAUNCH._asdict(), **change})
    Path(instance_dir, "launches", "00000000000000ab.json").write_text(text)
    assert launches.read(instance_dir, 0xAB) is None


@pytest.mark.parametrize(
    "change",
    [
        *({"jobs": [{}]}, {"jobs": ["ff"]}, {"jobs": None}, {"jobs": [{**JOB, "acked": "1"}]}, {"progress": None}),
        *({"refused": [{}]}, {"refused": 7}, {"stall": {}}, {"stall": "full"}, {"complete": 1}, {"strange": 1}),
    ],
)
def test_a_result_of_another_release_or_a_damaged_one_is_ignored(instance_dir, change) -> None:
    result = Result(0xAB, True, 7, [JOB], [{"slug": "a", "text": "b"}])
    launches.write_result(instance_dir, result)
    assert launches.read_result(instance_dir, 0xAB) == result
    Path(instance_dir, "launches", "00000000000000ab.done").write_text(json.dumps({**result._asdict(), **change}))
    assert launches.read_result(instance_dir, 0xAB) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"launch": 1, "strange": 2}'])
def test_an_invalid_description_is_ignored(instance_dir, text: str) -> None:
    Path(instance_dir, "launches", "00000000000000ab.json").write_text(text)
    assert launches.read(instance_dir, 0xAB) is None


def test_old_files_are_removed(instance_dir) -> None:
    launches.write(instance_dir, LAUNCH)
    launches.write(instance_dir, LAUNCH._replace(launch=0xCD))
    launches.write(instance_dir, LAUNCH._replace(launch=0xEF))
    Path(instance_dir, "launches", "000-a-folder").mkdir()
    Path(instance_dir, "launches", "000-a-link").symlink_to("nowhere")
    old = time.time() - launches.RETENTION_S - 10
    for name in ("00000000000000ab.json", "00000000000000ef.json", "000-a-folder"):
        os.utime(Path(instance_dir, "launches", name), (old, old))
    launches.remove_old_files(instance_dir, time.time(), used_launches={0xEF})
    assert launches.read(instance_dir, 0xEF) is not None
    assert sorted(launches.list_launches(instance_dir)) == [0xCD, 0xEF]
