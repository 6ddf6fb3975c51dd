"""Import of op logs: the entries of a node are merged as in the TF profiler.

Tests collector/imports/stacks.py.
"""

import pytest
from tfprof.collector.imports.files import BadFileError
from tfprof.collector.imports.op_log import OpLog, op_log
from tfprof.collector.proto.tensorflow_pb2 import GraphDef
from tfprof.collector.proto.tfprof_log_pb2 import CodeDef, OpLogProto

STRINGS = {0: b"none", 1: b"a.py", 2: b"main"}
STACK = CodeDef(traces=[{"file_id": 1, "lineno": 7, "function_id": 2, "func_start_line": 3}])
OTHER_STACK = CodeDef(traces=[{"file": b"old.py", "lineno": 1, "function": b"f", "line": b"x = 1"}, *STACK.traces])


def read(*entries: dict[str, object], strings: dict[int, bytes] | None = None) -> OpLog:
    message = OpLogProto(log_entries=entries, id_to_string=STRINGS if strings is None else strings)
    return op_log(message, {"a", "b", "c"}, "log")


def test_entries_of_one_node_are_merged() -> None:
    log = read(
        {"name": b"a", "float_ops": 5, "types": [b"x", b"y"]},
        {"name": b"b", "float_ops": 1},
        {"name": b"a", "types": [b"y", b"z"], "code_def": STACK},
        {"name": b"a", "float_ops": 7, "code_def": OTHER_STACK},
    )
    rows = log.rows["op_log"].to_pylist()
    assert [(row["name"], row["float_ops"], row["types"], row["code"]) for row in rows] == [
        ("a", 7, ["x", "y", "z"], True),
        ("b", 1, [], False),
    ]
    assert log.ignored == 0


def test_a_type_that_an_entry_repeats_is_stored_once() -> None:
    log = read({"name": b"a", "types": [b"x", b"y", b"x"]})
    assert log.rows["op_log"]["types"].to_pylist() == [["x", "y"]]


def test_a_node_has_its_first_stack_and_shares_it_with_others() -> None:
    log = read(
        {"name": b"a", "code_def": STACK}, {"name": b"b", "code_def": STACK}, {"name": b"c", "code_def": OTHER_STACK}
    )
    assert log.rows["stacks"].to_pylist() == [
        {"graph": 0, "name": "a", "stack": 0},
        {"graph": 0, "name": "b", "stack": 0},
        {"graph": 0, "name": "c", "stack": 1},
    ]
    frames = [tuple(row.values()) for row in log.rows["frames"].to_pylist()]
    assert frames == [
        (0, 0, 0, "a.py", 7, "main", 3, "none"),
        (0, 1, 0, "old.py", 1, "f", 0, "x = 1"),
        (0, 1, 1, "a.py", 7, "main", 3, "none"),
    ]


def test_an_empty_stack_is_a_stack() -> None:
    log = read({"name": b"a", "code_def": CodeDef()})
    assert log.rows["op_log"].to_pylist()[0]["code"]
    assert log.rows["stacks"].num_rows == 1
    assert not log.rows["frames"].num_rows


def test_entries_without_a_node_are_counted() -> None:
    log = read({"name": b"a", "float_ops": 1}, {"name": b"x", "float_ops": 1}, {"name": b"y", "types": [b"t"]})
    assert log.ignored == 2
    assert log.rows["op_log"].num_rows == 1


def test_a_text_that_is_not_in_the_table_is_refused() -> None:
    with pytest.raises(BadFileError, match="log is damaged: a stack refers to text 1, which its table does not have"):
        read({"name": b"a", "code_def": STACK}, strings={0: b"none"})


@pytest.mark.parametrize("field", ["name", "types"])
def test_a_text_that_is_not_utf8_is_refused(field: str) -> None:
    with pytest.raises(BadFileError, match="not UTF-8"):
        read({"name": b"a", field: b"\xff" if field == "name" else [b"\xff"]})


@pytest.mark.parametrize(
    "data", [b"", GraphDef(node=[{"name": "a", "op": "b", "attr": {"x": {"i": 1}}}]).SerializeToString()]
)
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(BadFileError, match="log is not a valid OpLogProto"):
        op_log(OpLogProto.FromString(data), {"a"}, "log")
