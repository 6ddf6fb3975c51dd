"""Checkpoints as TensorFlow writes them, by what TensorFlow reads of them."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tfprof.cli import main as cli
from tfprof.collector.api import open_store
from tfprof.collector.imports.checkpoint import Checkpoint, Skipped

pytestmark = pytest.mark.tf

WRITE = """
import json, os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
chance = np.random.RandomState(0)
values = {
    "layer/float": chance.randn(2, 3, 4).astype(np.float32) * 1e4,
    "layer/double": chance.randn(5),
    "int": np.array([[1, -2], [3, 4]], np.int32),
    "long": np.int64(1) << 40,
    "text": np.array([b"x", b"\\xc3\\xb6'", b"long" * 100]),
    "half": np.array([1.5], np.float16),
    "large": chance.randn(100, 50).astype(np.float32),
    "empty": np.zeros((0, 3), np.float32),
    "odd": np.array([np.inf, -np.inf, 1e-30, 123456789, 0.1], np.float32),
}
values.update({"many/%03d" % n: np.float32(n) for n in range(300)})
for name, value in values.items():
    tf.get_variable(name, initializer=tf.constant(value))
tf.get_variable("parts", shape=[10, 4], partitioner=tf.fixed_size_partitioner(2))
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    tf.train.Saver(sharded=True).save(session, "./model", global_step=7)
open("graph.pb", "wb").write(tf.get_default_graph().as_graph_def(add_shapes=True).SerializeToString())
reader = tf.train.load_checkpoint("./model-7")
def told(name, shape):
    dtype, value = reader.get_variable_to_dtype_map()[name], reader.get_tensor(name).ravel()
    return [dtype.as_datatype_enum, shape, [one.decode() for one in value] if dtype == tf.string else value.tolist()]
read = {name: told(name, list(shape)) for name, shape in reader.get_variable_to_shape_map().items()}
json.dump(read, open("values.json", "w"))
"""


@pytest.fixture(scope="module", params=["tf1", "tf2"])
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a checkpoint, its graph, and its values as TensorFlow reads them: {name: [dtype, shape, values]}."""
    folder = tmp_path_factory.mktemp(request.param)
    python = request.getfixturevalue(f"{request.param}_python")
    done = subprocess.run([python, "-c", WRITE], cwd=folder, capture_output=True, check=False, timeout=120)
    assert not done.returncode, done.stderr.decode()[-2000:]
    return folder


def values(written: Path) -> dict[str, tuple[int, list[int], list[Any]]]:
    found: dict[str, tuple[int, list[int], list[Any]]] = json.loads((written / "values.json").read_text())
    return found


def test_every_value_is_what_tensorflow_reads(written: Path) -> None:
    checkpoint, skipped = Checkpoint(str(written / "model-7")), set()
    assert set(checkpoint.names) == set(values(written))
    for name, (dtype, shape, expected) in values(written).items():
        tensor = checkpoint.tensor(name)
        if isinstance(tensor, Skipped):
            skipped.add(name)
            continue
        assert (tensor.dtype, list(tensor.shape)) == (dtype, shape)
        six_digits = [float(f"{one:g}") if isinstance(one, float) else one for one in expected]
        assert list(tensor.values()) == six_digits, name
    assert skipped == {"half", "parts"}


def test_values_are_shown_below_their_variables(
    written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(tmp_path / "store")
    files = ["--graph_path", str(written / "graph.pb"), "--checkpoint_path", str(written / "model-7")]
    with pytest.raises(SystemExit):
        cli.main(["import", *files, "--store", store])
    assert "no value of half: its type is number 19" in capsys.readouterr().err
    for view in ("scope", "graph"):
        asked = ["-select", "tensor_value", "-show_name_regexes", "int,long", "-max_depth", "100"]
        with pytest.raises(SystemExit):
            cli.main([view, "last", *asked, "-account_type_regexes", "_checkpoint_variables", "--store", store])
        shown = capsys.readouterr().out.splitlines()
        assert shown[2:] == ["int", "[[1 -2 ],", "[3 4 ],", "],", "long", "[1099511627776 ],"]
        exact = ["--exact-tf", "-account_type_regexes", "_checkpoint_variables"]
        with pytest.raises(SystemExit):
            cli.main([view, "last", *asked, *exact, "--store", store])
        lines = capsys.readouterr().out.split("Profile:\n")[1].splitlines()[2:]
        assert lines == ["  int ()", "[[1 -2 ],", "[3 4 ],", "],", "  long ()", "[1099511627776 ],"]
    options = {"select": ["tensor_value"], "show_name_regexes": ["layer/double"], "output": "none", "max_depth": 9}
    job = open_store(store).job("last")
    root = job.profile_name_scope({**options, "account_type_regexes": [".*"], "start_name_regexes": [".*"]})
    (shown,) = root.children
    assert list(shown.tensor_value.value_double) == pytest.approx(values(written)["layer/double"][2], rel=1e-5)
    root = job.profile_name_scope(
        {**options, "account_type_regexes": [".*"], "start_name_regexes": [".*"], "select": []}
    )
    assert not root.children[0].HasField("tensor_value")
