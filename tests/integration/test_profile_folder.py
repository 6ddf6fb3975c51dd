"""StepStats in the profile folder: TensorFlow's Timeline draws them like the recorded ones."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.command import caller
from fakes.forks import ForkServer

pytestmark = pytest.mark.tf
DATA = Path(__file__).parents[1] / "contract" / "data"
SCRIPT = Path(__file__).parent / "oracle" / "scripts" / "step_stats_timeline.py"


@pytest.mark.parametrize("version", ["tf1", "tf2"])
@pytest.mark.parametrize("name", ["tf1_full", "tf1_software"])
def test_the_timeline_draws_the_same_slices(
    name: str,
    version: str,
    plain_forks: Callable[[str], ForkServer],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TFPROF_STORE", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    run, recorded = caller(capsys), DATA / f"{name}.run_metadata"
    assert (
        run("import", "--graph_path", str(DATA / "tf1.graph"), "--run_meta_path", str(recorded), "--name", "tf")[0] == 0
    )
    assert run("export", "tf", "-o", "profile/")[0] == 0
    (exported,) = Path("profile/step_stats").iterdir()
    plain_forks(version).output(SCRIPT, recorded, exported.absolute(), tmp_path / "answer.json")
    original, copy = json.loads(Path("answer.json").read_text())
    assert slices(copy) == slices(original)
    assert sum(slices(copy).values()) > 50


def slices(events: list[dict[str, Any]]) -> Counter[str]:
    """Return the slices, without what the store does not keep.

    That is the order of the executions, on which lanes depend, and the time from the end of an op
    to that of its bookkeeping, which is in the durations.
    """
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    return Counter(
        json.dumps([names[event["pid"]], event["name"], event["ts"], event["args"]], sort_keys=True)
        for event in events
        if event["ph"] == "X"
    )
