"""Each checker on stores where it must report and where it must not.

Tests collector/advice/evidence.py, collector/advice/expensive.py, collector/advice/input_bound.py,
collector/advice/memory.py, collector/advice/missing_data.py, collector/advice/operations.py,
collector/advice/placement.py, collector/advice/report.py, collector/advice/retracing.py,
collector/advice/slower.py, collector/advice/starved.py, collector/advice/table.py,
collector/advice/tiny_ops.py, collector/advice/transfers.py, collector/advice/uneven.py,
collector/advice/utilization.py, collector/advice/verdict.py, collector/query/evidence.py,
collector/query/step_shift.py, collector/query/job_usage.py, collector/summaries/series.py,
collector/summaries/op_classes.py.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fakes.made_steps import Execution, graph, made_job
from fakes.made_store import MS, SECOND, START_NS, rows, span, write_host, write_job
from fakes.nodes import CPU, GPU, STREAM
from tfprof.collector.advice import input_bound, memory, missing_data, retracing, slower, starved, tiny_ops, uneven
from tfprof.collector.advice.evidence import Evidence, Load, MemorySample, NewNodes, PythonThread, StepShift
from tfprof.collector.advice.host_sentence import host_sentence
from tfprof.collector.advice.report import Advice, Report
from tfprof.collector.advice.table import CHECKERS, advise
from tfprof.collector.advice.verdict import findings, fine, verdict, without_data
from tfprof.collector.moment import parse_moment
from tfprof.collector.numbers import percent
from tfprof.collector.query.evidence import gather
from tfprof.collector.query.job_usage import python_threads, thread_use
from tfprof.collector.query.step_shift import shift_note
from tfprof.collector.store.devices import ITERATOR_DEVICE
from tfprof.collector.store.reader import LocalJob, LocalStore
from tfprof.collector.summaries.op_classes import PIPELINE_DEVICE, WAITING
from tfprof.collector.summaries.part_times import break_down
from tfprof.collector.summaries.parts import ASLEEP, FIRST_BATCHES, Breakdown, Detail, Part, Recording
from tfprof.collector.summaries.step_records import NamedSum, OpExecution, StepTrace, ThreadUse, TimedSteps
from tfprof.collector.tfviews.parity import Parity
from tfprof.formats import activities, layout

ITERATORS = "/host:CPU/tf.data"
COPIES = "/device:GPU:0/memcpy"
EXACT = Parity(exact=True)


def reports(job: LocalJob, slug: str, parity: Parity = Parity()) -> Sequence[Report]:  # noqa: B008  # a constant
    """Return the reports of the checker with ``slug`` about a job."""
    reports_by_slug = {checker.slug: checker_reports for checker, checker_reports, _ in advise(gather(job, parity))}
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
    assert [reports for _, reports, _ in advise(gather(job))] == [()] * len(CHECKERS)


def test_exact_parity_runs_only_the_tf_profilers_checkers_and_names_select_checkers(tmp_path: Path) -> None:
    evidence = gather(job_of(tmp_path), EXACT)
    assert [checker.name for checker, _, _ in advise(evidence)] == [
        "AcceleratorUtilizationChecker",
        "OperationChecker",
        "ExpensiveOperationChecker",
    ]
    assert [checker.name for checker, _, _ in advise(evidence, ["OperationChecker", "JobChecker", "InputChecker"])] == [
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
    assert types == "MatMul takes 60 % of the time of all ops, 600 µs a step; then come Add 20 % and Mul 15 %."
    assert scopes == "the scope net takes 80 % of the time of all ops, 800 µs a step; then come c 15 % and d 5.0 %."


def test_one_slow_step_makes_no_op_the_most_expensive(tmp_path: Path) -> None:
    slow = [Execution("c", 0, 90_000)]
    types, *_ = report_texts(made_job(tmp_path, [NET_STEP, NET_STEP, [*NET_STEP[:2], *slow]], graph(NET)), "expensive")
    assert types.startswith("MatMul takes 61 % of the time of all ops, 600 µs a step; then come Add 20 %")


def test_the_report_contains_the_range_of_an_op_types_time_per_step(tmp_path: Path) -> None:
    steps = [[Execution("a", 0, duration_us)] for duration_us in (200, 300, 700)]
    assert report_texts(made_job(tmp_path, steps, graph({"a": "MatMul"})), "expensive") == [
        "MatMul takes 100 % of the time of all ops, 301 µs a step (200 µs to 700 µs)."
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
        "main.py:7 (f) takes 80 % of the time of all ops, 2.00 ms a step; then come main.py:9 (f) 20 %."
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


def waiting_step(*stages: tuple[str, int]) -> Evidence:
    """Return two equal steps that wait 0.7 of 1 ms for input, with ``stages`` in other threads."""
    step = (
        OpExecution("next", "IteratorGetNext", CPU.lower(), 1, 0, 700_000),
        OpExecution("work", "MatMul", CPU.lower(), 1, 700_000, 1_000_000),
        *(
            OpExecution(f"Iterator::Root{name}", "tf.data", ITERATORS.lower(), 7 + at, 0, ns)
            for at, (name, ns) in enumerate(stages)
        ),
    )
    traces = tuple(StepTrace(at, 1_000_000, step) for at in (1, 2))
    steps = [TimedSteps(at, 1, at * MS, MS, is_normal=True) for at in range(9)]
    return Evidence(step_traces=traces, breakdown=break_down(Recording("batch", steps, traces=traces)))


def test_waiting_for_input_within_steps_is_reported_with_the_slowest_stage() -> None:
    (report,) = input_bound.check(waiting_step(("", 5_000), ("::Batch", 20_000), ("::Batch::Map", 650_000)))
    assert report.text == (
        "70 % of the time from step to step is spent waiting for input, 700 µs a step: the job is highly input-bound."
        " Most of the pipeline's own time is in its stage Map: 650 µs a step."
    )
    assert report.numbers["share"] == pytest.approx(0.7)
    assert report.remedy.startswith("run the function of map(…) in parallel")
    assert "dataset.prefetch" in report.remedy


def test_the_input_of_too_few_timed_steps_is_not_called_fine() -> None:
    evidence = waiting_step(("::Map", 650_000))
    assert evidence.breakdown is not None
    timed = TimedSteps(1, 1, 0, MS, is_normal=True)
    few = replace(evidence, breakdown=replace(evidence.breakdown, steps=2), timed_steps=(timed,))
    assert input_bound.check(few) == []
    assert missing_data.of_input(few) == "fewer than 3 steps"
    assert missing_data.of_input(evidence) == ""


@pytest.mark.parametrize("stages", [[("::Prefetch", 690_000), ("", 5_000)], [("::Prefetch::Map", 650_000)]])
def test_prefetch_is_no_remedy_for_a_pipeline_that_prefetches(stages: list[tuple[str, int]]) -> None:
    (report,) = input_bound.check(waiting_step(("::Prefetch", 690_000), *stages))
    assert "dataset.prefetch" not in report.remedy
    assert "Prefetch" not in report.text


@pytest.mark.parametrize(
    ("stage", "remedy"),
    [
        ("Generator", "make the generator faster"),
        ("ParallelMapV2", "make it faster: Python runs one call at a time"),
        ("", "whole batches"),
    ],
)
def test_the_users_function_is_named_with_its_line(stage: str, remedy: str) -> None:
    traces = waiting_step((f"::{stage}", 650_000) if stage else ("", 1)).step_traces
    steps = [TimedSteps(at, 1, at * MS, MS, is_normal=True) for at in range(9)]
    functions = [NamedSum("load (train.py:12)", 9 * 650_000, 9), NamedSum("other", 9, 9)]
    parts = break_down(Recording("batch", steps, traces=traces, functions=functions))
    (report,) = input_bound.check(Evidence(step_traces=traces, breakdown=parts))
    assert " The pipeline calls load, which runs for 650 µs a step." in report.text
    assert report.line == "train.py:12"
    assert report.verdict == "highly input-bound: steps wait for the function load of the input pipeline"
    assert remedy in report.remedy


@pytest.mark.parametrize(
    ("function", "name", "remedy"),
    [
        ("_get_iterator (py_dataset_adapter.py:280)", "__getitem__ of the PyDataset", "use_multiprocessing=True"),
        (
            "get_tf_iterator (generator_data_adapter.py:70)",
            "next of the generator that fit was given",
            "make the gener",
        ),
    ],
)
def test_functions_of_keras_stand_for_what_fit_was_given(function: str, name: str, remedy: str) -> None:
    traces = waiting_step(("", 1)).step_traces
    steps = [TimedSteps(at, 1, at * MS, MS, is_normal=True) for at in range(9)]
    functions = [NamedSum(function, 9 * 650_000, 9)]
    parts = break_down(Recording("batch", steps, traces=traces, functions=functions))
    calls = StepTrace(1, MS, (OpExecution("tf.data/PyFunc", "PyFunc", PIPELINE_DEVICE, 9, 0, 650_000),))
    (report,) = input_bound.check(Evidence(step_traces=traces, breakdown=parts, pipeline_traces=(calls,)))
    assert f" The pipeline calls {name}, which runs for 650 µs a step." in report.text
    assert "PyFunc" not in report.text
    assert remedy in report.remedy
    assert report.line == ""


def test_ops_of_the_pipelines_functions_are_named_where_no_stage_is_known() -> None:
    ops = [("DecodePng", 0, 400_000), ("ResizeBilinear", 400_000, 600_000)]
    executions = tuple(
        OpExecution(f"tf.data/{op}", op, PIPELINE_DEVICE, 9, start_ns, end_ns) for op, start_ns, end_ns in ops
    )
    evidence = replace(waiting_step(), pipeline_traces=(StepTrace(1, MS, executions),), epochs=3)
    (report,) = input_bound.check(evidence)
    assert (
        " The functions that the pipeline calls run these ops in a step: DecodePng 400 µs, ResizeBilinear 200 µs."
        in report.text
    )
    assert report.verdict.endswith("steps wait for DecodePng in the functions of the input pipeline")
    assert report.remedy.startswith("run the function of map(…) in parallel")
    assert "cache()" in report.remedy
    named = input_bound.check(replace(evidence, map_functions=("load_png",)))[0]
    assert named.text.endswith(" Function of map(…): load_png.")
    assert named.verdict.endswith("steps wait for load_png in map(…) of the input pipeline")
    of_arrays = input_bound.check(replace(evidence, map_functions=("permutation", "grab_batch")))[0]
    assert of_arrays.remedy.startswith("Keras makes each batch of the arrays")
    parallel = StepTrace(1, MS, (*executions, *(each._replace(thread=10) for each in executions)))
    assert input_bound.check(replace(evidence, pipeline_traces=(parallel,)))[0].remedy.startswith("cache() after it")


def test_each_epoch_does_the_work_again_without_a_cache() -> None:
    evidence = replace(waiting_step(("::ParallelMapV2", 650_000)), epochs=3)
    assert input_bound.check(evidence)[0].remedy.startswith("cache() after it")
    cached = replace(waiting_step(("::ParallelMapV2", 650_000), ("::MemoryCache", 1)), epochs=3)
    assert "cache()" not in input_bound.check(cached)[0].remedy


def test_long_first_steps_of_epochs_wait_for_input(tmp_path: Path) -> None:
    """A shuffle buffer of 6,000 items is filled in each of 8 epochs of 25 steps."""
    times = [20.0 if at % 25 == 0 else 1.0 for at in range(200)]
    spans = runs(times)
    epochs = [span(layout.EPOCH, 1, 0.0, 1.0) | {"start_ns": spans[at]["start_ns"]} for at in range(0, 200, 25)]
    batches = [row | {"kind": layout.BATCH} for row in spans]
    assert [report.numbers["every"] for report in reports(job_of(tmp_path / "a", spans=spans), "uneven")] == [25]
    job = job_of(tmp_path / "b", spans=[*batches, *epochs])
    recorded = gather(job)
    parts = recorded.breakdown
    assert parts is not None
    waiting = replace(
        parts, parts=(Part("input", 0.5 * parts.period_ns, (Detail(FIRST_BATCHES, 0.4 * parts.period_ns),), ""),)
    )
    (report,) = input_bound.check(replace(recorded, breakdown=waiting))
    assert "is in the first steps of the 8 epochs." in report.text
    assert report.verdict == "highly input-bound: steps wait for the first batch of each epoch"
    assert "shuffle buffer" in report.remedy
    assert uneven.check(recorded)
    assert uneven.check(replace(recorded, breakdown=waiting)) == []


def test_work_of_iterators_on_the_thread_of_a_waiting_op_counts_as_waiting(tmp_path: Path) -> None:
    step = [Execution("next", 0, 10), Execution("Iterator::Map", 10, 600, ITERATORS), Execution("work", 610, 390)]
    (report,) = reports(made_job(tmp_path, [step] * 3, graph({"next": "IteratorGetNext", "work": "MatMul"})), "input")
    assert report.numbers["share"] == pytest.approx(0.61)


def test_waiting_for_a_single_batch_is_not_reported(tmp_path: Path) -> None:
    steps = [[Execution("next", 0, duration_us), Execution("work", duration_us, 900)] for duration_us in (10, 100, 10)]
    nodes = graph({"next": "IteratorGetNext", "work": "MatMul"})
    assert report_texts(made_job(tmp_path, steps, nodes), "input") == []


def test_a_busy_pipeline_that_delivers_in_time_is_not_reported(tmp_path: Path) -> None:
    step = [
        Execution("next", 0, 30),
        Execution("work", 30, 900),
        Execution("Iterator::Map", 0, 900, ITERATORS, thread=7),
    ]
    assert report_texts(made_job(tmp_path, [step], graph({"next": "IteratorGetNext", "work": "MatMul"})), "input") == []


# -- between steps ---------------------------------------------------------------------------------


def test_long_pauses_between_steps_are_reported(tmp_path: Path) -> None:
    (report,) = reports(job_of(tmp_path, spans=runs([2.0] * 40, pause_ms=6.0)), "between")
    assert report.text == (
        "75 % of the time goes by between steps, in code that is in no span: 6.00 ms of the 8.00 ms"
        " from the start of a step to that of the next."
    )
    assert "prefetch" not in report.remedy  # nothing shows that the loop waits for its input


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
    assert report_texts(job_of(tmp_path, spans=spans), "between") == []


def test_pauses_between_steps_that_were_timed_together_count(tmp_path: Path) -> None:
    spans = [span(layout.RUN, 10 * at, 20.0 * at, 4.0, count=10) for at in range(30)]
    (report,) = reports(job_of(tmp_path, spans=spans), "between")
    assert (report.numbers["share"], report.numbers["between_ns"]) == (pytest.approx(0.8), pytest.approx(1.6 * MS))


def trained(*others: tuple[int, float, float], interval_ms: float = 10.0, **columns: int) -> list[dict[str, int]]:
    """Return spans of a job that trains for 2 ms every ``interval_ms``.

    ``others`` run after each of these steps: (kind, start, duration) with times in ms. They have
    the other ``columns``.
    """
    spans = [span(layout.TRAIN, at, interval_ms * at, 2.0) for at in range(1, 41)]
    for at in range(1, 41):
        spans += [span(kind, at, interval_ms * at + start, ms, **columns) for kind, start, ms in others]
    return spans


@pytest.mark.parametrize(
    ("spans", "kind", "share", "remedy"),
    [
        (trained((layout.RUN, 2.1, 7.8)), "run", 0.78, "tfprof op JOB --kind run"),
        (trained((layout.RUN, 2.1, 7.8), thread=5), "run", 0.78, "tfprof op JOB --kind run"),
        (trained((layout.INIT, 2.5, 6.0)), "init", 0.6, "initialize once"),
        (trained((layout.CHECKPOINT, 2.1, 7.0)), "checkpoint", 0.7, "save every few minutes"),
        (trained((layout.EVALUATE, 2.1, 7.0), (layout.TEST_BATCH, 2.2, 1.0)), "evaluation", 0.7, "evaluate less often"),
    ],
    ids=["a policy", "in another thread", "an initializer", "checkpoints", "evaluation"],
)
def test_steps_of_other_kinds_between_two_steps_are_named(
    tmp_path: Path, spans: list[dict[str, int]], kind: str, share: float, remedy: str
) -> None:
    (report,) = reports(job_of(tmp_path, spans=spans), "between")
    assert report.text.startswith(f"{share:.0%}".replace("%", " %") + f" of the time is in {kind}")
    assert report.numbers["share"] == pytest.approx(share, abs=0.005)
    assert remedy in report.remedy


def test_a_single_long_evaluation_counts(tmp_path: Path) -> None:
    steps = [span(layout.TRAIN, at, 10.0 * at + 300.0 * (at > 20), 9.9) for at in range(1, 41)]
    (report,) = reports(job_of(tmp_path, spans=[*steps, span(layout.EVALUATE, 1, 210, 299)]), "between")
    assert report.numbers["share"] == pytest.approx(299 / 680)


@pytest.mark.parametrize(
    "spans",
    [
        trained((layout.RUN, 2.1, 2.0), interval_ms=4.2),  # half of the time for each, as in a GAN
        trained((layout.CHECKPOINT, 2.1, 0.2), interval_ms=2.5),  # short
        trained((layout.INPUT, 2.1, 7.8), interval_ms=2.5, thread=5),  # a thread that fills a queue
    ],
)
def test_a_few_steps_of_other_kinds_are_not_reported(tmp_path: Path, spans: list[dict[str, int]]) -> None:
    assert report_texts(job_of(tmp_path, spans=spans), "between") == []


def test_a_thread_that_fills_queues_does_not_explain_pauses(tmp_path: Path) -> None:
    (report,) = reports(job_of(tmp_path, spans=trained((layout.INPUT, 2.1, 7.8), thread=5)), "between")
    assert "code that is in no span" in report.text


def test_pauses_with_an_auxiliary_step_are_split(tmp_path: Path) -> None:
    report, code = reports(job_of(tmp_path, spans=trained((layout.CHECKPOINT, 5.0, 1.5))), "between")
    assert (
        report.text == "15 % of the time is in checkpoint steps between the train steps: 1.50 ms for each train step."
    )
    assert code.text.startswith("65 % of the time goes by between steps, in code that is in no span: 6.50 ms")


@pytest.mark.parametrize(
    ("cores", "written", "remark", "remedy"),
    [
        (0.05, 0, " The step's thread sleeps: it uses no CPU and waits for none.", "what the loop waits for"),
        (1.0, 0, " It is Python: the step's thread uses a CPU in it.", "what the loop does"),
        (1.0, 500e6, " The job writes 5.0 MB of files for each step.", "save checkpoints, logs"),
    ],
)
def test_the_use_of_resources_shows_what_pauses_are(
    tmp_path: Path, cores: float, written: float, remark: str, remedy: str
) -> None:
    spans = [span(layout.RUN, at, 10.0 * at, 2.0) for at in range(1, 601)]
    samples = [
        {"t_ns": START_NS + at * SECOND, "cpu_user_s": cores * at, "write_bytes": int(written * at), "rss_bytes": 1}
        for at in range(6)
    ]
    (report,) = reports(job_of(tmp_path, spans=spans, samples=samples), "between")
    assert report.text.partition("that of the next.")[2] == remark
    assert remedy in report.remedy


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
    assert report.numbers["Where"] == 400_000


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


def growing_job(store: Path, ops: Mapping[str, str], held_bytes: Mapping[str, int], **facts: Any) -> LocalJob:
    """Return a job whose memory grows by 1 MB in each of 10 steps a second.

    Each of its traced steps runs ``ops``, which hold ``held_bytes`` at their end.
    """
    step = [Execution(name, 5 * at, 5, held_bytes=held_bytes.get(name, 0)) for at, name in enumerate(ops)]
    samples = rows("samples", memory_samples(1000 + 10 * at for at in range(60)))
    lines = stacks(*((name, 7 + at) for at, name in enumerate(ops)))
    return made_job(store, [step], graph(ops), samples=samples, spans=rows("spans", run_spans(60)), **lines, **facts)


GROWTH = "the job's memory grows while steps run, by 600 MB a minute: from 1.2 GB to 1.6 GB in 41.0 s, 1.0 MB a step."


def test_growing_memory_is_reported_with_the_op_whose_output_has_the_size_of_the_growth(tmp_path: Path) -> None:
    ops = {"large": "MatMul", "kept": "Identity", "small": "Add"}
    job = growing_job(tmp_path, ops, {"large": 8_000_000, "kept": 1_000_000, "small": 18_000})
    (report,) = reports(job, "memory")
    assert report.text == f"{GROWTH} About as much is in the output of each of these: Identity kept (1.0 MB)."
    assert report.line == "main.py:8 (f)"


def test_variables_that_eager_steps_create_are_named_where_memory_grows(tmp_path: Path) -> None:
    evidence = gather(growing_job(tmp_path, {"made": "VarHandleOp"}, {}))
    assert evidence.breakdown is not None
    eager = replace(evidence, breakdown=replace(evidence.breakdown, is_eager=True))
    (in_graph,), (report,) = memory.check(evidence), memory.check(eager)
    assert "tf.Variables, 1 in the mean" in report.text
    assert "before the loop" in report.remedy
    assert "tf.Variables, 1" not in in_graph.text  # the op only looks a variable up


def test_growth_that_no_op_explains_has_no_line(tmp_path: Path) -> None:
    (report,) = reports(growing_job(tmp_path, {"large": "MatMul", "small": "Add"}, {"large": 8_000_000}), "memory")
    assert report.text.startswith(f"{GROWTH} The ops of the traced steps do not explain it")
    assert report.line == ""
    assert "tracemalloc" in report.remedy


def test_variables_that_pile_up_are_named(tmp_path: Path) -> None:
    names = ["weights", "extra", "extra_1", "extra_2"]
    op_log = [
        {"graph": 0, "name": name, "float_ops": -1, "types": ["_trainable_variables"], "shape": [500, 500]}
        for name in names
    ]
    job = growing_job(tmp_path, dict.fromkeys(names, "VariableV2"), {}, op_log=rows("op_log", op_log))
    (report,) = reports(job, "memory")
    assert report.text.endswith("in the output of each of these: the 3 variables extra, extra_1, … (1.0 MB).")
    assert report.line == "main.py:10 (f)"


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


def test_memory_that_grows_fast_is_reported_after_some_seconds(tmp_path: Path) -> None:
    """A loop of 16 s keeps each array that it fetches."""
    megabytes = [245, 272, 297, 324, 346, 368, 390, 412, 438, 461, 485, 513, 535, 558, 591]
    job = job_of(tmp_path, samples=memory_samples(map(float, megabytes)), spans=run_spans(len(megabytes)))
    (report,) = reports(job, "memory")
    assert report.text.startswith("the job's memory grows while steps run, by 1.5 GB a minute: ")


@pytest.mark.parametrize(("number", "is_enough"), [(11, False), (12, True)])
def test_memory_is_checked_if_there_is_enough_data(number: int, is_enough: bool) -> None:
    samples = tuple(MemorySample(at * SECOND, (1000 + 100 * at) * 10**6) for at in range(number))
    evidence = Evidence(memory_samples=samples)
    assert bool(memory.check(evidence)) == is_enough
    assert missing_data.of_memory(evidence) == ("" if is_enough else "fewer than 12 s of steps")


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
    lines = stacks(("a", 7), *((f"a_{at}", 9) for at in range(20)))
    nodes = graph({"a": "A", **{f"a_{at}": "A" for at in range(20)}})
    (report,) = reports(made_job(tmp_path / "lines", growing_steps, nodes, **lines), "retracing")
    assert report.line == "main.py:9 (f)"
    recurring_steps = [[Execution("a", 0, 5), Execution(f"a_{at % 5}", 5, 5)] for at in range(20)]
    assert report_texts(made_job(tmp_path / "same", recurring_steps), "retracing") == []


def test_new_iterators_of_the_input_pipeline_are_no_growth_of_the_graph(tmp_path: Path) -> None:
    device = ITERATOR_DEVICE.decode()
    steps = [[Execution("a", 0, 5), Execution(f"Iterator::Repeat[{at}]", 5, 5, device=device)] for at in range(20)]
    assert not reports(made_job(tmp_path, steps), "retracing")


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
    keys = [at if at > 20 and at % 2 else 1 for at in range(1, 41)]
    late_calls = [span(layout.FUNCTION, at, 10.0 * at, 5.0, key=key) for at, key in enumerate(keys, 1)]
    (report,) = reports(job_of(tmp_path / "late", spans=late_calls), "retracing")
    assert (
        report.text
        == "10 functions were called for the first time in the second half of the job; each was traced then."
    )
    early_calls = [span(layout.FUNCTION, at, 10.0 * at, 5.0, key=at % 8) for at in range(1, 41)]
    assert report_texts(job_of(tmp_path / "early", spans=early_calls), "retracing") == []
    # Metrics after the training: each function is traced once.
    keys = [at if at > 30 else 1 for at in range(1, 41)]
    at_the_end = [span(layout.FUNCTION, at, 10.0 * at, 5.0, key=key) for at, key in enumerate(keys, 1)]
    assert report_texts(job_of(tmp_path / "end", spans=at_the_end), "retracing") == []


def test_the_longest_activities_are_those_since_the_first_step(tmp_path: Path) -> None:
    collection = activities.key_of(activities.GC, "generation 2")
    collections = [
        span(layout.ACTIVITY, 0, start_ms, 30.0, key=collection, max_ns=ms * MS)
        for start_ms, ms in ((0, 9), (50, 5), (70, 3))
    ]
    steps = [span(layout.RUN, at, 10.0 + 10 * at, 2.0) for at in range(40)]
    assert gather(job_of(tmp_path, spans=[*collections, *steps])).longest_ns == {"gc": 5 * MS}


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
    assert "every" not in report.numbers
    assert "shapes" in report.remedy


@pytest.mark.parametrize(
    "times",
    [
        [1.0 + at % 3 / 2 for at in range(200)],  # not far longer
        [50.0] * 5 + [1.0] * 195,  # warming up
        [20.0 if at == 100 else 1.0 for at in range(200)],  # once
        [4.0 if at % 100 == 50 else 1.0 for at in range(400)],  # little of the time
        [20.0 if at % 10 == 0 else 1.0 for at in range(40)],  # few
        [0.0] * 80,
        [0.0] * 80 + [1.0] * 10,
    ],
)
def test_other_step_times_are_not_reported(tmp_path: Path, times: list[float]) -> None:
    advice = advise(gather(job_of(tmp_path, spans=runs(times))))
    assert [each.reports for each in advice if each.checker.slug == "uneven"] == [()]


def test_traced_steps_never_count_as_long_steps(tmp_path: Path) -> None:
    spans = runs([20.0 if at % 25 == 0 else 1.0 for at in range(1, 201)])
    for row in spans:
        row["flags"] = layout.FLAG_TRACED if row["ordinal"] % 25 == 0 else 0
    assert report_texts(job_of(tmp_path, spans=spans), "uneven") == []


def job_on_host(
    store: Path,
    loads: Sequence[tuple[float, float]],
    times_ms: Iterable[float],
    **tables: Any,
) -> LocalJob:
    """Return a job on a host with two CPUs, with the busy cores of (host, job) in each second.

    Its runs last ``times_ms``.
    """
    times_ns = [START_NS + SECOND * second for second in range(-1, len(loads))]
    host_s, own_s = ([0.0, *accumulate(load[index] for load in loads)] for index in (0, 1))
    write_host(
        store,
        [{"t_ns": t_ns, "cpus": 2, "cpu_busy_s": seconds} for t_ns, seconds in zip(times_ns, host_s, strict=True)],
    )
    samples = [
        {"t_ns": t_ns, "cpu_user_s": seconds, "rss_bytes": 1} for t_ns, seconds in zip(times_ns, own_s, strict=True)
    ]
    return job_of(store, spans=runs(times_ms), samples=samples, **tables)


QUIET, BUSY = (0.7, 0.7), (1.9, 0.7)
#: Runs of 10 ms; those in the third second take 100 ms.
SLOW_SECOND = [10.0] * 200 + [100.0] * 10 + [10.0] * 300


def test_a_host_that_is_busy_only_during_slow_steps_is_named_as_the_reason(tmp_path: Path) -> None:
    loads = [BUSY if second == 3 else QUIET for second in range(8)]
    (report,) = reports(job_on_host(tmp_path, loads, SLOW_SECOND), "uneven")
    assert report.text.endswith(
        " of the time in steps. The likely reason is the host, not the job: while they ran, other processes used 1.2"
        " of its 2 CPUs, and few were idle; during the other steps some were idle."
    )
    assert report.numbers["other_cores"] == pytest.approx(1.2)
    assert "quiet host" in report.remedy


@pytest.mark.parametrize(
    ("slow", "normal"),
    [((1.0, 0.2), QUIET), ((1.9, 1.8), QUIET), ((0.0, 0.0), (0.0, 0.0))],
    ids=["a CPU is free", "the job uses the CPUs", "no load"],
)
def test_a_host_is_not_named_as_the_reason_unless_others_keep_it_busy_in_slow_steps_only(
    tmp_path: Path, slow: tuple[float, float], normal: tuple[float, float]
) -> None:
    loads = [slow if second == 3 else normal for second in range(8)]
    (report,) = reports(job_on_host(tmp_path, loads, SLOW_SECOND), "uneven")
    assert report.text.endswith(" of the time in steps.")
    assert "shapes" in report.remedy


@pytest.mark.parametrize("slow", [BUSY, (2.0, 0.0)], ids=["always busy", "always busy, and the job sleeps"])
def test_on_a_host_that_is_always_busy_uneven_steps_only_inform(tmp_path: Path, slow: tuple[float, float]) -> None:
    loads = [slow if second == 3 else BUSY for second in range(8)]
    job = job_on_host(tmp_path, loads, SLOW_SECOND)
    (report,) = reports(job, "uneven")
    assert "Other processes compete for the host's CPUs in these steps and in the others" in report.text
    assert report.remedy == ""
    assert verdict(advise(gather(job))) == "no cause of lost time was found"


def test_regular_long_steps_are_due_to_the_job_even_on_a_busy_host(tmp_path: Path) -> None:
    times = [20.0 if at % 25 == 0 else 1.0 for at in range(1, 201)]
    (report,) = reports(job_on_host(tmp_path, [BUSY] * 2, times), "uneven")
    assert report.text.endswith("They come every 25 steps.")


def test_what_other_findings_explain_is_no_uneven_step(tmp_path: Path) -> None:
    recorded = gather(job_of(tmp_path, spans=runs([20.0 if at % 25 == 0 else 1.0 for at in range(1, 201)])))
    parts = recorded.breakdown
    assert parts is not None
    for part, explained_ms, share in (
        (Part("tracing", 0.3 * MS, (), ""), 0.3, 0.27),
        (Part("input", 0.3 * MS, (), ""), 0.3, 0.27),
        (Part("python", 0.6 * MS, (Detail("garbage collection generation 2", 0.3 * MS),), ""), 0.3, 0.27),
    ):
        (report,) = uneven.check(replace(recorded, breakdown=replace(parts, parts=(part,))))
        assert report.numbers["share"] == pytest.approx((8 * 19 - 195 * explained_ms) / 347)
        assert report.saving == pytest.approx(share, abs=0.01)
    traced = replace(parts, parts=(Part("tracing", 0.7 * MS, (), ""),))
    assert uneven.check(replace(recorded, breakdown=traced)) == []


def test_some_long_steps_that_are_near_each_other_have_no_interval(tmp_path: Path) -> None:
    times = [20.0 if at in {10, 12, 14, 16, 18, 20, 140} else 1.0 for at in range(1, 201)]
    (report,) = reports(job_of(tmp_path, spans=runs(times)), "uneven")
    assert "They come every" not in report.text


def test_steps_are_compared_with_steps_of_the_same_call(tmp_path: Path) -> None:
    spans = runs([20.0 if at % 9 == 0 else 1.0 for at in range(1, 201)])
    for row in spans:
        row["key"] = int(row["total_ns"] > MS)
    assert report_texts(job_of(tmp_path, spans=spans), "uneven") == []


# -- slower steps, and the host --------------------------------------------------------------------

#: Three seconds of runs of 10 ms, then four seconds of runs of 80 ms.
SLOWER = [10.0] * 300 + [80.0] * 50


def slower_alert(step: int) -> dict[str, Any]:
    """Return the row of an alert about slower runs from ``step`` on."""
    since_ns = START_NS + 3 * SECOND
    return {"slug": "slower", "kind": layout.RUN, "step": step, "since_ns": since_ns, "before": 1e7, "now": 8e7}


def test_a_lasting_increase_of_the_step_time_is_one_finding(tmp_path: Path) -> None:
    job = job_on_host(tmp_path, [QUIET] * 8, SLOWER)
    (report,) = reports(job, "slower")
    assert re.fullmatch(
        r"since run 301 \(2023-..-.. ..:..:..\), steps take 8\.0 times as long as before: 80\.0 ms instead of"
        r" 10\.0 ms\. The reason is in the job: other processes of the host use 0\.00 of its 2 CPUs, before 0\.00\.",
        report.text,
    )
    assert "host" not in report.remedy
    assert report_texts(job, "uneven") == []


def test_sampled_steps_have_become_slower_at_a_step_that_was_timed(tmp_path: Path) -> None:
    fast, slow = ([(ms, start_ms + 3000 * at) for at in range(1, 41)] for ms, start_ms in ((1, 0), (10, 120_000)))
    entries = [
        span(layout.RUN, 100 * at + 1, end_ms - 100 * ms, 100 * ms, count=100, flags=layout.FLAG_SAMPLED)
        for at, (ms, end_ms) in enumerate(fast + slow)
    ]
    shift = gather(job_of(tmp_path, spans=entries)).shift
    assert shift is not None
    assert (shift.step, shift.start_ns) == (4100, START_NS + 122_990 * MS)


def test_other_processes_that_come_with_slower_steps_are_named(tmp_path: Path) -> None:
    (report,) = reports(job_on_host(tmp_path, [QUIET] * 4 + [BUSY] * 4, SLOWER), "slower")
    assert "The likely reason is the host: other processes use 1.20 of its 2 CPUs, before 0." in report.text
    assert "tfprof host" in report.remedy


def paused_runs(pauses_ms: Sequence[float]) -> list[dict[str, int]]:
    """Return spans of runs of 5 ms, with a pause after each."""
    starts_ms = accumulate((5 + pause_ms for pause_ms in pauses_ms), initial=0.0)
    return [span(layout.RUN, number, start_ms, 5) for number, start_ms in enumerate(starts_ms, 1)]


def test_a_lasting_increase_of_the_pauses_is_one_finding(tmp_path: Path) -> None:
    (report,) = reports(job_of(tmp_path, spans=paused_runs([5] * 100 + [35] * 60)), "slower")
    assert re.fullmatch(
        r"since run 101 \(2023-..-.. ..:..:..\), the time from the start of a step to the next start is 4\.0 times as"
        r" long as before: 40\.0 ms instead of 10\.0 ms\. Most of it is due to longer pauses between the steps\.",
        report.text,
    )
    (since,) = re.findall(r"tfprof breakdown JOB --since (\S+)\)", report.remedy)
    assert parse_moment(since)[0] == (START_NS + SECOND) // SECOND * SECOND
    assert report.saving == pytest.approx(0.75)


def test_steps_that_only_begin_fast_have_not_become_slower(tmp_path: Path) -> None:
    times = [5.0] * 40 + [10.0] * 900
    assert report_texts(job_of(tmp_path, spans=runs(times)), "slower") == []
    assert len(report_texts(job_of(tmp_path / "half", spans=runs(times[:500])), "slower")) == 0
    assert len(report_texts(job_of(tmp_path / "less", spans=runs([5.0] * 40 + [10.0] * 200)), "slower")) == 1


@pytest.mark.parametrize(("cores", "queued_before", "is_due"), [(0.5, 1.0, True), (1.4, 1.0, False), (0.5, 1.8, False)])
def test_steps_that_wait_longer_for_a_cpu_are_due_to_the_host(cores: float, queued_before: float, is_due: bool) -> None:
    early = (TimedSteps(at, 1, at * SECOND // 2, SECOND // 2, is_normal=True) for at in range(50))
    late = (TimedSteps(at, 1, (at - 25) * SECOND, SECOND, is_normal=True) for at in range(50, 100))
    evidence = Evidence(
        timed_steps=(*early, *late),
        shift=StepShift(50, 0, 25 * SECOND, SECOND / 2, SECOND, is_gradual=False, has_alert=False),
        load=(Load(0, 25 * SECOND, 0.9, 1.1, 2), Load(25 * SECOND, 75 * SECOND, cores, 2 - cores, 2)),
        shift_use=(ThreadUse(0.1, 0.1, queued_before), ThreadUse(0.1, 0.1, 1.1)),
    )
    (report,) = slower.check(evidence)
    assert ("The likely reason is the host" in report.text) == is_due
    assert ("tfprof host" in report.remedy) == is_due
    assert report.verdict.endswith("since other processes use the CPUs") == is_due


def test_slower_steps_on_a_busy_host_only_inform_if_nothing_is_known_about_the_time_before() -> None:
    early = (TimedSteps(at, 1, at * 10 * MS, 10 * MS, is_normal=True) for at in range(50))
    late = (TimedSteps(at, 1, SECOND // 2 + (at - 50) * 20 * MS, 20 * MS, is_normal=True) for at in range(50, 150))
    shift = StepShift(50, 0, SECOND // 2, 10.0 * MS, 20.0 * MS, is_gradual=False, has_alert=False)
    evidence = Evidence(
        timed_steps=(*early, *late),
        shift=shift,
        load=(Load(0, 3 * SECOND, 0.6, 1.4, 2),),
        shift_use=(None, ThreadUse(0.2, 0.5, 1.3)),
    )
    (report,) = slower.check(evidence)
    assert report.text.endswith("so this need not be the job's doing.")
    assert (report.remedy, report.saving, report.verdict) == ("", 0.0, "")
    for known in (
        replace(evidence, shift=shift._replace(has_alert=True)),
        replace(evidence, load=(Load(0, 3 * SECOND, 0.6, 0.1, 2),)),
        replace(evidence, shift_use=(ThreadUse(0.2, 0.5, 1.3), ThreadUse(0.2, 0.5, 1.3))),
    ):
        assert slower.check(known)[0].remedy


def test_short_steps_that_wait_for_a_cpu_on_a_host_that_is_always_busy_come_after_the_jobs_own_cause() -> None:
    """Runs of 0.1 ms wait for a CPU and take 10 ms. The pauses between them have 4 ms of Python."""
    early = (TimedSteps(at, 1, at * 4 * MS, MS // 8, is_normal=True) for at in range(3226))
    late = (
        TimedSteps(at, 1, 3226 * 4 * MS + (at - 3226) * 14 * MS, 10 * MS, is_normal=True) for at in range(3226, 4138)
    )
    shift_ns = 3226 * 4 * MS
    evidence = Evidence(
        timed_steps=(*early, *late),
        shift=StepShift(3226, 0, shift_ns, MS / 8, 10.0 * MS, is_gradual=False, has_alert=False),
        load=(Load(0, shift_ns, 0.6, 1.4, 2), Load(shift_ns, 2 * shift_ns, 0.2, 1.8, 2)),
        shift_use=(ThreadUse(0.5, 0.5, 1.0), ThreadUse(0.2, 0.8, 1.3)),
    )
    (report,) = slower.check(evidence)
    assert report.of_host
    checkers = {checker.slug: checker for checker in CHECKERS}
    own = Report("Python", remedy="less", saving=0.6)
    advice = [Advice(checkers["slower"], (report,)), Advice(checkers["between"], (own,))]
    assert [finding.report for finding in findings(advice)] == [own, report]
    in_the_job = Advice(checkers["slower"], (replace(report, of_host=False),))
    assert findings([in_the_job, advice[1]])[0].checker.slug == "slower"


def test_pauses_that_grow_more_than_the_steps_are_the_finding(tmp_path: Path) -> None:
    durations_ms, pauses_ms = [5.0] * 100 + [10.0] * 60, [5.0] * 100 + [35.0] * 60
    starts_ms = accumulate((step + pause for step, pause in zip(durations_ms, pauses_ms, strict=True)), initial=0.0)
    spans = [
        span(layout.RUN, number, start_ms, step)
        for number, (start_ms, step) in enumerate(zip(starts_ms, durations_ms, strict=False), 1)
    ]
    job = job_of(tmp_path, spans=spans)
    (report,) = reports(job, "slower")
    assert "4.5 times as long as before: 45.0 ms instead of 10.0 ms. Most of it is due to longer pauses" in report.text
    assert shift_note(job) is None


def test_a_lasting_increase_of_the_pauses_between_sampled_steps_is_found(tmp_path: Path) -> None:
    entries = [
        span(layout.RUN, last - steps + 1, start_ms + 1 - steps, steps, count=steps, flags=layout.FLAG_SAMPLED)
        for last, steps, start_ms in sampled_steps([10] * 2000 + [40] * 1500)
    ]
    (report,) = reports(job_of(tmp_path, spans=entries), "slower")
    assert re.search(r"is 4\.0 times as long as before: 40\.0 ms instead of 10\.0 ms\.", report.text)


def test_calls_in_turns_do_not_pause_longer_once_their_steps_are_sampled(tmp_path: Path) -> None:
    """The call with the most time is followed by the other at once, the other one by a pause."""
    steps = [(at, 5 + at % 2, at // 2 * 3 + at % 2 * 2.5, 0.3 + at % 2 / 10) for at in range(4000)]
    entries = [span(layout.RUN, at, start_ms, step_ms, key=key) for at, key, start_ms, step_ms in steps[1:257]]
    entries += [
        span(layout.RUN, at - 60, start_ms - 60 * step_ms, 61 * step_ms, count=61, key=key, flags=layout.FLAG_SAMPLED)
        for at, key, start_ms, step_ms in steps[256 + 61 :: 61]
    ]
    assert report_texts(job_of(tmp_path, spans=entries), "slower") == []


def sampled_steps(periods_ms: Sequence[float]) -> list[tuple[int, int, float]]:
    """Return the timed ones of steps of 1 ms: number, steps since the last timed one, and start."""
    starts_ms = list(accumulate(periods_ms, initial=0.0))
    lengths = [20, 70, 35, 90, 5, 60] * 12
    return [(last, length, starts_ms[last - 1]) for last, length in zip(accumulate(lengths), lengths, strict=True)]


@pytest.mark.parametrize("pauses_ms", [[5, 35] * 60, [5] * 100 + [6] * 60, [5] * 100 + [900] + [5] * 60])
def test_pauses_without_a_lasting_increase_are_not_reported(tmp_path: Path, pauses_ms: list[float]) -> None:
    assert report_texts(job_of(tmp_path, spans=paused_runs(pauses_ms)), "slower") == []


@pytest.mark.parametrize(
    ("loads", "alerts"),
    [([BUSY] * 8, []), ([BUSY] * 4 + [(2.0, 0.1)] * 4, []), ([QUIET] * 4 + [BUSY] * 4, [slower_alert(301)])],
    ids=["always busy", "always busy, and the job works less", "the collector compared the jobs of the host"],
)
def test_the_host_is_not_blamed_for_slower_steps_without_evidence(
    tmp_path: Path, loads: list[tuple[float, float]], alerts: list[dict[str, Any]]
) -> None:
    (report,) = reports(job_on_host(tmp_path, loads, SLOWER, alerts=alerts), "slower")
    assert "The likely reason is the host" not in report.text
    assert "host" not in report.remedy


def test_steps_that_take_longer_and_longer_are_reported_as_growth(tmp_path: Path) -> None:
    (report,) = reports(job_of(tmp_path, spans=runs([2.0 + at / 20 for at in range(200)])), "slower")
    assert report.text.startswith("steps take longer and longer: since run ")
    assert "grows" in report.remedy


@pytest.mark.parametrize(
    "times",
    [
        [10.0] * 100 + [14.0] * 100,  # not much slower
        [10.0] * 100 + [80.0] * 10,  # few
        [10.0] * 100 + [80.0] * 50 + [10.0] * 50,  # they recover
        [10.0, 80.0] * 100,
        [80.0] * 100 + [10.0] * 100,  # faster
    ],
)
def test_step_times_without_a_lasting_increase_are_not_reported(tmp_path: Path, times: list[float]) -> None:
    assert report_texts(job_of(tmp_path, spans=runs(times)), "slower") == []


def starved_evidence(own_cores: float, other_cores: float, *, op: str = "MatMul") -> Evidence:
    """Return the evidence of a job whose many small ops run for 60 % of its steps."""
    small = [OpExecution("a", op, CPU.lower(), 1, 100_000 * at, 100_000 * at + 60_000) for at in range(250)]
    tiny = [OpExecution("b", "Add", CPU.lower(), 1, 100_000 * at, 100_000 * at + 5_000) for at in range(251)]
    return Evidence(
        timed_steps=tuple(TimedSteps(at, 1, at * SECOND // 10, SECOND // 10, True) for at in range(100)),
        step_traces=(StepTrace(1, 25_100_000, (*small, *tiny)),),
        load=(Load(0, 10 * SECOND, own_cores, other_cores, 2),),
    )


def test_the_host_sentence_has_the_figures_of_the_advice() -> None:
    starved_job = starved_evidence(0.14, 1.8)
    (report,) = starved.check(starved_job)
    sentence = host_sentence(starved_job)
    assert sentence is not None
    assert sentence.startswith("while steps ran, others used 1.80 of 2 cores, the job 0.14; it waited ")
    assert percent(report.saving) in sentence
    assert host_sentence(starved_evidence(0.9, 0.2)) == "while steps ran, others used 0.20 of 2 cores, the job 0.90"
    assert host_sentence(replace(starved_job, load=())) is None


def test_a_job_that_waits_for_a_cpu_is_not_told_that_its_ops_are_small() -> None:
    evidence = starved_evidence(0.14, 1.8)
    (report,) = starved.check(evidence)
    assert report.text == (
        "the job waits for CPUs: its ops run for 60 % of the time, but its main process got only 0.14 CPUs."
        " Other processes used 1.80 of the host's 2."
    )
    assert tiny_ops.check(evidence) == []


def test_a_job_whose_own_processes_use_the_cpus_is_told_so() -> None:
    use = ThreadUse(0.1, 0.8, 1.2, process=0.2)
    (report,) = starved.check(replace(starved_evidence(1.9, 0.05), thread_use=use))
    assert report.text == (
        "the job waits for CPUs: its ops run for 60 % of the time, but its main process got only 0.20 CPUs."
        " Its further processes used 1.70 of the host's 2."
    )
    assert "start fewer processes" in report.remedy
    assert not report.of_host
    # Processes of others use more.
    (report,) = starved.check(replace(starved_evidence(0.6, 1.4), thread_use=use))
    assert report.text.endswith(
        " Its further processes used 0.40 of the host's 2. Other processes used 1.40 of the host's 2."
    )
    assert report.of_host
    # Without the time of the job's own process nothing competes.
    assert starved.check(replace(starved_evidence(1.9, 0.05), thread_use=ThreadUse(0.1, 0.8, 1.2))) == []


def test_the_time_of_the_jobs_own_process_has_to_be_known_for_most_of_the_period(tmp_path: Path) -> None:
    waits = [{"t_ns": at * SECOND, "main_cpu_s": at / 2, "main_queued_s": 0.0, "queued_s": 0.0} for at in range(11)]
    busy = [{"t_ns": at * SECOND, "thread": 0, "cpu_s": 0.3} for at in range(11)]
    job = job_of(tmp_path, thread_samples=waits, busy_threads=busy)
    pid = job.info.identity["pid"]
    assert isinstance(pid, int)
    period = (0, 10 * SECOND)
    assert thread_use(job, pid, period) == pytest.approx(ThreadUse(0.5, process=0.3))
    (tmp_path / "late").mkdir()
    late = job_of(tmp_path / "late", thread_samples=waits, busy_threads=busy[6:])
    late_use = thread_use(late, pid, period)
    assert late_use is not None
    assert late_use.process is None


def test_a_function_of_map_is_named_where_no_stage_is_known() -> None:
    evidence = replace(waiting_step(), map_functions=("prepare",))
    (report,) = input_bound.check(evidence)
    assert report.text.endswith(" Function of map(…): prepare.")
    assert report.verdict == "highly input-bound: steps wait for input"  # it may be another stage
    batched = replace(waiting_step(("::Batch", 650_000)), map_functions=("prepare",))
    assert "prepare" not in input_bound.check(batched)[0].text


def test_functions_of_map_have_the_names_that_tensorflow_gave_their_graphs(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    job.info.identity["functions"] = {
        str(activities.key_of(category, name)): name
        for category, name in (
            (activities.TRACING, "Dataset_map_load_png"),
            (activities.TRACING, "Dataset_map_grab_batch"),  # Keras
            (activities.TRACING, "Dataset_flat_map_f"),
            (activities.FIRST_RUN, "Dataset_map_other"),
        )
    }
    assert gather(job).map_functions == ("load_png", "grab_batch")


def test_busy_threads_have_the_names_that_the_job_announces(tmp_path: Path) -> None:
    busy = [
        {"t_ns": at * SECOND, "thread": thread, "cpu_s": cpu_s}
        for at in (1, 2, 3, 4)
        for thread, cpu_s in ((7, 0.9), (8, 0.95), (9, 0.2))
    ]
    job = job_of(tmp_path, busy_threads=busy)
    job.info.identity["functions"] = {
        str(activities.key_of(activities.THREAD, name)): name
        for name in ("7 spin (train.py:3) Thread-1 (spin)", "9 beat (log (2).py:5) ", "10 idle (log.py:9) x", "odd")
    }
    assert python_threads(job, (2 * SECOND, 4 * SECOND)) == (
        PythonThread("Thread-1 (spin)", "spin", "train.py:3", pytest.approx(0.9)),
        PythonThread("", "beat", "log (2).py:5", pytest.approx(0.2)),
    )
    # Before Python 3.8 the number is unknown.
    name = "0 spin (train.py:3) Thread-1"
    job.info.identity["functions"] = {str(activities.key_of(activities.THREAD, name)): name}
    assert python_threads(job, (0, 4 * SECOND)) == ()
    (tmp_path / "one").mkdir()
    single = job_of(tmp_path / "one", busy_threads=[row for row in busy if row["thread"] == 8])
    single.info.identity["functions"] = job.info.identity["functions"]
    assert python_threads(single, (0, 4 * SECOND))[0].cores == pytest.approx(0.95)


def test_waits_of_a_thread_that_ends_take_nothing_from_those_of_the_others(tmp_path: Path) -> None:
    totals = [0.0, 2.0, 4.0, 1.0, 3.0]  # a thread with waits of 5 s ends before the fourth sample
    waits = [
        {"t_ns": at * SECOND, "main_cpu_s": at / 2, "main_queued_s": at / 10, "queued_s": queued}
        for at, queued in enumerate(totals)
    ]
    job = job_of(tmp_path, thread_samples=waits)
    pid = job.info.identity["pid"]
    assert isinstance(pid, int)
    assert thread_use(job, pid, (0, 4 * SECOND)) == pytest.approx(ThreadUse(0.5, 0.1, 6 / 4))


def test_threads_that_wait_behind_other_processes_are_starved() -> None:
    evidence = replace(starved_evidence(0.6, 1.4), thread_use=ThreadUse(0.1, 0.05, 1.8))
    (report,) = starved.check(evidence)
    assert report.text == (
        "the job waits for CPUs: its main process runs for 0.60 s each second, and its threads wait for a CPU"
        " for 1.80 s, 52 % of the time behind other processes. Other processes used 1.40 of the host's 2."
    )
    sentence = host_sentence(evidence)
    assert sentence is not None
    assert sentence.endswith("; it waited 52 % of the time for one")
    asleep = replace(
        evidence, breakdown=Breakdown("run", 50, 52, 3, 10.0, 5, 5, (Part(WAITING, 5, (Detail(ASLEEP, 5),), ""),), ())
    )
    assert starved.check(asleep) == []  # 26 % of the time
    alone = replace(starved_evidence(1.9, 0.05), thread_use=ThreadUse(0.1, 0.05, 6.0))
    seldom = replace(starved_evidence(0.1, 1.8), step_traces=(), thread_use=ThreadUse(0.1, 0.0, 0.1))
    assert starved.check(alone) == starved.check(seldom) == []


@pytest.mark.parametrize(
    "evidence",
    [
        starved_evidence(0.14, 0.2),
        starved_evidence(0.6, 1.3),
        starved_evidence(0.02, 1.9, op="IteratorGetNext"),
        Evidence(),
    ],
    ids=["CPUs are idle", "it gets what it needs", "its ops wait for input", "no data"],
)
def test_a_job_that_does_not_wait_for_a_cpu_is_not_starved(evidence: Evidence) -> None:
    assert starved.check(evidence) == []


def test_ops_that_call_a_waiting_function_need_no_cpu() -> None:
    calls = (("call", "StatefulPartitionedCall"), ("wait", "PyFunc"))
    step = StepTrace(1, 1000, tuple(OpExecution(name, op, CPU.lower(), 1, 0, 900) for name, op in calls))
    evidence = replace(starved_evidence(0.02, 1.9), step_traces=(step,))
    assert starved.check(evidence) == []


def test_runs_with_new_fetches_each_time_are_a_growing_graph(tmp_path: Path) -> None:
    growing, repeating = runs([2.0] * 60), runs([2.0] * 60)
    for number, (new, old) in enumerate(zip(growing, repeating, strict=True)):
        new["key"], old["key"] = number, number % 4
    (report,) = reports(job_of(tmp_path / "growing", spans=growing), "retracing")
    assert report.text.startswith("30 of 30 late run steps have fetches or feeds that no earlier one had: the graph")
    assert "finalize" in report.remedy
    assert report_texts(job_of(tmp_path / "repeating", spans=repeating), "retracing") == []
    # A loop that runs the same train op before each new one.
    for number, new in enumerate(growing):
        new["key"] = number if number % 2 else 1000
    (alternating,) = reports(job_of(tmp_path / "alternating", spans=growing), "retracing")
    assert alternating.text.startswith("15 of 30 late run steps have fetches or feeds that no earlier one had")


def test_runs_of_other_kinds_with_new_fetches_each_time_are_a_growing_graph(tmp_path: Path) -> None:
    for key_count, found in ((1000, 1), (4, 0)):
        spans = [
            span(kind, number, 10 * number + at, 4, key=number % key_count if kind == layout.INIT else 7)
            for number in range(1, 61)
            for at, kind in ((0, layout.TRAIN), (5, layout.INIT))
        ]
        found_texts = report_texts(job_of(tmp_path / str(key_count), spans=spans), "retracing")
        assert len(found_texts) == found
    (text,) = report_texts(LocalStore(tmp_path / "1000").job("last"), "retracing")
    assert text.startswith("30 of 30 late runs beside the train steps have fetches or feeds that no earlier one had")


# -- the verdict -----------------------------------------------------------------------------------


def test_the_verdict_is_the_finding_that_saves_most_time(tmp_path: Path) -> None:
    spans = rows("spans", runs([2.0] * 80, pause_ms=6.0))
    step = [Execution("next", 0, 700), Execution("work", 700, 300)]
    job = made_job(tmp_path, [step] * 2, graph({"next": "IteratorGetNext", "work": "MatMul"}), spans=spans)
    advice = advise(gather(job))
    assert verdict(advice) == "much of the time goes by between the steps, up to 75 % of the time"
    assert [finding.checker.slug for finding in findings(advice)][:3] == ["between", "input", "expensive"]
    input_finding = findings(advice)[1]
    assert input_finding.report.saving == pytest.approx(0.7 / 8, abs=0.01)  # a traced step takes 1 ms of 8


def test_the_verdict_names_steps_of_another_kind(tmp_path: Path) -> None:
    advice = advise(gather(job_of(tmp_path, spans=trained((layout.RUN, 2.1, 7.8)))))
    assert verdict(advice) == "run steps take place between the train steps, up to 78 % of the time"


def test_a_growing_graph_comes_before_its_effects(tmp_path: Path) -> None:
    spans = runs([2.0] * 60, pause_ms=6.0)
    for number, row in enumerate(spans):
        row["key"] = number
    advice = advise(gather(job_of(tmp_path, spans=spans)))
    assert verdict(advice) == "graphs are built again while steps run"
    assert [finding.checker.slug for finding in findings(advice)] == ["retracing", "between"]


def test_checks_without_a_finding_are_fine_or_have_no_data(tmp_path: Path) -> None:
    advice = advise(gather(job_of(tmp_path, spans=runs([2.0] * 80))))
    assert verdict(advice) == "no cause of lost time was found"
    assert fine(advice) == ["Between steps", "Retracing", "Slower steps", "Uneven steps"]
    missing = dict(without_data(advice))
    assert missing["fewer than 12 s of steps"] == ["Memory"]
    assert missing["no samples of the host"] == ["Host", "Threads"]
    assert "Input" in missing["no traced step"]


def test_without_any_data_the_verdict_is_unknown(tmp_path: Path) -> None:
    advice = advise(gather(job_of(tmp_path)))
    assert verdict(advice) == "unknown, since there is too little data"
    assert fine(advice) == []
