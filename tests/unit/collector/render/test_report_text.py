"""The end report."""

from fakes.made_store import IDENTITY
from tfprof.collector.render.report_text import Summary, lines
from tfprof.collector.store.catalog import JobInfo
from tfprof.collector.views.jobs import job_row
from tfprof.collector.views.nodes import Stats
from tfprof.collector.views.top import TopOp

OPS = [TopOp(f"Op{n}", "CPU:0", Stats(runs=1000, micros=4000, bytes=14_000), 0.125) for n in range(8)]


def summary(state: str = "exited", end: dict[str, int] | None = None, **counters: object) -> Summary:
    """Return a process with some last words."""
    info = JobInfo(0x7F3A << 48, state, IDENTITY, counters, end or {})
    return Summary(job_row(info, "7f3a", 0), 41_200_000.0)


def test_it_tells_how_far_the_job_came_what_was_traced_at_what_cost_and_what_was_lost() -> None:
    told = summary(traced=14, self_ns=6, extra_ns=0, step_ns=1000, counts={"batch": 1240, "epoch": 2})
    assert next(lines([told], [], 0, [], 80)) == (
        "tfprof: job 7f3a train.py · 2 epochs, 1,240 steps · median step 41.2 ms · 14 steps traced (cost 0.6 %) · 0 lost"
    )


def test_it_is_at_most_twelve_lines_each_its_own_or_a_row_of_the_table() -> None:
    text = list(lines([summary()] * 9, OPS, 14, ["something to know"], 80))
    assert len(text) <= 12
    assert all(line.startswith(("tfprof: ", "  ")) for line in text)
    assert text[0] == "tfprof: job 7f3a train.py pid 4711 · 0 steps · median step 41.2 ms · 0 steps traced · 0 lost"
    assert text[3] == "tfprof: and 6 more processes: tfprof jobs"
    assert text[-1] == "tfprof: more with  tfprof op 7f3a · tfprof steps 7f3a"


def test_ops_have_calls_time_share_and_the_memory_of_one_step() -> None:
    text = list(lines([summary()], OPS, 14, [], 80))
    assert text[1].split() == ["op", "device", "calls", "total", "share", "memory/step"]
    assert text[2].split() == ["Op0", "CPU:0", "1,000", "4.00", "ms", "12", "%", "1.0", "KB"]


def test_memory_that_tensorflow_told_nothing_of_is_not_said_to_be_none() -> None:
    told, untold = TopOp("A", "CPU:0", Stats(runs=1, micros=9, bytes=5), 0.9), TopOp("B", "CPU:0", Stats(1, 1), 0.1)
    both, one = (list(lines([summary()], ops, 1, [], 80)) for ops in ([told, untold], [untold]))
    assert [line.split()[-2:] for line in both[2:4]] == [["5", "B"], ["0", "B"]]
    assert one[2].split()[-1] == "-"


def test_a_job_that_did_not_end_well_is_told_so() -> None:
    assert next(lines([summary("killed", {"signal": 9})], [], 0, [], 80)).endswith("· killed SIGKILL")
    assert next(lines([summary("exited", {"status": 3})], [], 0, [], 80)).endswith("· exited 3")
