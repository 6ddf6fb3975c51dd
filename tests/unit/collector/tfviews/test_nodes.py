"""Node statistics as the TF profiler counts them."""

import pyarrow as pa
from fakes.nodes import CPU, GPU, STREAM, graph, names, node_row, rollup
from tfprof.collector.tfviews.nodes import average, merge_jobs, nodes_from_rollup, total_of, with_counts
from tfprof.collector.tfviews.parity import Parity

UNIT_TIMES = pa.schema([("node", pa.uint32()), ("device", pa.uint32()), ("ns", pa.int64())])


def build(*tables, averaged=True, parity=Parity(exact=True)):  # noqa: B008  # immutable
    return with_counts(nodes_from_rollup(*tables), averaged=averaged, parity=parity)


def test_times_of_units_are_divided_by_the_number_of_steps_and_rounded() -> None:
    rows = [{"node": 0, "device": 0, "runs": 6, "sum_us": 11, "requested_bytes": 7}, node_row(0, 2, 0)]
    times = pa.table({"node": [0, 0], "device": [0, 1], "ns": [10_000, 500]}).cast(UNIT_TIMES)
    table = rollup([*rows[:1], {"node": 0, "device": 1, "runs": 2}, *rows[1:]])
    (node,) = nodes_from_rollup(table, names(["a"], [CPU, STREAM]), graph(("a", "Add")), times=times)
    assert node.stats[:5] == (6, 10_500, 500, 10_000, 7)
    (node,) = with_counts([node], steps=3)
    assert node.stats[:5] == (3, 3_500, 167, 3_333, 3)


def test_times_of_units_that_did_not_run_are_0() -> None:
    rows = rollup([{"node": 0, "device": 0, "sum_us": 11}, node_row(0, 2, 0)])
    (node,) = nodes_from_rollup(rows, names(["a"], [CPU]), graph(), times=UNIT_TIMES.empty_table())
    assert node.stats.micros == 0


def test_counters_are_divided_by_the_number_of_traces_in_which_the_node_has_an_entry() -> None:
    rows = rollup([{"node": 0, "device": 0, "runs": 5, "sum_us": 11, "requested_bytes": 7}, node_row(0, 2, 0)])
    (node,) = build(rows, names(["a"], [CPU]), graph(("a", "Add")))
    assert (node.stats.runs, node.stats.cpu_micros, node.stats.micros, node.stats.bytes) == (2, 5, 5, 3)


def test_sums_are_not_divided_on_request() -> None:
    rows = rollup([{"node": 0, "device": 0, "runs": 5, "sum_us": 11}, node_row(0, 2, 0)])
    (node,) = build(rows, names(["a"], [CPU]), graph(), averaged=False)
    assert (node.stats.runs, node.stats.micros) == (5, 11)


def test_a_negative_total_of_several_steps_wraps_as_in_the_tf_profiler() -> None:
    assert average(-3, 1) == -3
    assert average(-3, 2) == (2**64 - 3) // 2
    assert average(7, 2) == 3
    assert average(7, 0) == 0


def test_only_rows_of_the_canonical_device_count() -> None:
    rows = rollup(
        [
            {"node": 0, "device": 0, "runs": 1, "sum_us": 10, "output_bytes": 8},
            {"node": 0, "device": 1, "runs": 1, "sum_us": 99, "output_bytes": 99},
            node_row(0, 1, 0),
        ]
    )
    (node,) = build(rows, names(["a"], [GPU, CPU]), graph())
    assert (node.devices, node.stats.micros, node.stats.output_bytes) == ((GPU.lower(),), 10, 8)


def test_streams_of_all_kernels_are_accelerator_time_and_other_streams_are_not() -> None:
    rows = rollup(
        [
            {"node": 0, "device": 0, "runs": 1, "sum_us": 10},
            {"node": 0, "device": 1, "runs": 3, "sum_us": 300},
            {"node": 0, "device": 2, "runs": 3, "sum_us": 300},
            node_row(0, 1, 0),
        ]
    )
    (node,) = build(rows, names(["a"], [GPU, STREAM, "/device:GPU:0/stream:14"]), graph())
    stats = node.stats
    assert (stats.cpu_micros, stats.accelerator_micros, stats.micros, stats.runs) == (10, 300, 310, 1)


def test_a_node_without_a_graph_has_its_name_as_op_type() -> None:
    rows = rollup([{"node": 0, "device": 0, "runs": 1, "sum_us": 1}, node_row(0, 1, 0)])
    assert [node.op for node in build(rows, names(["_arg_x_0_0"], [CPU]), graph())] == ["_arg_x_0_0"]


def test_a_node_without_a_graph_has_the_op_type_from_the_profiler() -> None:
    rows = rollup([{"node": 0, "device": 0, "runs": 1, "sum_us": 1}, node_row(0, 1, 0)])
    assert [node.op for node in build(rows, names(["dense/MatMul"], [CPU]), graph(), {0: "MatMul"})] == ["MatMul"]


def test_merged_jobs_take_the_op_type_from_a_job_with_a_graph() -> None:
    rows = rollup([{"node": 0, "device": 0, "runs": 1, "sum_us": 1}, node_row(0, 1, 0)])
    bare, known = (build(rows, names(["a"], [CPU]), graph(*nodes)) for nodes in ((), [("a", "Add")]))
    assert [node.op for jobs in ([bare, known], [known, bare], [bare, bare]) for node in merge_jobs(jobs)] == [
        "Add",
        "Add",
        "a",
    ]


def test_recv_source_and_memcpy_are_nodes_only_if_a_graph_has_them() -> None:
    node_names = ["RecvTensor", "_SOURCE", "MEMCPYHtoD"]
    rows = rollup([node_row(number, 1, 0) for number in range(3)])
    assert build(rows, names(node_names, [CPU]), graph()) == []
    assert [node.op for node in build(rows, names(node_names, [CPU]), graph(("_SOURCE", "NoOp")))] == ["NoOp"]


def test_nodes_that_never_ran_are_included_and_all_are_in_name_order() -> None:
    rows = rollup([{"node": 0, "device": 0, "runs": 1, "sum_us": 1}, node_row(0, 1, 0)])
    nodes = build(rows, names(["b"], [CPU]), graph(("c", "Const"), ("a", "Const"), ("a", "Add")))
    assert [(node.name, node.op, node.devices) for node in nodes] == [
        ("a", "Const", ()),
        ("b", "b", (CPU.lower(),)),
        ("c", "Const", ()),
    ]
    assert nodes[0].op_types == ("Const",)
    assert nodes[1].op_types == (CPU.lower(), "b")
    assert total_of(nodes).micros == 1


def test_the_total_of_no_nodes_is_0() -> None:
    assert total_of([]).runs == 0


def test_an_op_that_only_allocated_before_the_step_is_no_node():
    rows = rollup([{"node": 0, "device": 0, "runs": 1, "sum_us": 5}, node_row(0, 1, 0)])
    nodes = nodes_from_rollup(rows, names(["a", "adam/Initializer/zeros", "b"], [CPU]), graph(("b", "Add")))
    assert [node.name for node in nodes] == ["a", "b"]
