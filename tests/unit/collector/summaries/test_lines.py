"""Steps as lines: one for each step, or one for each second."""

from typing import Any

from fakes.made_store import MS, SECOND, START_NS, span
from tfprof.collector.summaries.lines import StepLine, StepLines
from tfprof.formats import layout


def steps(first: int, number: int, step_ms: float, at_ms: float = 0.0, **other: int) -> list[dict[str, int]]:
    """Return entries of consecutive batches."""
    return [span(layout.BATCH, first + n, at_ms + n * step_ms, step_ms, **other) for n in range(number)]


def brief_lines(lines: list[StepLine]) -> list[tuple[Any, ...]]:
    return [(step_line.kind, step_line.first, step_line.last, step_line.count) for step_line in lines]


def test_few_steps_a_second_get_a_line_each_and_many_share_one() -> None:
    lines = StepLines()
    result = lines.add([*steps(1, 8, 200), *steps(9, 40, 20, 3000)], START_NS) + lines.remaining()
    assert brief_lines(result) == [*(("batch", n, n, 1) for n in range(1, 9)), ("batch", 9, 48, 40)]
    assert result[-1].mean_ns == 20 * MS


def test_a_second_is_complete_when_a_later_one_begins_or_after_a_time_limit() -> None:
    lines = StepLines()
    assert lines.add(steps(1, 3, 100), START_NS) == []
    assert brief_lines(lines.add(steps(4, 1, 100, 1100), START_NS)) == [("batch", n, n, 1) for n in (1, 2, 3)]
    assert lines.add([], START_NS + 3 * SECOND) == []
    assert brief_lines(lines.add([], START_NS + 7 * SECOND)) == [("batch", 4, 4, 1)]


def test_a_long_step_gets_its_line_a_few_seconds_after_its_end() -> None:
    lines = StepLines()
    assert brief_lines(lines.add(steps(1, 1, 30_000), START_NS + 34 * SECOND)) == []
    (step_line,) = lines.add([], START_NS + 36 * SECOND)
    assert (step_line.end_ns - START_NS, step_line.mean_ns) == (30 * SECOND, 30 * SECOND)


def test_a_late_entry_gets_its_own_line() -> None:
    lines = StepLines()
    lines.add(steps(1, 30, 100), START_NS)
    (late_line,) = lines.add([span(layout.RUN, 7, 10, 1)], START_NS)
    assert (late_line.kind, late_line.first) == ("run", 7)


def test_each_entry_has_a_line_if_requested() -> None:
    result = StepLines(line_per_entry=True).add(steps(1, 500, 1), START_NS)
    assert brief_lines(result) == [("batch", n, n, 1) for n in range(1, 501)]


def test_a_line_counts_traced_failed_setup_and_timed_steps() -> None:
    flags = (layout.FLAG_TRACED, layout.FLAG_FAILED, layout.FLAG_SETUP, layout.FLAG_SAMPLED, 0)
    rows = [span(layout.RUN, 1 + 4 * n, n, 2, flags=flag, count=4) for n, flag in enumerate(flags)]
    (step_line,) = StepLines().add([*rows, *steps(1, 1, 10, 1500)], START_NS)
    assert (
        step_line.traced,
        step_line.failed,
        step_line.setup,
        step_line.count,
        step_line.timed,
        step_line.entries,
    ) == (4, 4, 4, 20, 17, 5)
    assert (step_line.first, step_line.last, step_line.min_ns, step_line.max_ns) == (1, 20, 2 * MS, 2 * MS)


def test_a_sampled_entry_ends_with_its_last_span() -> None:
    row = span(layout.RUN, 5, 1, 300, flags=layout.FLAG_SAMPLED, count=100)
    (step_line,) = StepLines(line_per_entry=True).add([row], START_NS)
    assert step_line.end_ns == row["start_ns"] + row["total_ns"]


def test_steps_that_were_only_counted_and_failed_have_no_time() -> None:
    row = span(layout.RUN, 5, 1, 0, flags=layout.FLAG_FAILED | layout.FLAG_SAMPLED)
    (step_line,) = StepLines(line_per_entry=True).add([row], START_NS)
    assert (step_line.timed, step_line.max_ns, step_line.failed) == (0, 0, 1)
