"""Each checker on stores where it must report and where it must not."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fakes.made_steps import Execution, graph, made_job
from fakes.made_store import MS, SECOND, START_NS, rows, span, write_host, write_job
from fakes.nodes import CPU, GPU, STREAM
from tfprof.collector.advice import input_bound, retracing
from tfprof.collector.advice.evidence import Evidence, NewNodes, OpExecution, StepTrace
from tfprof.collector.advice.report import Report
from tfprof.collector.advice.table import CHECKERS, advise
from tfprof.collector.query.evidence import gather
from tfprof.collector.store.reader import LocalJob, LocalStore
from tfprof.collector.tfviews.parity import Parity
from tfprof.formats import layout

ITERATORS = "/host:CPU/tf.data"
COPIES = "/device:GPU:0/memcpy"
EXACT = Parity(exact=True)


def reports(job: LocalJob, slug: str, parity: Parity = Parity()) -> Sequence[Report]:  # noqa: B008  # a constant
    """Return the reports of the checker with ``slug`` about a job."""
    reports_by_slug = {checker.slug: checker_reports for checker, checker_reports in advise(gather(job, parity))}
    return reports_by_slug[slug]


def report_texts(job: LocalJob, slug: str, parity: Parity = Parity()) -> list[str]:  # noqa: B008
    """Return the texts of the reports of the checker with ``slug``."""
    return [report.text for report in reports(job, slug, parity)]


def job_of(store: Path, **tables: Iterable[dict[str, Any]]) -> LocalJob:
    """Return a job with these rows and no traced step."""
    job_tables: dict[str, pa.Table] = {name: rows(name, values) for name, values in tables.items()}
    write_job(store, 1, job_tables)
    return LocalStore(store).job("last")


def runs(times_ms: Iterable[float], pause_ms: float = 0.0, **columns: int) -> list[dict[str, int]]:
    """Return spans of session runs, one after the other."""
    start_ms, spans = 0.0, []
    for number, duration_ms in enumerate(times_ms, 1):
        spans.append(span(layout.RUN, number, start_ms, duration_ms, **columns))
        start_ms += duration_ms + pause_ms
    return spans


def test_without_evidence_no_checker_reports(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    assert [reports for _, reports in advise(gather(job))] == [()] * len(CHECKERS)


def test_exact_parity_runs_only_the_tf_profilers_checkers_and_names_select_checkers(tmp_path: Path) -> None:
    evidence = gather(job_of(tmp_path), EXACT)
    assert [checker.name for checker, _ in advise(evidence)] == [
        "AcceleratorUtilizationChecker",
        "OperationChecker",
        "ExpensiveOperationChecker",
    ]
    assert [checker.name for checker, _ in advise(evidence, ["OperationChecker", "JobChecker", "InputChecker"])] == [
        "OperationChecker"
    ]


def test_every_checker_has_a_section_in_the_documentation() -> None:
    page = (Path(__file__).parents[4] / "docs" / "advice.md").read_text()
    assert re.findall(r"^## `(.+)`$", page, re.MULTILINE) == [checker.slug for checker in CHECKERS]


# -- checkers of the TF profiler -------------------------------------------------------------------


def kernel(name: str, start_us: int, duration_us: int) -> list[Execution]:
    """Return an op of a GPU: its scheduling takes 1 µs, and its kernel starts at the same time."""
    return [Execution(name, start_us, 1, GPU), Execution(name, start_us, duration_us, STREAM)]


def test_utilization_is_kernel_time_between_the_first_start_and_the_last_end(tmp_path: Path) -> None:
    job = made_job(tmp_path, [[*kernel("a", 0, 20), *kernel("b", 60, 40)]])
    (report,) = reports(job, "utilization")
    assert report.text == "GPU:0 computes for 60 % of a step."
    assert (report.numbers["busy_micros"], report.numbers["step_micros"], report.remedy) == (60, 100, "")


def test_a_gpu_that_is_idle_for_more_than_half_of_a_step_has_low_utilization(tmp_path: Path) -> None:
    (report,) = reports(made_job(tmp_path, [[*kernel("a", 0, 2), *kernel("b", 98, 2)]]), "utilization")
    assert report.text == "GPU:0 computes for 4.0 % of a step, which is little."
    assert "timeline" in report.remedy


def test_concurrent_kernels_count_once_but_twice_with_exact_parity(tmp_path: Path) -> None:
    job = made_job(tmp_path, [[*kernel("a", 0, 100), *kernel("b", 0, 100)]])
    assert report_texts(job, "utilization") == ["GPU:0 computes for 100 % of a step."]
    assert report_texts(job, "utilization", EXACT) == [f"device: {GPU.lower()} utilization: 2.00"]


def test_nodes_of_earlier_steps_extend_the_time_only_with_exact_parity(tmp_path: Path) -> None:
    job = made_job(tmp_path, [kernel("init", 0, 100), kernel("a", 0, 100)], step_ms=0.1)
    assert report_texts(job, "utilization") == ["GPU:0 computes for 100 % of a step."]
    assert report_texts(job, "utilization", EXACT) == [f"device: {GPU.lower()} utilization: 0.67"]


def test_a_job_without_a_gpu_has_no_utilization(tmp_path: Path) -> None:
    assert report_texts(made_job(tmp_path, [[Execution("a", 0, 5)]]), "utilization") == []


NORM_TEXT = "batch normalization is computed by 1 ops, x/BatchNorm/mul among them; one fused op is faster."
TF_NORM_TEXT = "Maybe use faster FusedBatchNorm instead of BatchNorm"
NHWC_TEXT = "1 ops on a GPU, conv among them, have data_format NHWC; in float32 NCHW may be faster."


@pytest.mark.parametrize(
    ("ops", "texts", "exact_texts"),
    [
        ({"x/BatchNorm/mul": "Mul"}, [NORM_TEXT], [TF_NORM_TEXT]),
        ({"x/BatchNorm/mul": "Mul", "y": "FusedBatchNorm"}, [], []),
        ({"x/BatchNorm/mul": "Mul", "y": "FusedBatchNormV3"}, [], [TF_NORM_TEXT]),
        ({"x": "Mul"}, [], []),
    ],
)
def test_unfused_batch_normalization_is_reported(
    tmp_path: Path, ops: dict[str, str], texts: list[str], exact_texts: list[str]
) -> None:
    job = made_job(tmp_path, [[Execution(name, 0, 5) for name in ops]], graph(ops))
    assert report_texts(job, "operations") == texts
    assert report_texts(job, "operations", EXACT) == exact_texts


def test_the_data_format_nhwc_is_reported_only_for_ops_on_a_gpu(tmp_path: Path) -> None:
    nodes = graph({"conv": "Conv2D"}, conv="NHWC")
    assert report_texts(made_job(tmp_path / "gpu", [kernel("conv", 0, 5)], nodes), "operations") == [NHWC_TEXT]
    assert report_texts(made_job(tmp_path / "cpu", [[Execution("conv", 0, 5)]], nodes), "operations") == []


NET = {"net/a": "MatMul", "net/b": "Add", "c": "Mul", "d": "Sub"}
NET_STEP = [Execution("net/a", 0, 600), Execution("net/b", 600, 200), Execution("c", 800, 150), Execution("d", 950, 50)]


def test_the_most_expensive_op_types_and_scopes_are_named(tmp_path: Path) -> None:
    types, scopes = report_texts(made_job(tmp_path, [NET_STEP], graph(NET)), "expensive")
    assert (
        types == "MatMul takes 60 % of the time of all ops, 600 µs in the median step; then come Add 20 % and Mul 15 %."
    )
    assert (
        scopes
        == "the scope net takes 80 % of the time of all ops, 800 µs in the median step; then come c 15 % and d 5.0 %."
    )


def test_one_slow_step_makes_no_op_the_most_expensive(tmp_path: Path) -> None:
    slow = [Execution("c", 0, 90_000)]
    types, *_ = report_texts(made_job(tmp_path, [NET_STEP, NET_STEP, [*NET_STEP[:2], *slow]], graph(NET)), "expensive")
    assert types.startswith("MatMul takes 60 % of the time of all ops, 600 µs in the median step; then come Add 20 %")


def test_the_report_contains_the_range_of_an_op_types_time_per_step(tmp_path: Path) -> None:
    steps = [[Execution("a", 0, duration_us)] for duration_us in (200, 300, 700)]
    assert report_texts(made_job(tmp_path, steps, graph({"a": "MatMul"})), "expensive") == [
        "MatMul takes 100 % of the time of all ops, 300 µs in the median step (200 µs to 700 µs in all steps)."
    ]


def test_exact_parity_names_ops_and_scopes_in_the_tf_profilers_words(tmp_path: Path) -> None:
    types, scopes = report_texts(made_job(tmp_path, [NET_STEP], graph(NET)), "expensive", EXACT)[:2]
    assert types.splitlines() == [
        "top 1 operation type: MatMul, cpu: 600us, accelerator: 0us, total: 600us (60.00%)",
        "top 2 operation type: Add, cpu: 200us, accelerator: 0us, total: 200us (20.00%)",
        "top 3 operation type: Mul, cpu: 150us, accelerator: 0us, total: 150us (15.00%)",
    ]
    assert scopes.startswith("top 1 graph node: net, cpu: 0us, accelerator: 0us")


def stacks(*node_lines: tuple[str, int]) -> dict[str, pa.Table]:
    """Return the tables of frames and stacks for nodes of main.py.

    ``node_lines``: pairs of a node and the line that created it. Each line was called from line 1.
    """
    frame_rows = [
        {"stack": stack, "position": position, "file": "main.py", "line": line, "function": "f"}
        for stack, (_, own_line) in enumerate(node_lines)
        for position, line in enumerate((1, own_line))
    ]
    names = [{"name": name, "stack": stack} for stack, (name, _) in enumerate(node_lines)]
    return {"frames": rows("frames", frame_rows), "stacks": rows("stacks", names)}


def test_the_most_expensive_lines_of_the_user_are_named(tmp_path: Path) -> None:
    job = made_job(
        tmp_path,
        [[Execution("a", 0, 2000), Execution("b", 0, 500)]],
        graph({"a": "A", "b": "B"}),
        **stacks(("a", 7), ("b", 9)),
    )
    types, lines = reports(job, "expensive")
    assert types.line == "main.py:7 (f)"
    assert lines.text == (
        "main.py:7 (f) takes 80 % of the time of the ops that your own lines created, 2.00 ms in the median step;"
        " then come main.py:9 (f) 20 %."
    )
    assert report_texts(job, "expensive", EXACT)[2] == "main.py:7:f, cpu: 2.00ms, accelerator: 0us, total: 2.00ms"


def test_with_exact_parity_the_text_is_empty_if_no_line_takes_a_millisecond(tmp_path: Path) -> None:
    job = made_job(
        tmp_path,
        [[Execution("a", 0, 200), Execution("b", 0, 300)]],
        graph({"a": "A", "b": "B"}),
        **stacks(("a", 7), ("b", 9)),
    )
    assert report_texts(job, "expensive", EXACT)[2] == ""


# -- input -----------------------------------------------------------------------------------------


def test_waiting_for_input_within_steps_is_reported_with_the_slowest_stage() -> None:
    step = (
        OpExecution("next", "IteratorGetNext", CPU.lower(), 1, 0, 700_000),
        OpExecution("work", "MatMul", CPU.lower(), 1, 700_000, 1_000_000),
        OpExecution("Iterator::Root::Prefetch::Map", "tf.data", ITERATORS.lower(), 7, 0, 650_000),
        OpExecution("Iterator::Root::Prefetch", "tf.data", ITERATORS.lower(), 7, 650_000, 670_000),
    )
    (report,) = input_bound.check(Evidence(step_traces=(StepTrace(1, 1_000_000, step), StepTrace(2, 1_000_000, step))))
    assert report.text == (
        "70 % of the time in the median of 2 traced steps is spent waiting for input: 700 µs a step."
        " Most of the pipeline's own time is in its stage Map: 650 µs a step."
    )
    assert report.numbers["share"] == pytest.approx(0.7)
    assert "prefetch" in report.remedy


def test_work_of_iterators_on_the_thread_of_a_waiting_op_counts_as_waiting(tmp_path: Path) -> None:
    step = [Execution("next", 0, 10), Execution("Iterator::Map", 10, 600, ITERATORS), Execution("work", 610, 390)]
    (report,) = reports(made_job(tmp_path, [step], graph({"next": "IteratorGetNext", "work": "MatMul"})), "input")
    assert report.numbers["share"] == pytest.approx(0.61)


def test_waiting_for_a_single_batch_is_not_reported(tmp_path: Path) -> None:
    steps = [[Execution("next", 0, duration_us), Execution("work", duration_us, 100)] for duration_us in (10, 900, 10)]
    nodes = graph({"next": "IteratorGetNext", "work": "MatMul"})
    assert report_texts(made_job(tmp_path, steps, nodes), "input") == []


def test_a_busy_pipeline_that_delivers_in_time_is_not_reported(tmp_path: Path) -> None:
    step = [
        Execution("next", 0, 30),
        Execution("work", 30, 900),
        Execution("Iterator::Map", 0, 900, ITERATORS, thread=7),
    ]
    assert report_texts(made_job(tmp_path, [step], graph({"next": "IteratorGetNext", "work": "MatMul"})), "input") == []


def test_long_pauses_between_steps_are_reported(tmp_path: Path) -> None:
    (report,) = reports(job_of(tmp_path, spans=runs([2.0] * 40, pause_ms=6.0)), "input")
    assert report.text == (
        "75 % of the time goes by between steps, in Python: 6.00 ms of the 8.00 ms"
        " from the start of a step to that of the next."
    )
    assert report.numbers["pauses"] == 39


@pytest.mark.parametrize(
    "spans",
    [
        runs([2.0] * 40, pause_ms=0.4),  # short
        runs([20.0] * 40, pause_ms=6.0),  # between long steps
        runs([2.0] * 10, pause_ms=6.0),  # few
        runs([2.0] * 40, pause_ms=6.0, flags=layout.FLAG_TRACED),  # caused by tracing
        [span(layout.RUN, at, 8.0 * at, 2.0, thread=at % 30) for at in range(1, 41)],  # in many threads
    ],
)
def test_other_pauses_between_steps_are_not_reported(tmp_path: Path, spans: list[dict[str, int]]) -> None:
    assert report_texts(job_of(tmp_path, spans=spans), "input") == []


def test_pauses_between_steps_that_were_timed_together_count(tmp_path: Path) -> None:
    spans = [span(layout.RUN, 10 * at, 20.0 * at, 4.0, count=10) for at in range(30)]
    (report,) = reports(job_of(tmp_path, spans=spans), "input")
    assert (report.numbers["share"], report.numbers["between_ns"]) == (pytest.approx(0.8), pytest.approx(1.6 * MS))


# -- copies, placement, tiny ops -------------------------------------------------------------------


def test_copies_without_a_concurrent_kernel_are_reported_with_their_direction(tmp_path: Path) -> None:
    step = [*kernel("a", 500, 400), Execution("MEMCPYHtoD", 0, 600, COPIES), Execution("MEMCPYDtoH", 600, 100, COPIES)]
    (report,) = reports(made_job(tmp_path, [step], graph({"a": "MatMul"})), "transfers")
    assert report.text == (
        "GPU:0 waits for copies during 50 % of a step: copies run for 500 µs without a kernel; kernels run for 400 µs."
        " Most of their time is for copies from host to device."
    )
    assert "copy_to_device" in report.remedy


def test_the_direction_of_a_copy_may_be_in_the_name_of_the_stream(tmp_path: Path) -> None:
    step = [*kernel("a", 300, 400), Execution("edge_5_b", 0, 300, "/device:GPU:0/stream:17<MemcpyD2H>")]
    (report,) = reports(made_job(tmp_path, [step], graph({"a": "MatMul"})), "transfers")
    assert report.numbers["way"] == "device to host"


def test_copies_beside_kernels_are_not_reported(tmp_path: Path) -> None:
    step = [*kernel("a", 0, 900), Execution("MEMCPYHtoD", 100, 600, COPIES)]
    assert report_texts(made_job(tmp_path, [step], graph({"a": "MatMul"})), "transfers") == []


def test_ops_on_the_cpu_of_a_job_with_a_gpu_are_reported(tmp_path: Path) -> None:
    ops = {"a": "MatMul", "b": "Where", "next": "IteratorGetNext", "loss": "ScalarSummary"}
    step = [*kernel("a", 0, 500), Execution("b", 0, 400), Execution("next", 0, 900), Execution("loss", 0, 900)]
    (report,) = reports(made_job(tmp_path, [step], graph(ops)), "placement")
    assert report.text == (
        "ops on the CPU of a job with a GPU take 15 % of the time of all ops, 400 µs a step: most of all Where 400 µs."
    )
    assert report.numbers["Where"] == 400


def test_ops_on_the_cpu_are_not_reported_without_a_gpu_or_if_they_are_short(tmp_path: Path) -> None:
    nodes = graph({"a": "MatMul", "b": "Where"})
    assert report_texts(made_job(tmp_path / "cpu", [[Execution("b", 0, 400)]], nodes), "placement") == []
    gpu_job = made_job(tmp_path / "gpu", [[*kernel("a", 0, 500), Execution("b", 0, 20)]], nodes)
    assert report_texts(gpu_job, "placement") == []


def small_ops(number: int, duration_us: int, interval_us: int) -> list[Execution]:
    """Return a step of consecutive ops, with a pause after each."""
    return [Execution(f"op{at}", at * interval_us, duration_us) for at in range(number)]


def test_many_short_ops_with_pauses_are_reported(tmp_path: Path) -> None:
    (report,) = reports(made_job(tmp_path, [small_ops(400, 4, 10)], step_ms=4), "tiny")
    assert report.text == (
        "a step runs 400 ops, half of them for 4.00 µs or less; for 60 % of the step no op runs: starting ops takes"
        " longer than running them."
    )


@pytest.mark.parametrize(("number", "duration_us", "interval_us"), [(50, 4, 10), (400, 9, 10), (400, 40, 100)])
def test_few_or_dense_or_longer_ops_are_not_reported(
    tmp_path: Path, number: int, duration_us: int, interval_us: int
) -> None:
    job = made_job(tmp_path, [small_ops(number, duration_us, interval_us)], step_ms=number * interval_us / 1000)
    assert report_texts(job, "tiny") == []


# -- memory ----------------------------------------------------------------------------------------


def memory_samples(megabytes: Iterable[float]) -> list[dict[str, Any]]:
    """Return samples of the job's memory, one a second."""
    return [{"t_ns": START_NS + at * SECOND, "rss_bytes": int(size * 1e6)} for at, size in enumerate(megabytes)]


def run_spans(seconds: float, start_s: float = 0.0) -> list[dict[str, int]]:
    """Return spans of consecutive runs of 100 ms that fill ``seconds``, from ``start_s`` on."""
    return [span(layout.RUN, at + 1, 1000 * start_s + 100 * at, 100) for at in range(int(10 * seconds))]


def test_growing_memory_is_reported_with_the_ops_that_hold_most(tmp_path: Path) -> None:
    steps = [[Execution("keep", 0, 5, held_bytes=3_000_000), Execution("other", 5, 5)]]
    samples = rows("samples", memory_samples(1000 + 10 * at for at in range(60)))
    spans = rows("spans", run_spans(60))
    nodes = graph({"keep": "Identity", "other": "Add"})
    job = made_job(tmp_path, steps, nodes, samples=samples, spans=spans, **stacks(("keep", 7), ("other", 9)))
    (report,) = reports(job, "memory")
    assert report.text == (
        "the job's memory grows while steps run, by 600 MB a minute: from 1.2 GB to 1.6 GB in 41.0 s."
        " The ops that hold the most memory when they end: Identity 3.0 MB a step."
    )
    assert report.line == "main.py:7 (f)"


@pytest.mark.parametrize(
    "megabytes",
    [
        [1000.0] * 60,
        [min(2000.0, 500 + 80 * at) for at in range(60)],  # warming up
        [1000 + 10 * at for at in range(15)],  # too short
        [1000 + 0.1 * at for at in range(60)],  # little
        [1000.0 if at < 40 else 1500.0 for at in range(60)],  # once
    ],
)
def test_memory_that_does_not_grow_steadily_is_not_reported(tmp_path: Path, megabytes: list[float]) -> None:
    job = job_of(tmp_path, samples=memory_samples(megabytes), spans=run_spans(len(megabytes)))
    assert report_texts(job, "memory") == []


@pytest.mark.parametrize(
    ("first", "last"),
    [(40, 60), (0, 15), (0, 0)],
    ids=["it grew before the first step", "after the last step", "no step was seen"],
)
def test_memory_that_grows_while_no_steps_run_is_not_reported(tmp_path: Path, first: int, last: int) -> None:
    samples = memory_samples(20.0 * at if at < first or at > last else 900.0 for at in range(60))
    job = job_of(tmp_path, samples=samples, spans=run_spans(last - first, start_s=first))
    assert report_texts(job, "memory") == []


def test_samples_after_the_end_of_the_processes_do_not_count(tmp_path: Path) -> None:
    samples = memory_samples([*(1000 + 10 * at for at in range(60)), 0.0])
    (report,) = reports(job_of(tmp_path, samples=samples, spans=run_spans(61)), "memory")
    assert report.numbers["last_bytes"] == 1590e6


def test_growing_gpu_memory_is_reported(tmp_path: Path) -> None:
    growing_steps = [[Execution("a", 0, 5, GPU, held_bytes=1, in_use_bytes=10**9 + at * 10**8)] for at in range(12)]
    (report,) = reports(made_job(tmp_path / "grows", growing_steps, graph({"a": "MatMul"})), "memory")
    assert (
        report.text
        == "the memory in use on a GPU grows from step to step: 2.1 GB in step 12, 62 % more than in step 4."
    )
    constant_steps = [[Execution("a", 0, 5, GPU, held_bytes=1, in_use_bytes=10**9)] for _ in range(12)]
    assert report_texts(made_job(tmp_path / "level", constant_steps, graph({"a": "MatMul"})), "memory") == []


# -- graphs and steps ------------------------------------------------------------------------------


def function_graph(number: int, *names: str) -> list[dict[str, Any]]:
    """Return the nodes of a function's graph."""
    return [{"graph": number, "name": name, "op": "Mul", "node_def": b""} for name in names]


def test_a_function_that_is_retraced_often_is_reported(tmp_path: Path) -> None:
    nodes = [row for number in range(7) for row in function_graph(number, "x", "y", "z")]
    (report,) = reports(job_of(tmp_path, graph_nodes=nodes), "retracing")
    assert report.text == (
        "a function of 3 nodes, one of them x, was traced 7 times or more, which takes far longer than running it."
    )


def test_equal_parts_of_a_model_are_not_retraced_functions(tmp_path: Path) -> None:
    parts = [row for number in range(7) for row in function_graph(number, "x", "y")]
    model = function_graph(9, "x", "y", "z")
    assert report_texts(job_of(tmp_path, graph_nodes=[*parts, *model]), "retracing") == []


def test_steps_that_keep_running_new_ops_are_reported(tmp_path: Path) -> None:
    growing_steps = [[Execution("a", 0, 5), Execution(f"a_{at}", 5, 5)] for at in range(20)]
    (report,) = reports(made_job(tmp_path / "grows", growing_steps), "retracing")
    assert report.text == "10 of 10 late traced steps ran ops that no earlier step ran, 10 in all: the graph grows."
    recurring_steps = [[Execution("a", 0, 5), Execution(f"a_{at % 5}", 5, 5)] for at in range(20)]
    assert report_texts(made_job(tmp_path / "same", recurring_steps), "retracing") == []


def test_steps_of_another_call_may_run_other_ops(tmp_path: Path) -> None:
    evidence = gather(made_job(tmp_path, [[Execution(f"a_{at}", 5, 5)] for at in range(20)]))
    evidence_of_other_calls = replace(
        evidence, new_nodes=tuple(NewNodes((1, at), new_nodes.nodes) for at, new_nodes in enumerate(evidence.new_nodes))
    )
    assert retracing.check(evidence_of_other_calls) == []


def test_a_function_traced_a_few_times_is_not_reported_if_later_steps_trace_none(tmp_path: Path) -> None:
    nodes = [row for number in range(5) for row in function_graph(number, "x", "y", "z")]
    evidence = gather(job_of(tmp_path, graph_nodes=nodes))
    assert retracing.check(evidence)
    assert retracing.check(replace(evidence, new_nodes=(NewNodes((1, 1), 0),) * 20)) == []


def test_functions_that_are_first_called_late_are_reported(tmp_path: Path) -> None:
    late_calls = [span(layout.FUNCTION, at, 10.0 * at, 5.0, key=at if at > 30 else 1) for at in range(1, 41)]
    (report,) = reports(job_of(tmp_path / "late", spans=late_calls), "retracing")
    assert (
        report.text
        == "10 functions were called for the first time in the second half of the job; each was traced then."
    )
    early_calls = [span(layout.FUNCTION, at, 10.0 * at, 5.0, key=at % 8) for at in range(1, 41)]
    assert report_texts(job_of(tmp_path / "early", spans=early_calls), "retracing") == []


def test_much_longer_steps_are_reported_with_their_interval(tmp_path: Path) -> None:
    times = [20.0 if at % 25 == 0 else 1.0 for at in range(1, 201)]
    (report,) = reports(job_of(tmp_path, spans=runs(times)), "uneven")
    assert report.text == (
        "8 of 195 steps take 3 times as long as the median one (1.00 ms) or more, up to 20.0 ms:"
        " 44 % of the time in steps. They come every 25 steps."
    )
    assert "checkpoints" in report.remedy


def test_the_interval_is_taken_from_the_longest_steps(tmp_path: Path) -> None:
    times = [20.0 if at % 25 == 0 else 4.0 if at % 7 == 0 else 1.0 for at in range(1, 201)]
    (report,) = reports(job_of(tmp_path, spans=runs(times)), "uneven")
    assert report.numbers["every"] == 25


def test_irregular_long_steps_have_no_interval(tmp_path: Path) -> None:
    times = [20.0 if at in {10, 17, 60, 61, 140} else 1.0 for at in range(1, 201)]
    (report,) = reports(job_of(tmp_path, spans=runs(times)), "uneven")
    assert "They come every" not in report.text
    assert report.numbers["every"] == 0
    assert "shapes" in report.remedy


@pytest.mark.parametrize(
    "times",
    [
        [1.0 + at % 3 / 2 for at in range(200)],  # not far longer
        [50.0] * 5 + [1.0] * 195,  # warming up
        [20.0 if at == 100 else 1.0 for at in range(200)],  # once
        [4.0 if at % 100 == 50 else 1.0 for at in range(400)],  # little of the time
        [20.0 if at % 10 == 0 else 1.0 for at in range(40)],  # few
    ],
)
def test_other_step_times_are_not_reported(tmp_path: Path, times: list[float]) -> None:
    assert report_texts(job_of(tmp_path, spans=runs(times)), "uneven") == []


def test_traced_steps_never_count_as_long_steps(tmp_path: Path) -> None:
    spans = runs([20.0 if at % 25 == 0 else 1.0 for at in range(1, 201)])
    for row in spans:
        row["flags"] = layout.FLAG_TRACED if row["ordinal"] % 25 == 0 else 0
    assert report_texts(job_of(tmp_path, spans=spans), "uneven") == []


OUTLIERS = [20.0 if at in {10, 17, 60, 61, 140} else 1.0 for at in range(1, 201)]


def job_on_host(store: Path, cores: float, own_cores: float, times_ms: Iterable[float]) -> LocalJob:
    """Return a job on a host with two CPUs, of which ``cores`` are busy.

    The job itself keeps ``own_cores`` CPUs busy. Its runs last ``times_ms``.
    """
    times_ns = [START_NS + SECOND * (second - 1) for second in range(10)]
    write_host(store, [{"t_ns": t_ns, "cpus": 2, "cpu_busy_s": cores * second} for second, t_ns in enumerate(times_ns)])
    samples = [{"t_ns": t_ns, "cpu_user_s": own_cores * second, "rss_bytes": 1} for second, t_ns in enumerate(times_ns)]
    return job_of(store, spans=runs(times_ms), samples=samples)


def test_a_host_without_a_free_cpu_is_named_as_the_reason(tmp_path: Path) -> None:
    (report,) = reports(job_on_host(tmp_path, 1.9, 0.7, OUTLIERS), "uneven")
    assert report.text.endswith(
        " of the time in steps. The likely reason is the host, not the job: while they ran, other processes used 1.2"
        " of its 2 CPUs, and few were idle."
    )
    assert report.numbers["other_cores"] == pytest.approx(1.2)
    assert "quiet host" in report.remedy


@pytest.mark.parametrize(
    ("cores", "own_cores"),
    [(1.0, 0.2), (1.9, 1.8), (0.0, 0.0)],
    ids=["a CPU is free", "the job uses the CPUs", "no load"],
)
def test_a_host_is_not_named_as_the_reason_unless_other_processes_keep_it_busy(
    tmp_path: Path, cores: float, own_cores: float
) -> None:
    (report,) = reports(job_on_host(tmp_path, cores, own_cores, OUTLIERS), "uneven")
    assert "host, not the job" not in report.text
    assert "shapes" in report.remedy


def test_regular_long_steps_are_due_to_the_job_even_on_a_busy_host(tmp_path: Path) -> None:
    times = [20.0 if at % 25 == 0 else 1.0 for at in range(1, 201)]
    (report,) = reports(job_on_host(tmp_path, 1.9, 0.7, times), "uneven")
    assert report.text.endswith("They come every 25 steps.")


def test_steps_are_compared_with_steps_of_the_same_call(tmp_path: Path) -> None:
    spans = runs([20.0 if at % 9 == 0 else 1.0 for at in range(1, 201)])
    for row in spans:
        row["key"] = int(row["total_ns"] > MS)
    assert report_texts(job_of(tmp_path, spans=spans), "uneven") == []
