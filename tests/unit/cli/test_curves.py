"""`tfprof curves`: step times and resource use over the whole run.

Tests collector/documents/curves.py, collector/query/curves.py, collector/render/curves_text.py,
collector/summaries/series.py.
"""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from fakes.command import Run
from fakes.ended_jobs import OTHER, TRAIN
from fakes.json_schema import validated
from fakes.made_store import MS, START_NS, rows, span, trace, write_job
from tfprof.collector.query.curves import job_curves
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.summaries.series import bucket_steps, bucket_values
from tfprof.formats import layout

JOB, OTHER_JOB = f"{TRAIN:x}", f"{OTHER:x}"


def test_every_curve_has_a_line(run: Run) -> None:
    status, out, err = run("curves", JOB)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["quantity", "least", "mean", "most", "over", "the", "run"]
    assert lines[1].split()[:7] == ["batch", "20.0", "ms", "20.0", "ms", "20.0", "ms"]
    assert any(line.startswith("job rss_bytes") and "1.0 GB" in line for line in lines)
    assert any(line.startswith("host cpu_cores") and "3.00" in line for line in lines)


def test_the_document_has_the_points(run: Run) -> None:
    document = validated(run("curves", JOB, "--json")[1])
    (batch,) = document["step_curves"]
    assert batch["kind"] == "batch"
    assert (batch["traced"], batch["traced_steps"]) == (None, [])
    assert batch["normal"]["steps"] == list(range(1, 41))
    assert batch["normal"]["times_ns"][0] == START_NS + 5_400 * MS
    assert set(batch["normal"]["mean"]) == {20.0 * MS}
    names = {(each["scope"], each["name"]) for each in document["resource_curves"]}
    assert {("job", "rss_bytes"), ("host", "cpu_cores")} <= names


def test_a_job_without_steps_says_so(run: Run) -> None:
    status, out, err = run("curves", OTHER_JOB)
    assert (status, out) == (0, "")
    assert "no steps: the job ended before" in err
    document = json.loads(run("curves", OTHER_JOB, "--json")[1])
    assert (document["step_curves"], document["resource_curves"]) == ([], [])


def test_kinds_and_traced_steps_have_curves_of_their_own(run: Run, store: Path) -> None:
    spans = [
        span(layout.BATCH, at, at, 2 if at % 5 else 9, flags=0 if at % 5 else layout.FLAG_TRACED) for at in range(1, 31)
    ]
    spans += [span(layout.FUNCTION, at, 100 + at, 2 - at % 2, key=2 - at % 2) for at in range(1, 11)]
    spans += [span(layout.BATCH, 31, 200, 500, flags=layout.FLAG_FAILED)]
    traces = [{**trace(at, at, 0, 0), "kind": layout.BATCH, "key": 7, "duration_ns": 4 * MS} for at in range(5, 26, 5)]
    tables = {"spans": rows("spans", spans), "traces": rows("traces", traces)}
    write_job(store, 0xAB << 56, tables, identity={"functions": {"1": "one", "2": "two"}})
    document = json.loads(run("curves", "ab", "--json")[1])
    curves = {curve["kind"]: curve for curve in document["step_curves"]}
    assert list(curves) == ["batch", "function:two", "function:one"]
    assert curves["batch"]["traced"]["steps"] == [5, 10, 15, 20, 25], "the trace of step 30 was lost"
    assert curves["batch"]["traced_steps"] == [[step, step] for step in (5, 10, 15, 20, 25)]
    assert set(curves["batch"]["traced"]["mean"]) == {9.0 * MS}
    assert set(curves["batch"]["normal"]["mean"]) == {2.0 * MS}


def test_the_mean_is_that_of_all_steps_also_if_many_are_stored_together(run: Run, store: Path) -> None:
    spans = [span(layout.BATCH, 1, 0, 300, count=300), span(layout.BATCH, 301, 400, 100)]
    write_job(store, 0xAC << 56, {"spans": rows("spans", spans)})
    line = run("curves", "ac")[1].splitlines()[1]
    assert line.split()[3:5] == ["1.33", "ms"]


def test_an_imported_job_has_the_curve_of_its_traced_steps(run: Run, store: Path) -> None:
    traces = [{**trace(at, at // 2, 0, 0), "start_ns": START_NS + at * MS} for at in range(6)]
    write_job(store, 0xAB << 56, {"traces": rows("traces", traces)}, state="imported")
    (curve,) = json.loads(run("curves", "ab", "--json")[1])["step_curves"]
    assert (curve["kind"], curve["normal"]) == ("run", None)
    assert curve["traced_steps"] == [[0, 2]]
    assert (curve["traced"]["steps"], set(curve["traced"]["mean"])) == ([0, 1, 2], {2.0 * MS})


def test_the_numbers_of_traced_steps_are_those_of_all_also_of_more_than_a_curve_has_points(
    run: Run, store: Path
) -> None:
    traces = [{**trace(at, at, 0, 0), "start_ns": START_NS + at * MS} for at in [*range(2500), 2600]]
    write_job(store, 0xAB << 56, {"traces": rows("traces", traces)}, state="imported")
    (curve,) = json.loads(run("curves", "ab", "--json")[1])["step_curves"]
    assert curve["traced_steps"] == [[0, 2499], [2600, 2600]]
    (few,) = job_curves(LocalStore(store).job("ab"), 1).steps
    assert few.ranges == ((2600, 2600),)


@pytest.mark.parametrize(("count", "points"), [(1, 1), (100, 100), (101, 51), (1000, 100), (1001, 91)])
def test_long_series_have_at_most_so_many_points_and_keep_their_extremes(count: int, points: int) -> None:
    table = rows("spans", [span(layout.BATCH, at, at, 1 + at % 97) for at in range(count)])
    shuffled = table.take(pa.array(sorted(range(count), key=lambda at: at * 7919 % count)))
    steps = bucket_steps(shuffled, 100)
    values = bucket_values(range(count), [float(1 + at % 97) for at in range(count)], 100)
    for found, unit in ((steps, MS), (values, 1)):
        assert len(found.mean) == points
        assert min(found.least) == 1 * unit
        assert max(found.most) == min(count, 97) * unit
        assert found.times_ns == tuple(sorted(found.times_ns))
    size = -(-count // 100)
    assert steps.numbers == tuple(range(0, count, size))
    assert steps.mean[0] == pytest.approx(sum(1 + at % 97 for at in range(min(size, count))) * MS / min(size, count))
