"""The end report."""

from dataclasses import replace

import pytest
from fakes.made_store import IDENTITY
from tfprof.collector.render.report_text import JobSummary, lines
from tfprof.collector.store.catalog import JobInfo
from tfprof.collector.summaries.jobs import job_row
from tfprof.collector.summaries.top import TopOp

OPS = [TopOp(f"Op{n}", "CPU:0", 4e6, 3_800_000, 4_300_000, 0.125, 71.4, 1000, f"train.py:{n}") for n in range(8)]


def summary(state: str = "exited", end: dict[str, int] | None = None, **counters: object) -> JobSummary:
    """Return the summary of a job with these counters."""
    info = JobInfo(0x7F3A << 48, state, IDENTITY, counters, end or {})
    return JobSummary(job_row(info, "7f3a", 0), 41_200_000.0)


def test_a_job_has_a_line_with_progress_traced_steps_cost_and_losses() -> None:
    job_summary = summary(traced=14, self_ns=6, extra_ns=0, step_ns=1000, counts={"batch": 1240, "epoch": 2})
    message = (
        "tfprof: job 7f3a train.py · 2 epochs, 1,240 steps · median step 41.2 ms · 14 steps traced (cost 6 ns) · 0 lost"
    )
    assert next(lines([job_summary], [], [], None)) == message
    narrow_lines = list(lines([job_summary], [], ["a note as long as two lines of a narrow terminal, or so"], 60))
    assert max(map(len, narrow_lines)) <= 60
    assert " ".join(line.strip() for line in narrow_lines).startswith(message)


def test_the_function_of_the_median_is_named() -> None:
    job_summary = replace(summary(counts={"function": 520}), function="function:train_step")
    assert "520 steps · median function:train_step 41.2 ms" in next(lines([job_summary], [], [], None))


def test_the_report_has_at_most_twelve_lines() -> None:
    text = list(lines([summary()] * 9, OPS, ["something to know"], None))
    assert len(text) <= 12
    assert all(line.startswith(("tfprof: ", "  ")) for line in text)
    assert text[0] == "tfprof: job 7f3a train.py pid 4711 · 0 steps · median step 41.2 ms · 0 steps traced · 0 lost"
    assert text[3] == "tfprof: and 6 more processes: tfprof jobs"
    assert text[-1] == "tfprof: more with  tfprof op 7f3a · tfprof steps 7f3a"


def test_a_report_without_ops_does_not_refer_to_the_op_view() -> None:
    assert list(lines([summary()], [], [], None))[-1] == "tfprof: more with  tfprof steps 7f3a"


def test_ops_have_calls_times_share_memory_and_line() -> None:
    text = list(lines([summary()], OPS, [], 120))
    assert text[1].split() == ["op", "device", "calls/step", "time/step", "share", "min", "max", "memory/step", "line"]
    assert text[2].split() == [
        "Op0",
        "CPU:0",
        "71",
        "4.00",
        "ms",
        "12",
        "%",
        "3.80",
        "ms",
        "4.30",
        "ms",
        "1.0",
        "KB",
        "train.py:0",
    ]


@pytest.mark.parametrize(
    ("width", "headings"),
    [
        (100, "op device calls/step time/step share min max memory/step line"),
        (70, "op device time/step share min max line"),
        (60, "op device time/step share max line"),
        (50, "op device time/step share line"),
        (40, "op time/step share line"),
    ],
)
def test_a_narrow_terminal_drops_columns_and_does_not_cut_names(width: int, headings: str) -> None:
    (heading, *table) = list(lines([replace(summary(), median_ns=None)], OPS, [], width))[-7:-1]
    assert heading.split() == headings.split()
    assert max(map(len, [heading, *table])) <= width
    assert "…" not in "".join(table)


def test_unrecorded_memory_is_not_shown_as_0() -> None:
    op_with_memory, op_without_memory = (TopOp("A", "CPU:0", 9, 9, 9, 0.9, 1, size, "") for size in (5, 0))
    op_lists = [[op_with_memory, op_without_memory], [op_without_memory]]
    lines_with_memory, lines_without_memory = (list(lines([summary()], ops, [], None)) for ops in op_lists)
    assert [line.split()[-2:] for line in lines_with_memory[2:4]] == [["5", "B"], ["0", "B"]]
    assert lines_without_memory[2].split()[-1] == "-"


def test_calls_in_only_some_steps_have_a_fraction() -> None:
    rare_op = TopOp("A", "CPU:0", 9, 0, 9, 0.9, 0.25, 5, "")
    assert list(lines([summary()], [rare_op], [], None))[2].split()[:3] == ["A", "CPU:0", "0.2"]


def test_a_failed_job_has_its_state_in_the_report() -> None:
    assert next(lines([summary("killed", {"signal": 9})], [], [], None)).endswith("· killed SIGKILL")
    assert next(lines([summary("exited", {"status": 3})], [], [], None)).endswith("· exited 3")
