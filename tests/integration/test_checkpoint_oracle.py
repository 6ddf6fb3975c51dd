"""Checkpoints that TensorFlow writes: tfprof reads the same values from them as TensorFlow."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.forks import ForkServer
from tfprof.cli import main as cli
from tfprof.collector.api import open_store
from tfprof.collector.imports.checkpoint import Checkpoint, SkippedTensor
from tfprof.collector.imports.files import BadFileError

pytestmark = pytest.mark.tf

ORACLE = Path(__file__).parent / "oracle" / "scripts" / "checkpoint.py"


@pytest.fixture(scope="module", params=["tf1", "tf2"])
def checkpoint_folder(
    request: pytest.FixtureRequest, plain_forks: Callable[[str], ForkServer], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A folder with a checkpoint, its graph, and the values that TensorFlow reads from it.

    The values are {name: [dtype, shape, values]}.
    """
    folder = tmp_path_factory.mktemp(request.param)
    plain_forks(request.param).output(ORACLE, folder=folder)
    return folder


def values(checkpoint_folder: Path) -> dict[str, tuple[int, list[int], list[Any]]]:
    result: dict[str, tuple[int, list[int], list[Any]]] = json.loads((checkpoint_folder / "values.json").read_text())
    return result


def test_every_value_equals_the_one_that_tensorflow_reads(checkpoint_folder: Path) -> None:
    checkpoint, skipped = Checkpoint(str(checkpoint_folder / "model-7")), set()
    assert set(checkpoint.names) == set(values(checkpoint_folder))
    for name, (dtype, shape, expected) in values(checkpoint_folder).items():
        tensor = checkpoint.tensor(name)
        if isinstance(tensor, SkippedTensor):
            skipped.add(name)
            continue
        assert (tensor.dtype, list(tensor.shape)) == (dtype, shape)
        six_digits = [float(f"{value:g}") if isinstance(value, float) else value for value in expected]
        assert list(tensor.values()) == six_digits, name
    assert skipped == {"half", "parts"}


def test_a_changed_byte_of_a_value_is_detected(checkpoint_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(checkpoint_folder, tmp_path / "copy")
    for path in (tmp_path / "copy").glob("model-7.data-*"):
        path.write_bytes(bytes(byte ^ 1 for byte in path.read_bytes()))
    checkpoint, unchanged = (
        Checkpoint(str(tmp_path / "copy" / "model-7")),
        Checkpoint(str(checkpoint_folder / "model-7")),
    )
    for name in checkpoint.names:
        tensor = unchanged.tensor(name)
        if not isinstance(tensor, SkippedTensor) and tensor.data:
            with pytest.raises(BadFileError, match=f"the checksum of '{name}' is wrong"):
                checkpoint.tensor(name)


def test_views_show_values_below_their_variables(
    checkpoint_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(tmp_path / "store")
    files = [
        "--graph_path",
        str(checkpoint_folder / "graph.pb"),
        "--checkpoint_path",
        str(checkpoint_folder / "model-7"),
    ]
    with pytest.raises(SystemExit):
        cli.main(["import", *files, "--store", store])
    assert "no value of half: its type is number 19" in capsys.readouterr().err
    for view in ("scope", "graph"):
        options_of_view = ["-select", "tensor_value", "-show_name_regexes", "int,long", "-max_depth", "100"]
        with pytest.raises(SystemExit):
            cli.main(
                [view, "last", *options_of_view, "-account_type_regexes", "_checkpoint_variables", "--store", store]
            )
        shown = capsys.readouterr().out.splitlines()
        assert shown[2:] == ["int", "[[1 -2 ],", "[3 4 ],", "],", "long", "[1099511627776 ],"]
        exact = ["--exact-tf", "-account_type_regexes", "_checkpoint_variables"]
        with pytest.raises(SystemExit):
            cli.main([view, "last", *options_of_view, *exact, "--store", store])
        lines = capsys.readouterr().out.split("Profile:\n")[1].splitlines()[2:]
        assert lines == ["  int ()", "[[1 -2 ],", "[3 4 ],", "],", "  long ()", "[1099511627776 ],"]
    options = {"select": ["tensor_value"], "show_name_regexes": ["layer/double"], "output": "none", "max_depth": 9}
    job = open_store(store).job("last")
    root = job.profile_name_scope({**options, "account_type_regexes": [".*"], "start_name_regexes": [".*"]})
    (node,) = root.children
    assert list(node.tensor_value.value_double) == pytest.approx(values(checkpoint_folder)["layer/double"][2], rel=1e-5)
    root = job.profile_name_scope(
        {**options, "account_type_regexes": [".*"], "start_name_regexes": [".*"], "select": []}
    )
    assert not root.children[0].HasField("tensor_value")
