"""Static facts about a job's nodes: op logs, recorded shapes, operation counts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fakes.graphs import node
from fakes.made_store import rows, trace_tables, write_job
from fakes.profiles import profile
from tfprof.collector.decoders.proto import graph_pb2
from tfprof.collector.decoders.proto.run_metadata_pb2 import RunMetadata
from tfprof.collector.query.facts import ALL_FACTS, FLOAT_OPS, GRAPH, SHAPES
from tfprof.collector.query.profile import Profile
from tfprof.collector.store.catalog import IMPORTED
from tfprof.collector.store.reader import LocalJob, LocalStore
from tfprof.collector.tfviews.nodes import Node
from tfprof.collector.tfviews.parity import DEFAULT, Parity

EXACT = Parity(exact=True)
CPU = b"/job:localhost/replica:0/task:0/device:CPU:0"
GRAPH_NODES = (
    node("x", "Placeholder", (), (-1, 5)),
    node("known", "Placeholder", (), (4, 5)),
    node("w", "VariableV2", (), (5, 7)),
    node("y", "MatMul", ["x", "w"], (-1, 7)),
    node("z", "Square", ["y"], (-1, 7)),
    node("never", "Square", ["w"], (5, 7)),
    node("two", "Split", ["axis", "y"], (-1, 3), (-1, 4)),
    node("grown", "Sub", ["y", "y"], (-1, 7)),
    node("user", "Neg", ["two:1", "^z"], (-1, 4)),
)
#: Operations of a matrix product of one row with w.
ROW_OPERATIONS = 2 * 5 * 7


def serialized_graph() -> bytes:
    """Return the graph, serialized.

    Variables and placeholders have the attribute that defines parameters.
    """
    graph = graph_pb2.GraphDef(node=GRAPH_NODES)
    for node_def in graph.node:
        if node_def.op in {"Placeholder", "VariableV2"}:
            node_def.attr["shape"].shape.CopyFrom(node_def.attr["_output_shapes"].list.shape[0])
    return graph.SerializeToString()


def step(batch: int, *, z_runs: int = 1, label: str = "", device: bytes = CPU, extra_node: str = "") -> bytes:
    """Return the RunMetadata of a step with a batch of size ``batch``.

    z runs ``z_runs`` times. ``label`` is the timeline label of the node whose name it starts with.
    ``extra_node`` runs once; its output is as large as w.
    """
    message = RunMetadata()
    stats = message.step_stats.dev_stats.add(device=device)
    sizes = {"_arg_x_0_0": (batch, 5), "w": (5, 7), "y": (batch, 7), "two": (batch, 3, batch, 4), "user": (batch, 4)}
    if extra_node:
        sizes[extra_node] = (5, 7)
    for name, dims in [*sizes.items(), *[("z", (batch, 7))] * z_runs]:
        execution = stats.node_stats.add(node_name=name.encode(), all_start_micros=10, op_end_rel_micros=3)
        if label.startswith(f"{name} = "):
            execution.timeline_label = label.encode()
        for slot, at in enumerate(range(0, len(dims), 2)):
            output = execution.output.add(slot=slot)
            output.tensor_description.dtype = 1
            shape = graph_pb2.TensorShapeProto()
            for size in dims[at : at + 2]:
                shape.dim.add(size=size)
            output.tensor_description.shape = shape.SerializeToString()
    return message.SerializeToString()


def job(folder: Path, steps: Sequence[bytes], *, log: Sequence[dict[str, Any]] = (), **identity: Any) -> LocalJob:
    """Write a job with these steps and op log, and return it."""
    state = identity.pop("state", "exited")
    tables: dict[str, Any] = trace_tables(serialized_graph(), steps) | {"op_log": rows("op_log", log)}
    filled_tables = {name: table for name, table in tables.items() if table.num_rows}
    write_job(folder / "store", 1, filled_tables, identity=identity, state=state)
    return LocalStore(folder / "store").job("last")


def nodes(job_profile: Profile | None) -> dict[str, Node]:
    """Return nodes by name."""
    assert job_profile is not None
    return {entry.name: entry for entry in job_profile.nodes}


def counts(
    stored_job: LocalJob, number: int = -1, *, parity: Parity = DEFAULT, averaged: bool = True
) -> dict[str, int]:
    """Return the operation count of each node whose count is not 0."""
    by_name = nodes(profile(stored_job, number, required_facts={FLOAT_OPS}, parity=parity, averaged=averaged))
    return {name: entry.stats.float_ops for name, entry in by_name.items() if entry.stats.float_ops}


def test_operations_are_counted_from_the_shapes_of_each_step(tmp_path: Path) -> None:
    stored_job = job(tmp_path, [step(2), step(2), step(8, z_runs=3)])
    assert counts(stored_job, 0) == {"y": 2 * ROW_OPERATIONS, "z": 14, "user": 8}
    assert counts(stored_job, 2) == {"y": 8 * ROW_OPERATIONS, "z": 3 * 56, "user": 32}
    assert counts(stored_job) == {"y": 4 * ROW_OPERATIONS, "z": (14 + 14 + 168) // 3, "user": 16}
    assert counts(stored_job, averaged=False) == {"y": 12 * ROW_OPERATIONS, "z": 196, "user": 48}


def test_a_range_of_steps_counts_only_its_steps(tmp_path: Path) -> None:
    stored_job = job(tmp_path, [step(2), step(8), step(4)])
    by_name = nodes(profile(stored_job, steps=(1, 2), required_facts={FLOAT_OPS}, averaged=False))
    assert by_name["y"].stats.float_ops == 12 * ROW_OPERATIONS
    assert by_name["y"].facts.float_ops == 8 * ROW_OPERATIONS, "the largest count of one execution"


def test_operations_of_several_jobs_add_up(tmp_path: Path) -> None:
    jobs = [job(tmp_path / "a", [step(2)]), job(tmp_path / "b", [step(8), step(8)])]
    by_name = nodes(profile(jobs, required_facts={FLOAT_OPS}, averaged=False))
    assert by_name["y"].stats.float_ops == 18 * ROW_OPERATIONS


def test_with_exact_parity_the_first_step_counts_for_all_steps_and_fed_placeholders_have_no_shape(
    tmp_path: Path,
) -> None:
    stored_job = job(tmp_path, [step(2), step(8, z_runs=3)])
    assert counts(stored_job, 0, parity=EXACT) == {"z": 14, "user": 8, "never": 35}
    assert counts(stored_job, 1, parity=EXACT) == {"z": 42, "user": 8, "never": 35}
    assert counts(stored_job, parity=EXACT) == {"z": 14 * 2, "user": 8, "never": 35}, (
        "4 iterations in 2 steps are 2 a step"
    )


def test_with_exact_parity_the_first_iteration_of_a_loop_counts_for_all_iterations(tmp_path: Path) -> None:
    loop_step = RunMetadata.FromString(step(2))
    for row_count in (6, 2, 4, 2):
        execution = loop_step.step_stats.dev_stats[0].node_stats.add(node_name=b"grown", all_start_micros=10)
        dims = [graph_pb2.TensorShapeProto.Dim(size=size) for size in (row_count, 7)]
        execution.output.add().tensor_description.shape = graph_pb2.TensorShapeProto(dim=dims).SerializeToString()
    stored_job = job(tmp_path, [step(2), loop_step.SerializeToString(), step(2)])
    assert counts(stored_job, 1, parity=EXACT)["grown"] == 4 * 6 * 7
    assert counts(stored_job, 1)["grown"] == (6 + 2 + 4 + 2) * 7


def test_executions_on_streams_and_host_devices_do_not_count(tmp_path: Path) -> None:
    metadata = step(2) + step(2, device=b"/host:CPU") + step(2, device=b"/device:GPU:0/stream:all")
    assert counts(job(tmp_path, [metadata])) == {"y": 2 * ROW_OPERATIONS, "z": 14, "user": 8}


def test_steps_with_one_batch_size_count_their_own_iterations(tmp_path: Path) -> None:
    stored_job = job(tmp_path, [step(2), step(2, z_runs=3), step(8)])
    assert counts(stored_job, averaged=False)["z"] == (2 + 3 * 2 + 8) * 7


def test_executions_on_streams_do_not_count_in_steps_of_several_batch_sizes(tmp_path: Path) -> None:
    steps = [step(batch) + step(batch, device=b"/device:GPU:0/stream:all") for batch in (2, 8)]
    assert counts(job(tmp_path, steps), averaged=False)["z"] == (2 + 8) * 7


def test_a_node_that_runs_in_a_later_step_of_the_same_kind_is_counted(tmp_path: Path) -> None:
    stored_job = job(tmp_path, [step(2), step(2, extra_node="never")])
    assert counts(stored_job)["never"] == 35
    assert "never" not in counts(stored_job, 0)


def test_with_exact_parity_the_first_shape_may_be_in_a_late_step(tmp_path: Path) -> None:
    stored_job = job(tmp_path, [step(2)] * 70 + [step(2, extra_node="grown")])
    assert counts(stored_job, 70, parity=EXACT)["grown"] == 35


def test_an_op_log_takes_precedence(tmp_path: Path) -> None:
    log = [{"name": "z", "float_ops": 1000}, {"name": "never", "float_ops": 7}, {"name": "gone", "float_ops": 9}]
    stored_job = job(tmp_path, [step(2, z_runs=3)], log=log)
    assert counts(stored_job) == {"y": 2 * ROW_OPERATIONS, "z": 3000, "user": 8}
    assert counts(stored_job, parity=EXACT) == {"z": 3000, "user": 8, "never": 7}


def test_with_exact_parity_an_imported_op_log_is_the_only_source(tmp_path: Path) -> None:
    stored_job = job(tmp_path, [step(2, z_runs=3)], log=[{"name": "z", "float_ops": 1000}], op_log=True, state=IMPORTED)
    assert counts(stored_job, parity=EXACT) == {"z": 3000}
    assert counts(stored_job) == {"y": 2 * ROW_OPERATIONS, "z": 3000, "user": 8}


def test_in_a_graph_without_steps_each_node_counts_once(tmp_path: Path) -> None:
    stored_job = job(tmp_path, [], log=[{"name": "y", "float_ops": 7}], state=IMPORTED)
    assert counts(stored_job) == counts(stored_job, parity=EXACT) == {"never": 35, "y": 7}


def test_each_type_of_an_op_log_is_listed_once_even_if_no_operations_are_counted(tmp_path: Path) -> None:
    log = [{"name": "w", "types": ["_trainable_variables", "mine"]}, {"name": "w", "types": ["mine"]}]
    by_name = nodes(profile(job(tmp_path, [step(2)], log=log), required_facts={GRAPH}))
    assert by_name["w"].op_types == (CPU.decode().lower(), "VariableV2", "_trainable_variables", "mine")
    assert by_name["w"].facts.types == ("_trainable_variables", "mine")


def test_without_exact_parity_placeholders_have_parameters_only_if_they_stand_for_a_variable(tmp_path: Path) -> None:
    stored_job = job(tmp_path, [step(2)], log=[{"name": "x", "shape": [3, 3], "types": ["_trainable_variables"]}])
    by_name = nodes(profile(stored_job, required_facts={GRAPH}))
    assert {name: by_name[name].stats.params for name in ("x", "known", "w")} == {"x": 9, "known": 0, "w": 35}
    exact_nodes = nodes(profile(stored_job, required_facts={GRAPH}, parity=EXACT))
    assert {name: exact_nodes[name].stats.params for name in ("x", "known", "w")} == {"x": 0, "known": 20, "w": 35}


def test_exact_parity_counts_variables_outside_models_and_treats_untrained_ones_as_trainable(tmp_path: Path) -> None:
    log = [{"name": "w", "types": [type_name]} for type_name in ("_trainable_variables", "_tfprof_untrained")]
    frozen_job = job(tmp_path / "frozen", [step(2)], log=log)
    outside_job = job(tmp_path / "outside", [step(2)], log=[{"name": "w", "types": ["_tfprof_state"]}])
    variables = {
        (stored_job, parity): nodes(profile(stored_job, required_facts={GRAPH}, parity=parity))["w"]
        for stored_job in (frozen_job, outside_job)
        for parity in (DEFAULT, EXACT)
    }
    assert [node.stats.params for node in variables.values()] == [35, 35, 0, 35]
    assert [node.facts.types for node in variables.values()] == [(), ("_trainable_variables",), (), ()]


def test_the_last_op_log_entry_decides_whether_a_variable_is_trainable(tmp_path: Path) -> None:
    log = [{"name": "w", "types": [type_name]} for type_name in ("_tfprof_untrained", "_trainable_variables")]
    assert nodes(profile(job(tmp_path, [step(2)], log=log), required_facts={GRAPH}))["w"].facts.types == (
        "_trainable_variables",
    )


def test_without_exact_parity_only_variables_have_parameters(tmp_path: Path) -> None:
    summed = node("summed", "AccumulateNV2", ["w", "w"], (5, 7))
    summed.attr["shape"].shape.CopyFrom(summed.attr["_output_shapes"].list.shape[0])
    tables = trace_tables(graph_pb2.GraphDef(node=[summed]).SerializeToString(), [step(2)])
    write_job(tmp_path / "store", 1, {name: table for name, table in tables.items() if table.num_rows}, state="exited")
    stored_job = LocalStore(tmp_path / "store").job("last")
    params = [
        nodes(profile(stored_job, required_facts={GRAPH}, parity=parity))["summed"].stats.params
        for parity in (DEFAULT, EXACT)
    ]
    assert params == [0, 35]


def test_input_shapes_are_the_recorded_shapes_of_the_right_output(tmp_path: Path) -> None:
    stored_job = job(tmp_path, [step(2), step(8)])
    first_step = nodes(profile(stored_job, 0, required_facts={GRAPH, SHAPES}))
    assert first_step["y"].facts.input_shapes == ((2, 5), (5, 7))
    assert first_step["user"].facts.input_shapes == ((2, 4), (2, 7))
    both_steps = nodes(profile(stored_job, required_facts={GRAPH, SHAPES}))
    assert both_steps["y"].facts.input_shapes == ((-1, 5), (5, 7))
    exact_nodes = nodes(profile(stored_job, required_facts={GRAPH, SHAPES}, parity=EXACT))
    assert exact_nodes["user"].facts.input_shapes == ((-1, 3), (-1, 7))


def test_the_number_of_uncounted_nodes_is_known(tmp_path: Path) -> None:
    stored_job = job(tmp_path, [step(2, label="y = Einsum(_arg_x_0_0, w)")])
    job_profile = profile(stored_job, required_facts={FLOAT_OPS})
    assert job_profile is not None
    assert job_profile.uncounted == 1
    assert "y" not in counts(stored_job)


def test_a_running_job_is_counted_from_its_write_ahead_log(tmp_path: Path) -> None:
    tables: dict[str, Any] = trace_tables(serialized_graph(), [step(2)])
    write_job(tmp_path / "store", 1, tables, state=None)
    stored_job = LocalStore(tmp_path / "store").job("last")
    assert counts(stored_job) == {"y": 2 * ROW_OPERATIONS, "z": 14, "user": 8}


@pytest.mark.parametrize("parity", [DEFAULT, EXACT])
def test_a_job_without_a_graph_has_no_facts(tmp_path: Path, parity: Parity) -> None:
    tables: dict[str, Any] = trace_tables(serialized_graph(), [step(2)])
    del tables["graph_nodes"]
    write_job(tmp_path / "store", 1, tables)
    by_name = nodes(profile(LocalStore(tmp_path / "store").job("last"), required_facts=ALL_FACTS, parity=parity))
    assert by_name["z"].stats.runs == 1
    assert all(not entry.facts.inputs for entry in by_name.values())


def test_steps_of_many_batch_sizes_are_read_in_portions(tmp_path: Path) -> None:
    batch_sizes = range(1, 300)
    stored_job = job(tmp_path, [step(batch) for batch in batch_sizes])
    assert counts(stored_job, averaged=False)["y"] == sum(batch_sizes) * ROW_OPERATIONS


def test_nodes_stored_after_the_names_were_read_do_no_harm(tmp_path: Path) -> None:
    from tfprof.collector.query.recorded_shapes import read_shapes

    stored_job = job(tmp_path, [step(2)])
    names = stored_job.table("names")
    few_names = pa.Table.from_pylist(
        [row for row in names.to_pylist() if row["text"] in {b"y", b"w"}], schema=names.schema
    )
    for known_names in (few_names, names):
        equivalent_steps = read_shapes(
            stored_job,
            known_names,
            stored_job.table("traces"),
            None,
            lambda reader: list(reader.equivalent_steps(["y"], ())),
        )
        assert sum(steps.trace_count for steps in equivalent_steps) == 1


def test_a_variable_of_several_replicas_counts_once(tmp_path: Path) -> None:
    names = ["dense/kernel", "dense/kernel/replica_1", "replica_1/dense/kernel", "replica_1/only", "replica_10/other"]
    shapes = [(5, 7), (5, 7), (5, 7), (5, 7), (2, 2)]
    graph = graph_pb2.GraphDef(
        node=[node(name, "VariableV2", (), shape) for name, shape in zip(names, shapes, strict=True)]
    )
    for node_def in graph.node:
        node_def.attr["shape"].shape.CopyFrom(node_def.attr["_output_shapes"].list.shape[0])
    write_job(tmp_path / "store", 1, trace_tables(graph.SerializeToString(), [step(3)]))
    job = LocalStore(tmp_path / "store").job("last")
    for parity, expected in ((DEFAULT, [35, 0, 0, 35, 4]), (EXACT, [35, 35, 35, 35, 4])):
        by_name = nodes(profile(job, required_facts={GRAPH}, parity=parity))
        assert [by_name[name].stats.params for name in names] == expected
