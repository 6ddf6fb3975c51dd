"""Decoding of `frames` records: the Python stacks of nodes.

Tests collector/decoders/auxiliary_files.py.
"""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tfprof.collector.decoders import frames as frames_module
from tfprof.collector.decoders.frames import frames
from tfprof.collector.errors import DecodeError
from tfprof.collector.store.schema import FRAMES, OP_LOG, STACKS

RECORD = {
    "files": ["train.py", "layers.py"],
    "functions": ["main", "dense"],
    "frames": [[0, 12, 0], [1, 40, 1]],
    "stacks": [[0, 1], [0], []],
    "nodes": {"dense/MatMul": 0, "x": 1, "dense/Add": 0},
}


def _json(**changes: object) -> bytes:
    return json.dumps({**RECORD, **changes}).encode()


def test_stacks_become_rows_of_frames() -> None:
    rows, stacks, _ = frames(_json(), 4)
    assert (rows.schema, stacks.schema) == (FRAMES, STACKS)
    assert [tuple(row.values()) for row in rows.to_pylist()] == [
        (4, 0, 0, "train.py", 12, "main", -1, ""),
        (4, 0, 1, "layers.py", 40, "dense", -1, ""),
        (4, 1, 0, "train.py", 12, "main", -1, ""),
    ]
    assert [tuple(row.values()) for row in stacks.to_pylist()] == [
        (4, "dense/MatMul", 0),
        (4, "x", 1),
        (4, "dense/Add", 0),
    ]


def test_the_stacks_of_a_later_record_continue_the_numbers_of_the_graph() -> None:
    rows, stacks, _ = frames(_json(first_stack=7, files=["train.py", "/x/optimizers/adam.py"], variable_ops=["x"]), 4)
    assert rows["stack"].to_pylist() == [7, 7, 8]
    assert dict(zip(stacks["name"].to_pylist(), stacks["stack"].to_pylist(), strict=True)) == {
        "dense/MatMul": 7,
        "x": 8,
        "dense/Add": 7,
    }


def test_a_path_that_is_not_utf8_loses_its_odd_bytes_only() -> None:
    rows, stacks, op_log = frames(_json(files=["tr\udce4in.py", "\ud800"], variables={"w": None}), 4)
    assert rows["file"].to_pylist() == ["tr?in.py", "?", "tr?in.py"]
    assert (stacks.num_rows, op_log.num_rows) == (3, 1)


def test_a_graph_without_stacks_has_no_rows() -> None:
    rows, stacks, op_log = frames(_json(files=[], functions=[], frames=[], stacks=[], nodes={}), 0)
    assert (rows.num_rows, stacks.num_rows, op_log.num_rows) == (0, 0, 0)


def test_first_lines_of_functions_are_stored_if_known() -> None:
    rows, _, _ = frames(_json(starts=[-1, 38]), 4)
    assert rows["start_line"].to_pylist() == [-1, 38, -1]
    assert set(rows["text"].to_pylist()) == {""}


def test_variables_become_rows_of_the_op_log() -> None:
    variables = {"w": None, "b/resource": [3, -1], "scale/resource": []}
    _, _, op_log = frames(_json(variables=variables, others={"frozen": [7]}, state={"m": None}), 4)
    assert op_log.schema == OP_LOG
    assert [tuple(row.values()) for row in op_log.to_pylist()] == [
        (4, "w", 0, ["_trainable_variables"], False, []),
        (4, "b/resource", 0, ["_trainable_variables"], False, [3, -1]),
        (4, "scale/resource", 0, ["_trainable_variables"], False, [1]),
        (4, "frozen", 0, ["_tfprof_untrained"], False, [7]),
        (4, "m", 0, ["_tfprof_state"], False, []),
    ]


OPTIMIZERS = (
    "/lib/tensorflow_core/python/training/optimizer.py",
    "/lib/tensorflow/python/keras/optimizer_v2/optimizer_v2.py",
    "/lib/keras/optimizers/__init__.py",
    "/lib/tf_keras/src/metrics/base_metric.py",
)


@pytest.mark.parametrize("file", OPTIMIZERS)
def test_a_variable_that_an_optimizer_or_metric_made_belongs_to_no_model(file: str) -> None:
    record = _json(files=["train.py", file], variable_ops=["dense/MatMul", "x"])
    assert frames(record, 4).op_log.to_pylist() == [
        {"graph": 4, "name": "dense/MatMul", "float_ops": 0, "types": ["_tfprof_state"], "code": False, "shape": []}
    ]
    parameter = _json(files=["train.py", file], variable_ops=["dense/MatMul"], variables={"dense/MatMul": None})
    assert [row["types"] for row in frames(parameter, 4).op_log.to_pylist()] == [["_trainable_variables"]]


def test_other_files_make_parameters() -> None:
    record = _json(files=["/lib/keras/src/layers/layer.py", "/job/optimizer.py"], variable_ops=["dense/MatMul"])
    assert frames(record, 4).op_log.num_rows == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"files": 3},
        {"files": [1, 2]},
        {"frames": [[0, 12]]},
        {"frames": [[2, 12, 0]]},
        {"frames": [[-1, 12, 0]]},
        {"frames": [[True, 12, 0]]},
        {"frames": [[0, "12", 0]]},
        {"frames": [[0, 1 << 80, 0]]},
        {"stacks": [[2]]},
        {"stacks": [0]},
        {"stacks": "01"},
        {"nodes": {"a": 3}},
        {"nodes": [0]},
        {"first_stack": -1},
        {"first_stack": 1 << 31},
        {"first_stack": True},
        {"first_stack": None},
        {"variable_ops": "x"},
        {"variable_ops": ["unknown"]},
        {"starts": [1]},
        {"starts": [1, "2"]},
        {"starts": None},
        {"variables": ["w"]},
        {"variables": {"w": 3}},
        {"variables": {"w": ["3"]}},
        {"variables": {"w": [1 << 70]}},
        {"variables": {"\ud800": None}},
    ],
)
def test_malformed_fields_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(DecodeError, match="frames of graph 7"):
        frames(_json(**changes), 7)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"null", b"\xff", b"[" * 100_000])
def test_other_data_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError, match="frames of graph 7"):
        frames(data, 7)


@pytest.mark.parametrize(("limit", "value"), [("ROWS_MAX", 2), ("TEXT_MAX", 30)])
def test_a_small_record_that_makes_a_large_table_is_refused(
    limit: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames_module, limit, value)
    with pytest.raises(DecodeError, match="more than"):
        frames(_json(), 0)


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=2), inner, max_size=3)),
    max_leaves=6,
)


@settings(max_examples=200)
@given(st.sampled_from([*RECORD, "starts", "variables", "first_stack"]), VALUES)
def test_random_records_are_read_or_refused(key: str, value: object) -> None:
    try:
        tables = frames(_json(**{key: value}), 0)
    except DecodeError:
        return
    for rows in tables:
        rows.validate(full=True)
