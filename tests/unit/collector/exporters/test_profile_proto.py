"""Live and imported jobs as ProfileProtos.

Tests collector/export/code_defs.py, collector/exporters/op_log.py, cli/profile_proto.py.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from fakes.made_store import rows, trace, trace_tables, write_job
from fakes.round_trip import differences
from fakes.run_metadata import run_metadata
from tfprof.collector.decoders.proto.graph_pb2 import GraphDef
from tfprof.collector.errors import NoSuchStepError, StoreError
from tfprof.collector.export.code_defs import CodeDefs
from tfprof.collector.exporters import profile_proto as profile_proto_module
from tfprof.collector.exporters.op_log import op_log
from tfprof.collector.exporters.profile_proto import job_pieces, renumbered
from tfprof.collector.proto.tensorflow_pb2 import RunMetadata
from tfprof.collector.proto.tfprof_log_pb2 import ProfileProto
from tfprof.collector.store.reader import LocalJob, LocalStore
from tfprof.collector.tfviews.nodes import Frame
from tfprof.formats import layout

GRAPH = GraphDef(
    node=[
        {"name": "w", "op": "VariableV2"},
        {"name": "x", "op": "Split", "input": ["^w", "nowhere:3"]},
        {"name": "y", "op": "Add", "input": ["x:1", "x:2", "w"]},
        {"name": "w", "op": "Twice"},
    ]
)
STEPS = ([b"w", b"_SINK", b"RecvTensor"], [b"x", b"y", b"late"], [b"x", b"late"])


@pytest.fixture
def job(tmp_path: Path) -> LocalJob:
    """A job of three traced steps: 0, 1 and 2."""
    tables = trace_tables(GRAPH.SerializeToString(), [run_metadata(names) for names in STEPS])
    frame = {"stack": 4, "file": "train.py", "line": 0, "function": "main", "start_line": -1, "text": ""}
    tables["frames"] = rows("frames", [frame])
    tables["stacks"] = rows("stacks", [{"name": "w", "stack": 4}])
    tables["op_log"] = rows("op_log", [{"name": "w", "types": ["_trainable_variables"]}])
    write_job(tmp_path / "s", 1, tables)
    return LocalStore(tmp_path / "s").job("last")


def profile_proto(*arguments: Any, **options: Any) -> ProfileProto:
    return ProfileProto.FromString(b"".join(job_pieces(*arguments, **options)))


def nodes_by_name(profile: ProfileProto) -> dict[bytes, Any]:
    return {node.name: node for node in profile.nodes.values()}


def steps_by_name(profile: ProfileProto) -> dict[bytes, list[int]]:
    return {node.name: sorted(node.execs) for node in profile.nodes.values()}


def test_nodes_are_numbered_by_the_graph_and_then_by_their_first_run(job: LocalJob) -> None:
    profile = profile_proto(job)
    assert [profile.nodes[number].name for number in sorted(profile.nodes)] == [b"w", b"x", b"y", b"_SINK", b"late"]
    assert all(node.id == number for number, node in profile.nodes.items())
    assert list(profile.steps) == [0, 1, 2]
    assert steps_by_name(profile) == {b"w": [0], b"x": [1, 2], b"y": [1], b"_SINK": [0], b"late": [1, 2]}
    assert nodes_by_name(profile)[b"w"].op == b"VariableV2"
    assert nodes_by_name(profile)[b"_SINK"].op == b"_SINK"


def test_inputs_are_node_numbers_and_unknown_inputs_are_left_out(job: LocalJob) -> None:
    new_nodes, old_nodes = nodes_by_name(profile_proto(job)), nodes_by_name(profile_proto(job, compat="1.15"))
    assert dict(new_nodes[b"x"].inputs) == {0: 0}
    assert dict(new_nodes[b"y"].inputs) == {0: 1, 1: 1, 2: 0}
    assert dict(new_nodes[b"y"].src_output_index) == {1: 0, 0: 0}
    assert dict(old_nodes[b"y"].src_output_index) == {1: 2, 0: 0}


def test_a_range_of_steps_contains_only_their_executions(job: LocalJob) -> None:
    profile = profile_proto(job, (0, 0))
    assert list(profile.steps) == [0]
    assert steps_by_name(profile) == {b"w": [0], b"x": [], b"y": [], b"_SINK": [0]}
    assert nodes_by_name(profile)[b"x"].canonical_device == b""
    assert steps_by_name(profile_proto(job, (2, 9)))[b"late"] == [2]
    with pytest.raises(NoSuchStepError):
        profile_proto(job, (3, 9))


def test_the_file_is_the_same_in_one_piece_or_in_several(job: LocalJob, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = b"".join(job_pieces(job))
    monkeypatch.setattr(profile_proto_module, "PART_ROWS", 1)
    assert len(list(job_pieces(job))) > 5
    assert ProfileProto.FromString(b"".join(job_pieces(job))) == ProfileProto.FromString(whole)


def test_unknown_lines_and_texts_of_a_live_job_are_exported_with_the_tf_profilers_placeholders(job: LocalJob) -> None:
    profile = profile_proto(job)
    (frame,) = nodes_by_name(profile)[b"w"].trace.traces
    assert (frame.file_id, frame.lineno, frame.function_id, frame.func_start_line, frame.line_id) == (1, -1, 2, -1, 0)
    assert dict(profile.id_to_string) == {0: b"none", 1: b"train.py", 2: b"main"}
    assert profile.has_trace
    assert not nodes_by_name(profile)[b"x"].HasField("trace")
    assert list(nodes_by_name(profile)[b"w"].op_types)[-1] == b"_trainable_variables"


def test_an_op_log_has_an_entry_for_each_node_with_facts(job: LocalJob) -> None:
    (entry,) = op_log(job).log_entries
    assert (entry.name, list(entry.types), len(entry.code_def.traces)) == (b"w", [b"_trainable_variables"], 1)


def test_empty_texts_and_line_0_of_an_imported_file_are_exported_unchanged() -> None:
    stack = (Frame("", 0, "none", 0, ""),)
    code_defs = CodeDefs(literal=True)
    (frame,) = code_defs.code_def(stack).traces
    assert (frame.file_id, frame.lineno, frame.function_id, frame.func_start_line, frame.line_id) == (1, 0, 0, 0, 1)
    table: dict[int, bytes] = {}
    code_defs.fill_table(table)
    assert table == {0: b"none", 1: b""}
    assert CodeDefs().code_def((Frame("a", 1 << 40, "f"),)).traces[0].lineno == (1 << 31) - 1


def test_missing_kernels_of_a_gpu_are_recorded(tmp_path: Path) -> None:
    for uid, accelerators in enumerate([(0, 3), (1, 3), (3, 1)], 1):
        traces = [
            trace(number, number, 0, 0, accelerator=accelerator) for number, accelerator in enumerate(accelerators)
        ]
        write_job(tmp_path / "s", uid, {"traces": rows("traces", traces)})
    jobs = LocalStore(tmp_path / "s").jobs()
    assert [profile_proto(job).miss_accelerator_stream for job in jobs] == [False, True, True]


def test_an_untraced_job_cannot_be_exported(tmp_path: Path) -> None:
    write_job(tmp_path / "s", 1, {"graph_nodes": trace_tables(GRAPH.SerializeToString(), [])["graph_nodes"]})
    job = LocalStore(tmp_path / "s").job("last")
    for export in (profile_proto, op_log):
        with pytest.raises(StoreError, match=r"no traced steps: .* \[no-data\]"):
            export(job)


def renumbered_steps(*steps: tuple[int, int]) -> list[int]:
    table = rows("traces", [{**trace(number, step, 0, 0), "kind": kind} for number, (kind, step) in enumerate(steps)])
    steps_by_trace = renumbered(table, [layout.BATCH if layout.BATCH in table["kind"].to_pylist() else layout.RUN])
    return _steps_in_trace_order(
        zip(steps_by_trace["trace"].to_pylist(), steps_by_trace["step"].to_pylist(), strict=True)
    )


def _steps_in_trace_order(pairs: Iterable[tuple[int, int]]) -> list[int]:
    return [step for _, step in sorted(pairs)]


def test_steps_of_a_second_kind_follow_those_of_the_first_kind() -> None:
    assert renumbered_steps((layout.RUN, 4), (layout.RUN, 2)) == [4, 2]
    assert renumbered_steps(
        (layout.RUN, 1), (layout.BATCH, 5), (layout.RUN, 3), (layout.FUNCTION, 1), (layout.BATCH, 9)
    ) == [
        *(11, 5, 13),
        *(15, 9),
    ]
    assert renumbered_steps() == []


def test_output_bytes_of_a_live_job_belong_to_the_first_allocated_output(tmp_path: Path) -> None:
    message = RunMetadata()
    device = message.step_stats.dev_stats.add(device="/device:CPU:0")
    stats = device.node_stats.add(node_name="x", all_start_micros=1_000, op_end_rel_micros=2)
    for slot, size in ((1, 0), (2, 64), (3, 100)):
        output = stats.output.add(slot=slot)
        if size:
            output.tensor_description.allocation_description.allocated_bytes = size
    graph = GraphDef(node=[{"name": "x", "op": "Split"}])
    tables = trace_tables(graph.SerializeToString(), [message.SerializeToString()])
    assert "output_memory" not in tables, "a live job has only the sum"
    write_job(tmp_path / "s", 1, tables)
    (entry,) = nodes_by_name(profile_proto(LocalStore(tmp_path / "s").job("last")))[b"x"].execs.values()
    (memory,) = entry.memory_execs
    assert memory.output_bytes == 164
    assert {slot: output.bytes for slot, output in memory.output_memory.items()} == {2: 164}
    assert list(differences(tmp_path / "s", "last")) == []
