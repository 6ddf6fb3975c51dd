"""The parts of a step add up to the time from start to start, and name what was recorded.

Tests collector/query/recorded_steps.py, collector/render/breakdown_text.py,
collector/summaries/activity_parts.py, collector/summaries/op_classes.py,
collector/summaries/part_times.py, collector/summaries/step_cut.py,
collector/summaries/step_records.py.
"""

import pytest
from fakes.made_store import rows, span
from hypothesis import given
from hypothesis import strategies as st
from tfprof.collector.query.recorded_steps import steps_of_kind
from tfprof.collector.summaries.kinds import step_kind_of
from tfprof.collector.summaries.op_classes import PIPELINE_DEVICE, OpClass
from tfprof.collector.summaries.part_times import break_down
from tfprof.collector.summaries.parts import FIRST_BATCHES, Breakdown, Recording, input_words, part_verdict
from tfprof.collector.summaries.step_cut import covered, cut, exposed, union
from tfprof.collector.summaries.step_records import (
    Activity,
    NamedSum,
    OpExecution,
    OtherSpan,
    StepTrace,
    ThreadUse,
    TimedSteps,
)
from tfprof.formats import layout

MS = 1_000_000
CPU, GPU_STREAM = "/job:localhost/replica:0/task:0/device:cpu:0", "/device:gpu:0/stream:all"


def op(start_ms: float, end_ms: float, op_type: str = "MatMul", device: str = CPU, thread: int = 1) -> OpExecution:
    return OpExecution(op_type.lower(), op_type, device, thread, int(start_ms * MS), int(end_ms * MS))


def steps(number: int = 20, step_ms: float = 6, period_ms: float = 10) -> list[TimedSteps]:
    return [TimedSteps(at + 1, 1, int(at * period_ms * MS), int(step_ms * MS), is_normal=True) for at in range(number)]


TRACE = StepTrace(
    5, 6 * MS, (op(0.5, 2.5, "IteratorGetNext"), op(2.5, 4), op(4.5, 5), op(3, 5, "_Recv"), op(4, 4.6, "PyFunc"))
)


def parts_of(breakdown: Breakdown) -> dict[str, float]:
    return {part.slug: part.mean_ns / MS for part in breakdown.parts}


def broken_down(**recorded: object) -> Breakdown:
    result = break_down(Recording(**{"kind": "batch", "steps": steps(), **recorded}))
    assert result is not None
    assert sum(part.mean_ns for part in result.parts) == pytest.approx(result.period_ns)
    for part in result.parts:
        assert sum(detail.mean_ns for detail in part.details) <= part.mean_ns * 1.000001 + 1
    return result


def test_a_traced_step_is_cut_by_priority_and_adds_up() -> None:
    assert cut(TRACE, {}) == {
        OpClass("device"): 2 * MS,
        OpClass("input"): 2 * MS,
        OpClass("python", "PyFunc in the graph"): int(0.5 * MS),
        OpClass("before"): int(0.5 * MS),
        OpClass("after"): MS,
    }


def test_work_of_tf_data_on_its_own_threads_is_not_in_the_step() -> None:
    stage, function = op(0, 4, "Iterator::Root", "/host:cpu/tf.data", 7), op(1, 3, "PyFunc", PIPELINE_DEVICE, 7)
    trace = StepTrace(1, 4 * MS, (stage, function, op(3, 4)))
    assert cut(trace, {}) == {OpClass("device"): MS, OpClass("before"): 3 * MS}
    waiting = StepTrace(1, 4 * MS, (op(0, 2, "IteratorGetNext", CPU, 7), *trace.executions))
    assert cut(waiting, {})[OpClass("input")] == 3 * MS  # the iterator runs on the waiting thread


def test_copies_and_collectives_count_where_no_kernel_runs() -> None:
    trace = StepTrace(
        1,
        10 * MS,
        (
            op(0, 4, "MatMul", GPU_STREAM),
            op(3, 6, "MEMCPYHtoD", "/device:gpu:0/memcpy"),
            op(5, 8, "CollectiveReduceV2"),
            op(8, 9, "MatMul", "/job:localhost/replica:0/task:0/device:gpu:0"),
        ),
    )
    times = cut(trace, {"matmul": "forward"})
    assert times[OpClass("device", "forward")] == 4 * MS
    assert times[OpClass("copies", "host to device")] == 2 * MS
    assert times[OpClass("waiting", "collectives")] == 2 * MS
    assert sum(times.values()) == 10 * MS


@given(
    st.lists(
        st.tuples(
            st.integers(-50, 250),
            st.integers(0, 120),
            st.sampled_from(["MatMul", "IteratorGetNext", "_Recv", "EagerPyFunc", "NcclAllReduce", "MutexLock"]),
            st.sampled_from([CPU, GPU_STREAM, "/device:gpu:0", "/host:cpu/tf.data", "/device:gpu:0/memcpy"]),
            st.integers(1, 3),
        ),
        max_size=12,
    ),
    st.integers(1, 200),
)
def test_any_step_is_cut_into_parts_that_add_up(rows: list[tuple[int, int, str, str, int]], duration: int) -> None:
    executions = tuple(
        OpExecution(name.lower(), name, device, thread, start, start + length)
        for start, length, name, device, thread in rows
    )
    times = cut(StepTrace(1, duration, executions), {"matmul": "backward"})
    assert sum(times.values()) == duration
    assert min(times.values()) > 0


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=8),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=8),
)
def test_unions_cover_what_their_intervals_cover(some: list[tuple[int, int]], others: list[tuple[int, int]]) -> None:
    def points(intervals: list[tuple[int, int]]) -> set[int]:
        return {point for start, end in intervals for point in range(start, end)}

    assert covered(some) == len(points(some))
    assert points(union(some)) == points(some)
    assert exposed(some, others) == len(points(some) - points(others))


def test_parts_are_means_from_start_to_start() -> None:
    result = broken_down(traces=[TRACE])
    assert (result.period_ns, result.step_ns, result.median_ns) == (10 * MS, 6 * MS, 6 * MS)
    assert parts_of(result) == pytest.approx(
        {"input": 2, "device": 2, "python": 0.5, "before": 0.5, "after": 1, "unexplained": 4}
    )
    assert (result.steps, result.all_steps, result.traced) == (19, 20, 1)  # without the first step of the call


def test_functions_that_run_in_turns_have_the_period_of_their_own_steps() -> None:
    spans = [span(layout.FUNCTION, at + 1, at * 10, 6, key=1 + at % 2) for at in range(40)]
    del spans[20]  # it was lost
    for key in (1, 2):
        recorded = steps_of_kind(rows("spans", spans), step_kind_of(layout.FUNCTION, key), {})
        assert broken_down(steps=recorded.steps).period_ns == 20 * MS


def test_the_period_of_sampled_steps_is_measured() -> None:
    """One of ten steps of 1 ms, 3 ms from start to start, is timed; one of these takes 80 ms."""
    spans = [
        span(
            layout.RUN,
            10 * at + 1,
            30 * at + 27 - 9 * step_ms + 79 * (at > 12),
            10 * step_ms,
            count=10,
            flags=layout.FLAG_SAMPLED,
        )
        for at, step_ms in enumerate([1] * 12 + [80] + [1] * 12)
    ]
    recorded = steps_of_kind(rows("spans", spans), layout.RUN, {})
    result = broken_down(steps=recorded.steps)
    assert [group.ordinal for group in recorded.steps] == [10 * at + 1 for at in range(25)]
    assert result.step_ns == result.period_ns == pytest.approx((230 * 3 + 79) / 230 * MS)
    assert result.notes == ("no step was traced, so the inside of the steps is not cut",)


def test_sampled_steps_of_two_threads_are_timed_apart() -> None:
    """Each thread has steps of 1 ms, 2 ms from start to start; one of nine is timed."""
    spans = [
        span(layout.RUN, 9 * at + 1, 9 * at, 9, count=9, flags=layout.FLAG_SAMPLED, thread=at % 2) for at in range(40)
    ]
    result = broken_down(steps=steps_of_kind(rows("spans", spans), layout.RUN, {}).steps)
    assert (result.step_ns, result.period_ns) == (MS, 2 * MS)


def test_the_cost_of_tracing_is_taken_from_the_time_without_ops() -> None:
    slow = TRACE._replace(duration_ns=8 * MS)  # the trace costs 2 ms after the last op
    assert parts_of(broken_down(traces=[slow])) == pytest.approx(
        {"input": 2, "device": 2, "python": 0.5, "before": 0.5, "after": 3, "unexplained": 4}, rel=0.6
    )
    assert parts_of(broken_down(traces=[slow]))["device"] == pytest.approx(2)


def test_what_untraced_steps_take_longer_is_not_explained() -> None:
    short = StepTrace(3, 3 * MS, (op(0, 3),))
    result = broken_down(traces=[short])
    assert parts_of(result) == pytest.approx({"device": 3, "unexplained": 7})
    assert "no traced step is typical: traced 3.00 ms, others 6.00 ms" in result.notes
    assert parts_of(broken_down(traces=[short, TRACE]))["input"] == pytest.approx(2)  # the typical one alone


def test_traced_steps_that_are_typical_together_are_all_cut() -> None:
    """Batches that are made ahead make steps short and long: here 6.8, 28.4 and 13.9 ms of 16."""
    recorded = steps(step_ms=16, period_ms=18)
    waits = StepTrace(21, 28_400_000, (op(1, 24.3, "IteratorGetNext"), op(24.4, 28)))
    traces = [StepTrace(3, 6_800_000, (op(1, 6),)), waits, StepTrace(148, 13_900_000, (op(1, 13),))]
    result = broken_down(steps=recorded, traces=traces)
    assert result.traced == 3
    assert parts_of(result)["input"] == pytest.approx(23.3 / 3, rel=0.05)
    assert broken_down(steps=recorded, traces=traces[1:]).traced == 1


def test_a_short_traced_step_does_not_stand_for_all_because_it_is_near_the_median() -> None:
    """An early step has a batch that was made ahead; later ones wait for theirs."""
    recorded = steps(step_ms=10, period_ms=12)
    waits = [
        StepTrace(step, ms * MS, (op(0, ms - 1, "IteratorGetNext"), op(ms - 1, ms)))
        for step, ms in ((30, 21), (60, 17))
    ]
    result = broken_down(steps=recorded, traces=[StepTrace(3, 8 * MS, (op(0, 7),)), *waits])
    assert result.traced == 3
    assert parts_of(result)["input"] == pytest.approx(10 * 36 / 45, rel=0.05)
    assert "few traced steps are typical: traced 17.0 ms, others 10.0 ms" in result.notes


def test_the_first_steps_of_epochs_wait_for_a_pipeline_that_begins_anew() -> None:
    recorded = steps(40, period_ms=100)
    for at in (10, 20, 30):
        recorded[at] = recorded[at]._replace(total_ns=66 * MS)
    epochs = [group.start_ns - 5 for group in recorded[::10]]
    result = broken_down(steps=recorded, traces=[TRACE], epochs=epochs)
    assert result.detail_ns("input") == pytest.approx({FIRST_BATCHES: 3 * 60 / 39 * MS})
    assert parts_of(result)["input"] == pytest.approx(2 + 180 / 39)
    without_input = StepTrace(3, 6 * MS, (op(0, 6),))
    assert "input" not in parts_of(broken_down(steps=recorded, traces=[without_input], epochs=epochs))


def test_steps_that_were_not_traced_are_not_cut() -> None:
    result = broken_down()
    assert parts_of(result) == pytest.approx({"unexplained": 10})
    assert part_verdict(result).startswith("it is unknown where the time goes: no step was traced")
    working = broken_down(use=ThreadUse(cpu=0.3))
    assert part_verdict(working) == (
        "60 % of the time from step to step is unknown, since no op of these steps was recorded"
    )
    assert break_down(Recording("batch", [])) is None


def test_traced_steps_without_ops_are_not_cut() -> None:
    result = broken_down(traces=[StepTrace(3, 6 * MS, ())])
    assert (parts_of(result), result.traced) == ({"unexplained": pytest.approx(10)}, 0)
    assert "no op was recorded in the traced steps, so the inside of the steps is not cut" in result.notes


def test_spans_of_other_kinds_fill_the_time_between_steps_once() -> None:
    evaluation = [OtherSpan("evaluate", 60 * MS - MS, 60 * MS), OtherSpan("test_batch", 60 * MS - MS, 60 * MS)]
    saves = [OtherSpan("checkpoint", at * 10 * MS + 7 * MS, at * 10 * MS + 9 * MS) for at in range(20)]
    result = broken_down(traces=[TRACE], others=sorted([*evaluation, *saves], key=lambda span: span.start_ns))
    details = result.detail_ns("between")
    assert details["checkpoint"] == pytest.approx(2 * MS)
    assert details["evaluation"] == pytest.approx(MS / 18)  # of 18 pauses


def test_session_runs_within_keras_batches_take_no_time_between_them() -> None:
    kinds = {layout.BATCH: 0, layout.TRAIN: 1, layout.PREDICT_BATCH: 6, layout.RUN: 6.5, layout.CHECKPOINT: 8}
    spans = [span(kind, at + 1, 10 * at + start, 2) for at in range(20) for kind, start in kinds.items()]
    spans.append(span(layout.TRAIN, 21, 3, 1, thread=2))
    recorded = steps_of_kind(rows("spans", spans), layout.BATCH, {})
    assert [each.kind for each in recorded.others[:4]] == ["train", "predict_batch", "checkpoint", "predict_batch"]
    runs = steps_of_kind(rows("spans", spans), layout.RUN, {})
    assert {each.kind for each in runs.others} == {"batch", "train", "predict_batch", "checkpoint"}


def test_an_activity_and_the_run_within_it_count_once() -> None:
    saving = [
        Activity("checkpoint", "Saver.save", at * 10 * MS + 6 * MS, at * 10 * MS + 9 * MS, 3 * MS, 1, in_step=False)
        for at in range(20)
    ]
    runs = [OtherSpan("checkpoint", at * 10 * MS + 7 * MS, at * 10 * MS + 8 * MS) for at in range(20)]
    result = broken_down(traces=[TRACE], activities=saving, others=runs)
    assert result.detail_ns("between") == pytest.approx({"checkpoint Saver.save": 3 * MS})
    assert parts_of(result)["unexplained"] == pytest.approx(1)


def test_activities_within_steps_take_the_place_of_time_without_ops() -> None:
    collections = [
        Activity("gc", "generation 2", at * 10 * MS + 5 * MS, at * 10 * MS + 6 * MS, MS, 1, in_step=True)
        for at in range(20)
    ]
    waits = [
        Activity("input", "next", at * 10 * MS, at * 10 * MS + 2 * MS, 2 * MS, 1, in_step=True) for at in range(20)
    ]
    result = broken_down(traces=[TRACE], activities=[*collections, *waits])
    assert parts_of(result)["input"] == pytest.approx(2)  # the op waits within next()
    assert result.detail_ns("python")["garbage collection generation 2"] == pytest.approx(MS)
    assert result.step_ns == 6 * MS


def test_activities_between_and_within_steps_that_were_timed_together() -> None:
    # The steps take 0.5 ms, with pauses of 1.5 ms, most of which are conversions.
    pairs = [TimedSteps(2 * at + 1, 2, at * 4 * MS, MS, is_normal=True) for at in range(20)]
    middles = [at * 4 * MS + MS // 2 for at in range(20)]
    conversions = [Activity("conversion", "", at, at + 2 * MS, 2 * MS, 2, in_step=False) for at in middles]
    callbacks = [Activity("callback", "C", at, at + MS // 10, MS // 10, 1, in_step=False) for at in middles]
    collections = [Activity("gc", "", at + 3 * MS // 2, at + 2 * MS, MS // 2, 2, in_step=True) for at in middles]
    result = broken_down(steps=pairs, activities=[*conversions, *callbacks, *collections])
    assert (result.period_ns, result.step_ns) == (2 * MS, MS / 2)
    assert result.detail_ns("before") == pytest.approx({"conversion": MS})
    assert result.detail_ns("between") == pytest.approx({"callback C": 0.05 * MS})
    assert result.detail_ns("python") == pytest.approx({"garbage collection": 0.25 * MS}, rel=0.06)


def test_activities_within_other_steps_between_steps_that_were_timed_together_are_theirs() -> None:
    pairs = [TimedSteps(2 * at + 1, 2, at * 4 * MS, MS, is_normal=True) for at in range(20)]
    others = [OtherSpan("function:b", at * 4 * MS + 3 * MS, at * 4 * MS + 4 * MS) for at in range(20)]
    starts = [at * 4 * MS + 7 * MS // 2 for at in range(20)]
    collections = [Activity("gc", "", at, at + MS // 10, MS // 10, 1, in_step=True) for at in starts]
    result = broken_down(steps=pairs, others=others, activities=collections)
    assert result.detail_ns("between") == {"function:b": MS / 2}
    assert "garbage collection" not in result.detail_ns("python")
    several = [OtherSpan("function:b", at * 4 * MS + 3 * MS, at * 4 * MS + 7 * MS // 2, 5) for at in range(20)]
    pauses = [each._replace(start_ns=each.start_ns + MS // 4) for each in collections]
    assert "garbage collection" not in broken_down(steps=pairs, others=several, activities=pauses).detail_ns("python")


def test_marks_that_contain_steps_explain_no_time_between_them() -> None:
    starts = [at * 10 * MS for at in range(20)]
    marks = [Activity("part", "train", at - MS, at + 7 * MS, 7 * MS, 1, in_step=False) for at in starts]
    marks += [Activity("mark", "log", at + 7 * MS, at + 9 * MS, 2 * MS, 1, in_step=False) for at in starts]
    marks[0] = marks[0]._replace(start_ns=0)
    marked = [NamedSum("train", 160 * MS, 20)]
    result = break_down(Recording("batch", steps(), activities=marks, traces=[TRACE], marked=marked))
    assert result is not None
    assert result.detail_ns("between") == pytest.approx({"mark log": 2 * MS})
    assert [(part.name, part.mean_ns) for part in result.marked] == [("train", 8 * MS)]


def test_marks_around_steps_that_were_timed_together_explain_no_time_between_them() -> None:
    groups = [TimedSteps(at + 1, 4, at * MS, 4 * MS // 5, is_normal=True) for at in range(0, 80, 4)]
    arounds = [(at * MS - MS // 20, 3 * MS // 10, 3, "around") for at in range(0, 78, 3)]
    loads = [(at * MS + MS // 2, MS // 4, 5, "load") for at in range(0, 80, 5)]
    marks = [
        Activity("mark", name, start, start + number * length, number * length, number, in_step=False)
        for start, length, number, name in sorted([*arounds, *loads])
    ]
    result = broken_down(steps=groups, activities=marks)
    assert result.detail_ns("between") == pytest.approx({"mark load": MS / 4}, rel=0.1)


def test_the_thread_of_the_steps_ran_python_or_slept_or_waited_for_a_cpu() -> None:
    busy = broken_down(traces=[TRACE], use=ThreadUse(cpu=0.6))
    assert parts_of(busy)["python"] == pytest.approx(4.5)
    asleep = broken_down(traces=[TRACE], use=ThreadUse(cpu=0.0, queued=0.1))
    assert asleep.detail_ns("waiting") == pytest.approx(
        {"for a CPU between the steps": MS, "asleep between the steps": 3 * MS}
    )
    assert asleep.queued_ns == pytest.approx(MS)
    # The thread waits for a CPU in the steps, too: most of its CPU time is in the pauses.
    waiting = broken_down(traces=[TRACE], use=ThreadUse(cpu=0.2, queued=0.6))
    assert waiting.detail_ns("python")["code between the steps"] == pytest.approx(2 * MS - 1.5 * MS / 4, rel=0.1)
    # All threads of the process together used less than the pause: some of it was no Python.
    unknown = broken_down(traces=[TRACE], use=ThreadUse(cpu=0.3, is_exact=False))
    assert parts_of(unknown)["python"] == pytest.approx(0.5)
    assert parts_of(unknown)["waiting"] == pytest.approx(1)
    assert parts_of(unknown)["unexplained"] == pytest.approx(3)


def test_long_waits_of_other_threads_for_a_cpu_are_said() -> None:
    busy = broken_down(traces=[TRACE], use=ThreadUse(0.6, 0.1, 1.6))
    assert any(note.startswith("the job's other threads wait 1.50 s for a CPU each second") for note in busy.notes)
    assert broken_down(traces=[TRACE], use=ThreadUse(0.6, 0.1, 1.0)).notes == ()


def test_some_steps_that_take_longer_wait_for_a_cpu_as_far_as_the_thread_did() -> None:
    recorded = steps()
    for at in range(4, 20, 4):
        recorded[at] = recorded[at]._replace(total_ns=10 * MS)
    result = broken_down(steps=recorded, traces=[StepTrace(3, 3 * MS, (op(0, 3),))], use=ThreadUse(0.6, 0.04))
    assert result.detail_ns("waiting") == pytest.approx({"for a CPU": 0.4 * MS}, rel=0.01)
    assert result.detail_ns("unexplained") == pytest.approx(
        {
            "untraced steps take longer than the traced ones": 3 * MS,
            "some steps take longer than the typical one": 16 / 19 * MS - 0.4 * MS,
        },
        rel=0.01,
    )


def test_of_steps_that_take_longer_as_much_is_a_wait_of_ops_as_of_what_the_jobs_threads_do() -> None:
    """On a busy host, the job's threads run for 0.45 s each second and wait for 1.57 s."""
    recorded = steps(40)
    for at in range(4, 40, 4):
        recorded[at] = recorded[at]._replace(total_ns=10 * MS)
    use = ThreadUse(0.05, 0.0, 1.57)
    result = broken_down(steps=recorded, traces=[StepTrace(3, 3 * MS, (op(0, 3),))], use=use, cores=0.45)
    longer_ns = 9 * 4 / 39 * MS
    assert result.detail_ns("waiting")["ops for a CPU"] == pytest.approx(longer_ns * 1.57 / 2.02)
    quiet = broken_down(steps=recorded, traces=[StepTrace(3, 3 * MS, (op(0, 3),))], use=use._replace(queued_all=0))
    assert "ops for a CPU" not in quiet.detail_ns("waiting")


def test_a_pipeline_that_is_always_busy_explains_steps_that_take_longer() -> None:
    early = StepTrace(3, 3 * MS, (op(0, 1, "IteratorGetNext"), op(1, 3)))
    slow = NamedSum("load (train.py:3)", 20 * 9 * MS, 20)
    result = broken_down(traces=[early], functions=[slow])
    assert parts_of(result)["input"] == pytest.approx(4)
    assert result.detail_ns("input") == pytest.approx({"for load (train.py:3)": 3 * MS})
    assert result.pipeline[0].mean_ns == 9 * MS
    assert parts_of(broken_down(traces=[early], functions=[slow._replace(total_ns=20 * 4 * MS)]))["input"] == 1


def test_a_long_pause_is_no_part_of_a_step() -> None:
    recorded = steps(40)
    late = [group._replace(start_ns=group.start_ns + 300_000 * MS) for group in recorded[20:]]
    result = broken_down(steps=[*recorded[:20], *late])
    assert result.period_ns == pytest.approx(10 * MS)
    assert result.notes[0] == "without a pause of 5m 00s"


def test_the_pauses_of_many_steps_that_were_timed_together_are_no_long_one() -> None:
    recorded = [TimedSteps(200 * at + 1, 200, at * 20_000 * MS, 100 * MS, is_normal=True) for at in range(10)]
    late = [group._replace(start_ns=group.start_ns + 300_000 * MS) for group in recorded[5:]]
    result = broken_down(steps=[*recorded[:5], *late])
    assert result.period_ns == pytest.approx(100 * MS)
    assert result.notes[0] == "without a pause of 5m 00s"


def test_long_first_steps_are_left_out_and_said() -> None:
    recorded = steps()
    recorded[0] = recorded[0]._replace(start_ns=-900 * MS, total_ns=900 * MS)
    result = broken_down(steps=recorded)
    assert result.median_ns == 6 * MS
    assert "without the first step of each call, 900 ms" in result.notes


def test_verdicts_have_the_words_and_limits_of_xprof() -> None:
    assert [input_words(share) for share in (0.049, 0.05, 0.19, 0.2)] == [
        "not input-bound",
        "moderately input-bound",
        "moderately input-bound",
        "highly input-bound",
    ]
    assert part_verdict(broken_down(traces=[TRACE])) == (
        "highly input-bound: 20 % of the time from step to step is input; 40 % is not explained"
    )
    computing = StepTrace(1, 6 * MS, (op(0, 5.9),))
    assert part_verdict(broken_down(steps=steps(20, 6, 6), traces=[computing])) == (
        "most of the time from step to step is on the device, 98 %; input 0.0 %: not input-bound"
    )
