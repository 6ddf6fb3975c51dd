"""Checkers of the parts of a step report what takes the time, and nothing else.

Tests collector/advice/avoidable.py, collector/advice/between_steps.py, collector/advice/cpu_use.py,
collector/advice/fetches.py, collector/advice/interpreter.py, collector/advice/main_call.py,
collector/advice/overhead.py, collector/advice/precision.py, collector/advice/python_parts.py,
collector/advice/replicas.py, collector/advice/threads.py.
"""

from dataclasses import replace
from typing import Any

import pytest
from tfprof.collector.advice import (
    avoidable,
    between_steps,
    fetches,
    interpreter,
    overhead,
    precision,
    python_parts,
    replicas,
    retracing,
    threads,
)
from tfprof.collector.advice.evidence import Evidence, IdenticalGraphs, Load, PythonThread, Use
from tfprof.collector.advice.report import Report
from tfprof.collector.advice.table import CHECKERS
from tfprof.collector.summaries.parts import Breakdown, Detail, Part
from tfprof.collector.summaries.step_records import OpExecution, StepTrace, ThreadUse, TimedSteps
from tfprof.collector.tfviews.nodes import Node, NodeFacts, Stats

MS = 1_000_000
CHECKS = (
    avoidable,
    between_steps,
    fetches,
    interpreter,
    overhead,
    precision,
    python_parts,
    replicas,
    retracing,
    threads,
)
CPU = "/job:localhost/replica:0/task:0/device:cpu:%d"


def parts(kind: str = "train", step_ms: float = 6, is_eager: bool = False, **ms: Any) -> Breakdown:
    """Return parts of 10 ms; a part is a number of ms, or a dict of its details."""
    times = {slug: value if isinstance(value, dict) else {"": value} for slug, value in ms.items()}
    rest = 10 - sum(sum(details.values()) for details in times.values())
    times.setdefault("device", {"": rest})
    return Breakdown(
        kind,
        50,
        52,
        3,
        10.0 * MS,
        step_ms * MS,
        step_ms * MS,
        tuple(
            Part(
                slug,
                sum(details.values()) * MS,
                tuple(Detail(name, value * MS) for name, value in details.items() if name),
                "",
            )
            for slug, details in times.items()
        ),
        (),
        is_eager=is_eager,
    )


def found(breakdown: Breakdown, **evidence: Any) -> dict[str, list[Report]]:
    """Return the reports of the checkers that report anything, by the name of their module."""
    facts = Evidence(breakdown=breakdown, **evidence)
    reports = {check.__name__.rpartition(".")[2]: list(check.check(facts)) for check in CHECKS}
    return {name: list(reported) for name, reported in reports.items() if reported}


def the_report(breakdown: Breakdown, checker: str, **evidence: Any) -> Report:
    """Return the only report, which is one of ``checker``."""
    reports = found(breakdown, **evidence)
    assert list(reports) == [checker]
    (report,) = reports[checker]
    return report


@pytest.mark.parametrize(
    "breakdown",
    [
        parts(),
        parts(input=9),
        parts(between={"checkpoint Saver.save": 0.9, "run": 4.9}),
        parts(python={"code between the steps": 2.9}),
        parts("batch", python={"code between the steps": 4.4}, before=0.5),  # Keras itself
        parts(python={"garbage collection generation 2": 0.4, "Python function f (a.py:1)": 0.9}),
        parts(tracing={"tracing of train": 0.9}),
        parts("batch", after=3),  # no session
        parts("eager", is_eager=True, python={"between eager ops": 1.9}),
        parts("predict_batch", step_ms=5, python={"code between the steps": 2}),
    ],
)
def test_other_parts_are_not_reported(breakdown: Breakdown) -> None:
    assert found(breakdown) == {}


@pytest.mark.parametrize(
    ("details", "name", "remedy"),
    [
        (
            {"checkpoint CheckpointManager.save": 1.5},
            "checkpoint CheckpointManager.save take",
            "save every few minutes",
        ),
        (
            {"summary SummaryWriter.flush": 0.6, "summary write": 0.7},
            "summaries take place",
            "write summaries every N",
        ),
        ({"callback Slow": 4}, "callback Slow take", "every N batches"),
        ({"evaluation": 2}, "evaluation take", "validation_freq"),
        ({"function:act": 6}, "function:act steps take", "--kind function:act"),
    ],
)
def test_what_takes_place_between_steps_is_named(details: dict[str, float], name: str, remedy: str) -> None:
    report = the_report(parts(between=details), "between_steps")
    assert name in report.verdict
    assert remedy in report.remedy
    assert report.saving == pytest.approx(sum(details.values()) / 10)


def test_code_between_steps_is_python_or_sleep_or_writes_files() -> None:
    python = the_report(parts(python={"code between the steps": 4}), "between_steps")
    assert python.verdict == "Python code runs between the steps"
    assert "feed arrays of its type" in python.remedy
    asleep = the_report(parts(waiting={"asleep between the steps": 4}), "between_steps")
    assert "faulthandler" in asleep.remedy
    by_hand = parts("batch", python={"code between the steps": 4.6}, before=0.5)
    assert the_report(by_hand, "between_steps").verdict == "Python code runs between the steps"
    assert found(by_hand, epochs=3) == {}  # the loop of Keras
    writing = the_report(parts(python={"code between the steps": 4}), "between_steps", use=Use(1.0, 500e6))
    assert writing.verdict == "the job writes files between its steps"
    checkpoints = parts(waiting={"asleep between the steps": 4}, between={"checkpoint CheckpointManager.save": 0.9})
    assert the_report(checkpoints, "between_steps", use=Use(1.0, 500e6)).verdict == "the job sleeps between its steps"
    function = the_report(parts("function:gradients", python={"code between the steps": 4}), "between_steps")
    assert "optimizer.apply_gradients(…) outside of the tf.function" in function.remedy


def test_code_between_steps_that_waits_for_a_cpu_is_judged_by_its_part_of_the_jobs_cpu_time() -> None:
    """Logging in each step, and np.save of 17 MB, on a host that others keep busy."""
    logging = parts(
        "function:train",
        before=2.6,
        waiting={"for a CPU between the steps": 4.9},
        python={"code between the steps": 1.2},
    )
    report = the_report(logging, "between_steps", use=Use(0.2, 1e6))
    assert report.verdict == "Python code runs between the steps"
    assert report.text.endswith("With its waits for a CPU, that is 61 % of the time.")
    assert report.saving == pytest.approx(0.61)
    saving = parts(waiting={"for a CPU between the steps": 2.3}, python={"code between the steps": 0.75})
    assert the_report(saving, "between_steps", use=Use(0.3, 180e6)).verdict == "the job writes files between its steps"
    for little, use in (
        (saving, Use(0.3, 0)),  # without files
        (parts(waiting={"for a CPU between the steps": 2.6}, python={"code between the steps": 0.7}), Use(0.7, 0)),
        (logging, None),
    ):
        assert "between_steps" not in found(little, use=use)
    checkpoints = replace(
        saving, parts=(*saving.parts, Part("between", 1, (Detail("checkpoint Saver.save", 1.0),), ""))
    )
    assert "between_steps" not in found(checkpoints, use=Use(0.3, 180e6))


@pytest.mark.parametrize(
    ("recorded", "verdict", "line"),
    [
        ({"python": {"garbage collection generation 2": 0.6}}, "garbage collections take place in the loop", ""),
        ({"python": {"Python function f (a.py:1)": 1.5}}, "ops of the step call the user's Python", "a.py:1"),
        ({"python": {"Python function f (a (1).py:1)": 1.5}}, "ops of the step call the user's Python", "a (1).py:1"),
    ],
)
def test_python_within_steps_is_named(recorded: dict[str, Any], verdict: str, line: str) -> None:
    report = the_report(parts(**recorded), "python_parts")
    assert (report.verdict, report.line) == (verdict, line)


def test_a_single_garbage_collection_is_not_reported() -> None:
    collections = parts(python={"garbage collection generation 2": 1.4})
    assert "python_parts" in found(collections, longest_ns={"gc": 40 * MS})
    assert found(collections, longest_ns={"gc": 50 * MS}) == {}  # a fiftieth of it in each step


def test_functions_that_are_traced_again_are_named_with_their_line() -> None:
    traced = parts(tracing={"tracing of f": 1, "first run of f": 3})
    for line, own_line in (("a.py:3 (f)", "a.py:3 (f)"), ("a.py:9 (train)", "")):
        report = the_report(traced, "retracing", graphs=(IdenticalGraphs(1, 32, "Identity", line),))
        assert report.text.endswith("4.00 ms a step. Most of it is for f, which was traced while steps ran.")
        assert (report.line, report.saving) == (own_line, pytest.approx(0.4))
    many = the_report(traced, "retracing", graphs=(IdenticalGraphs(8, 32, "Identity", "a.py:3 (f)"),))
    assert many.text.startswith("a function of 32 nodes, one of them Identity, was traced 8 times or more")
    assert many.saving == pytest.approx(0.4)
    assert found(parts(tracing={"tracing of Dataset_map_grab_batch": 4})) == {}  # fit in a loop
    # Most of it is a single time.
    assert found(traced, longest_ns={"tracing": 50 * MS, "first_run": 110 * MS}) == {}


def test_steps_that_are_small_or_eager_or_single_are_told_apart() -> None:
    small = the_report(parts("batch", before=1, launch=1, after=1, python={"code between the steps": 2}), "overhead")
    assert "steps_per_execution" in small.remedy
    assert "larger batches" in the_report(parts(launch=4.9, before=0.1), "overhead").remedy
    eager = the_report(parts("eager", is_eager=True, python={"between eager ops": 5}), "overhead")
    assert eager.remedy == "put the whole step into one tf.function"
    # On a host whose other processes leave the job 0.2 of 4 CPUs.
    held_up = {**loaded(0.2, 3.8, queued=0.5), "step_traces": ()}
    waiting = {"waiting": {"for a CPU": 4}, "python": {"between eager ops": 5}}
    assert the_report(parts("eager", is_eager=True, **waiting), "overhead", **held_up).saving == pytest.approx(0.5)
    assert found(parts(launch=5, waiting={"for a CPU": 4}), **held_up) == {}
    keras = the_report(parts("batch", is_eager=True, python={"between eager ops": 5}), "overhead")
    assert keras.remedy == "compile without run_eagerly=True"
    single = parts("predict_batch", step_ms=2, python={"code between the steps": 8})
    report = the_report(single, "overhead", predict_calls=52)
    assert report.verdict == "predict is called for single batches"
    assert report.saving == pytest.approx(0.8)
    assert "predict is called" not in str(found(single, predict_calls=1))
    # TensorFlow traces the functions of the dataset that each call makes: no advice on tf.function.
    traced = parts("predict_batch", step_ms=2, tracing={"tracing of Dataset_map_grab_batch": 2}, python=6)
    assert the_report(traced, "overhead", predict_calls=52).verdict == report.verdict


def node(name: str, **stats: int) -> Node:
    return Node(name, "MatMul", (CPU % 0,), Stats(**stats))


def test_fetches_name_the_largest_output() -> None:
    nodes = (node("small", output_bytes=10), node("large", output_bytes=128_000_000))
    report = the_report(parts("train", after=4), "fetches", nodes=nodes, traced_steps=2)
    assert "The largest output is that of large, 64.0 MB." in report.text
    assert "tf.data pipeline" in the_report(parts("run", before=4), "fetches").remedy


@pytest.mark.parametrize(
    ("part", "detail", "text", "remedy"),
    [
        ("after", "fetch in train (a.py:7)", "is in tensor.numpy()", "call numpy() less often"),
        (
            "before",
            "conversion in train (a (1).py:7)",
            "is in making tensors of values of Python",
            "once, before the loop",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["function:train", "eager", "batch", "run"])
def test_conversions_in_the_jobs_code_have_their_line(
    kind: str, part: str, detail: str, text: str, remedy: str
) -> None:
    is_eager = kind == "eager"
    report = the_report(parts(kind, is_eager=is_eager, **{part: {detail: 1.9, "": 0.05}}), "fetches")
    assert report.text.startswith(f"19 % of the time, 1.90 ms a step, {text}")
    place = detail.partition(" in ")[2]
    assert report.text.endswith(f"; most of it in {place}.")
    assert remedy in report.remedy
    assert f"train ({report.line})" == place
    assert found(parts(kind, is_eager=is_eager, **{part: {detail: 0.9}})) == {}


SPINNING = PythonThread("Thread-1 (spin)", "spin", "a.py:3", 0.9)


@pytest.mark.parametrize("is_eager", [False, True])
def test_a_thread_that_keeps_the_interpreter_busy_is_the_only_cause(is_eager: bool) -> None:
    waiting = parts("train", is_eager=is_eager, waiting={"asleep between the steps": 5}, before=2, device=3)
    report = the_report(waiting, "interpreter", python_threads=(SPINNING,), thread_use=ThreadUse(0.2, 0.1))
    share = 0.7 if is_eager else 0.4  # ops of eager steps run on the thread itself
    assert report.saving == pytest.approx(share)
    assert "Thread-1 (spin), which runs spin (a.py:3), uses a CPU for 90 % of the time" in report.text
    assert report.remedy.startswith("move spin to a process of its own")
    assert report.line == "a.py:3"


def test_a_thread_that_waits_for_a_cpu_keeps_the_interpreter() -> None:
    waiting = parts("train", waiting={"asleep between the steps": 5}, before=2, device=3)
    slow = SPINNING._replace(cores=0.1)
    facts = {"python_threads": (slow,), "use": Use(0.25, 0)}
    report = the_report(waiting, "interpreter", thread_use=ThreadUse(0.1, 0.3, 1.0), **facts)
    assert report.saving == pytest.approx(0.3)
    assert "interpreter" not in found(waiting, thread_use=ThreadUse(0.1, 0.3, 0.3), **facts)


def test_code_between_steps_counts_in_the_time_that_is_not_spent_waiting_for_a_cpu() -> None:
    waiting = {"for a CPU": 6}
    report = the_report(parts(waiting=waiting, python={"code between the steps": 1.5}), "between_steps")
    assert report.text.startswith("15 % of the time goes by between steps")
    assert report.text.endswith("That is 38 % of the time in which this thread does not wait for a CPU.")
    assert report.saving == pytest.approx(1.5 / 4)
    assert found(parts(waiting=waiting, python={"code between the steps": 1.1})) == {}
    by_hand = parts("batch", waiting=waiting, python={"code between the steps": 1.9})
    assert the_report(by_hand, "between_steps").saving == pytest.approx(1.9 / 4)


@pytest.mark.parametrize(
    ("threads_of_python", "use"),
    [
        ((), ThreadUse(0.2, 0.1)),
        ((SPINNING._replace(cores=0.2),), ThreadUse(0.2, 0.1)),
        ((SPINNING,), ThreadUse(0.5, 0.15)),  # the thread runs, or waits for a CPU
        ((SPINNING,), ThreadUse(0.2, is_exact=False)),
        ((SPINNING,), None),
    ],
)
def test_other_threads_are_not_blamed_if_steps_do_not_wait(
    threads_of_python: tuple[PythonThread, ...], use: ThreadUse | None
) -> None:
    asleep = parts("train", waiting={"asleep between the steps": 2}, before=5, device=3)
    assert "interpreter" not in found(asleep, python_threads=threads_of_python, thread_use=use)


@pytest.mark.parametrize(
    ("op", "share", "verdict"),
    [
        ("StringFormat", 0.11, "ops print or check values in each step"),
        ("CheckNumericsV2", 0.11, "ops print or check values in each step"),
        ("HistogramSummary", 0.11, "summaries are made in each step"),
        ("Transpose", 0.21, "tensors are transposed in each step"),
        ("UnsortedSegmentSum", 0.21, "sparse gradients become dense"),
    ],
)
def test_ops_that_a_step_may_not_need_are_reported(op: str, share: float, verdict: str) -> None:
    facts = NodeFacts()
    nodes = (
        node("a", micros=round(5 * MS * share))._replace(op=op, facts=facts),
        node("b", micros=round(5 * MS * (1 - share))),
    )
    report = the_report(parts(copies=5), "avoidable", nodes=nodes)
    assert report.verdict == verdict
    assert report.numbers["op"] == op
    assert report.saving == pytest.approx(share * 0.5)  # ops run for half of the time
    # Of ops for 1.61 ms a step no more can be saved, though a traced step of 20 ms has them for 12.
    short = tuple(each._replace(stats=Stats(micros=each.stats.micros // 50)) for each in nodes)
    assert the_report(parts(), "avoidable", nodes=short).saving == pytest.approx(share * 0.01)
    less = (node("a", micros=9)._replace(op=op), node("b", micros=100))
    assert found(parts(), nodes=less) == {}


def test_a_function_that_an_op_calls_on_another_thread_is_named() -> None:
    breakdown = replace(
        parts(python={"EagerPyFunc in the graph": 5}),
        pipeline=(Detail("slow (a.py:9)", 5 * MS), Detail("b (a.py:1)", 1)),
    )
    report = the_report(breakdown, "python_parts")
    assert report.text.endswith("most of it in slow (a.py:9).")
    assert report.line == "a.py:9"


def test_ops_in_float64_are_reported() -> None:
    double = NodeFacts(node_def=b"\n\x05large\x12\x06MatMul*\x07\n\x01T\x12\x020\x02")
    nodes = (node("large", micros=9 * MS)._replace(facts=double), node("small", micros=MS))
    assert the_report(parts(), "precision", nodes=nodes).saving == pytest.approx(0.5 * 0.9)
    assert found(parts(), nodes=(nodes[0]._replace(facts=NodeFacts(node_def=b"\n\x01T\x12\x020\x01")),)) == {}


def steps(op: str, devices: dict[int, float]) -> tuple[StepTrace, ...]:
    executions = tuple(
        OpExecution(f"replica_{at}/{op}", op, CPU % at, at, 0, int(ms * MS)) for at, ms in devices.items()
    )
    return (StepTrace(1, 6 * MS, executions),)


def loaded(own: float, other: float, op: str = "MatMul", queued: float = 0.0) -> dict[str, Any]:
    return {
        "load": (Load(0, 1000 * MS, own, other, 4),),
        "timed_steps": tuple(TimedSteps(at, 1, at * 10 * MS, 6 * MS, is_normal=True) for at in range(50)),
        "step_traces": steps(op, {0: 6}),
        "thread_use": ThreadUse(0.5, 0.1, queued),
    }


def test_one_busy_thread_and_too_many_threads_are_reported() -> None:
    assert the_report(parts(), "threads", **loaded(1.0, 0.1)).verdict == "one thread of many is busy"
    many = the_report(parts(), "threads", **loaded(3.9, 0.0, queued=20.0))
    assert many.verdict == "the job's own threads compete for the CPUs"
    beside_others = the_report(parts(), "threads", **loaded(2.0, 1.9, queued=40.0))
    assert beside_others.verdict == many.verdict
    # A job with intra_op_parallelism_threads=1 beside others that use all other CPUs.
    one = the_report(parts(input=1), "threads", **loaded(0.39, 3.61, queued=0.62))
    assert "the job uses 0.39 and waits for 0.62, others use 3.61" in one.text
    assert one.saving == pytest.approx(0.9 * (1 - 1 / 4))
    for quiet in (
        loaded(1.0, 0.1, "Where"),  # its kernel has one thread
        loaded(0.7, 3.2, queued=1.3),  # two threads on a busy host
        loaded(2.0, 0.1),
        loaded(3.9, 0.0, queued=4.0),
        loaded(2.0, 1.9, queued=15.0),  # others use them
    ):
        assert found(parts(), **quiet) == {}


def test_a_job_that_uses_more_than_one_cpu_while_ops_run_is_healthy() -> None:
    busy_between = loaded(1.15, 0.0)  # 0.45 of it while no op runs: 1.27 for the 0.55 of the time with ops
    assert found(parts(python=4.5), **busy_between) == {}
    one = {**loaded(1.0, 0.0), "thread_use": ThreadUse(1.0)}
    assert the_report(parts(python=4.5), "threads", **one).saving == pytest.approx(0.55 * (1 - 1 / 4))


def test_replicas_with_unequal_work_are_reported() -> None:
    nodes = (node("replica_1/MatMul"),)
    report = the_report(parts(), "replicas", nodes=nodes, step_traces=steps("MatMul", {0: 2, 1: 5.5, 2: 2}))
    assert "ops on CPU:1 run for 5.50 ms of a step, on the others for 2.00 ms" in report.text
    assert found(parts(), nodes=nodes, step_traces=steps("MatMul", {0: 4, 1: 5.5})) == {}
    assert found(parts(), step_traces=steps("MatMul", {0: 1, 1: 5.5})) == {}  # no replicas
    on_gpus = [
        OpExecution("replica_0/MatMul", "MatMul", f"/device:gpu:{at}/stream:all", at, 0, int(ms * MS))
        for at, ms in enumerate((5, 5))
    ]
    (on_host,) = steps("MatMul", {0: 1})
    trace = on_host._replace(executions=(*on_gpus, *on_host.executions))
    assert found(parts(), nodes=nodes, step_traces=(trace,)) == {}  # the host is no replica
    slow = trace._replace(executions=(on_gpus[0], on_gpus[1]._replace(end_ns=2 * MS), *on_host.executions))
    report = the_report(parts(), "replicas", nodes=nodes, step_traces=(slow,))
    assert "ops on GPU:0 run for 5.00 ms of a step, on the others for 2.00 ms" in report.text


def test_every_checker_has_its_own_slug_and_title() -> None:
    assert len({checker.slug for checker in CHECKERS}) == len({checker.title for checker in CHECKERS}) == len(CHECKERS)
