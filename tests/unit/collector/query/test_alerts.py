"""Stored alerts, and the ops that explain them.

Tests collector/alerts/sentence.py, collector/documents/alerts.py, collector/render/alerts_text.py,
cli/alerts.py.
"""

import json

import pytest
from click.testing import CliRunner
from fakes.made_steps import Execution, graph, made_job
from fakes.made_store import START_NS, rows, span, write_job
from tfprof.cli.alerts import alerts
from tfprof.cli.views import op
from tfprof.collector.alerts.alert import LOSSES, SLOWER, STALL, Alert
from tfprof.collector.alerts.sentence import sentence
from tfprof.collector.api import open_store
from tfprof.collector.query.alerts import alerts_of
from tfprof.collector.store.reader import LocalStore
from tfprof.formats import layout

GRAPH = graph({"a/MatMul": "MatMul", "b/Conv": "Conv2D", "c/Add": "AddV2"})


def step(conv_us):
    return [Execution("a/MatMul", 0, 100), Execution("b/Conv", 200, conv_us), Execution("c/Add", 5000, 10)]


def alert(slug, step, **values):
    row = {"found_ns": START_NS + step, "since_ns": START_NS, "slug": slug, "kind": layout.RUN, "step": step}
    return row | {"before": 1e6, "now": 3e6} | values


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


def job(store, *alert_rows, conv_times_us=None):
    return made_job(
        store,
        [step(conv_us) for conv_us in conv_times_us or [500, 510, 490, 1500, 1600, 1550]],
        GRAPH,
        alerts=rows("alerts", alert_rows),
    )


def run(store, *arguments):
    result = CliRunner().invoke(alerts, ["--store", str(store), *arguments])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize(
    ("before", "now", "text"),
    [
        (0, 1, "1 record, traced step or span was lost"),
        (0, 3, "3 records, traced steps or spans were lost"),
        (2, 3, "1 record, traced step or span was lost; 3 in all"),
    ],
)
def test_losses_are_a_sentence(before, now, text):
    assert sentence(Alert(1, 1, LOSSES, before=before, now=now), {}) == text


def test_a_slow_down_names_the_op_that_takes_longer(store):
    [job_alert] = alerts_of([job(store, alert(SLOWER, 4))])
    assert (job_alert.traced_before, job_alert.traced_since) == (3, 3)
    [op] = job_alert.ops
    assert (op.op, op.device) == ("Conv2D", "CPU:0")
    assert (op.before_ns, op.now_ns) == pytest.approx((500_000, 1_550_000), rel=0.01)
    assert "Conv2D on CPU:0: 1.55 ms a step, before 502 µs" in run(store)


@pytest.mark.parametrize(("step", "when"), [(1, "traced before"), (9, "traced since")])
def test_an_alert_says_if_no_step_was_traced_before_or_since(store, step, when):
    job(store, alert(SLOWER, step))
    assert f"No step was {when}" in run(store)


def test_if_no_op_takes_longer_the_alert_names_no_op(store):
    job(store, alert(SLOWER, 4), conv_times_us=[500] * 6)
    assert "The ops of traced steps are not slower" in run(store)


def test_alerts_are_in_order_of_detection_and_last_limits_them(store):
    job(store, alert(STALL, 9), alert(SLOWER, 4))
    printed = run(store)
    assert printed.index("[slower]") < printed.index("[stall]")
    printed_last = run(store, "--last", "1")
    assert "[stall]" in printed_last
    assert "[slower]" not in printed_last


def test_the_document_has_numbers_and_the_text(store):
    job(store, alert(SLOWER, 4))
    [document] = json.loads(run(store, "--json"))["alerts"]
    assert (document["slug"], document["kind"], document["step"], document["before"], document["now"]) == (
        "slower",
        "run",
        4,
        1e6,
        3e6,
    )
    assert document["text"] == "steps are slower from run 4 on: 3.00 ms, 3.0x the usual 1.00 ms"
    assert document["ops"][0]["op"] == "Conv2D"


def test_a_store_without_alerts_says_so(store):
    job(store)
    assert "no alerts" in run(store)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_lines_fit_the_terminal(store, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    job(store, alert(SLOWER, 4), alert(STALL, 9))
    assert max(map(len, run(store).splitlines())) <= width


@pytest.mark.parametrize(
    ("state", "end", "last_step_ms", "slugs"),
    [
        ("exited", {"status": 0}, 400, []),
        ("exited", {"status": 1}, 400, [STALL]),
        ("killed", {"signal": 9}, 400, [STALL]),
        (None, {}, 400, [STALL]),
        ("exited", {"status": 0}, 30_000, [STALL]),
    ],
    ids=["it ended normally", "it failed", "it was killed", "it runs", "it continued"],
)
def test_the_end_of_a_job_is_no_stall(store, state, end, last_step_ms, slugs):
    stall = alert(STALL, 38, found_ns=START_NS + 20 * 10**9)  # two more steps were recorded later
    spans = [span(layout.RUN, 39, 390, 1), span(layout.RUN, 40, last_step_ms, 1)]
    write_job(store, 1, {"alerts": rows("alerts", [stall]), "spans": rows("spans", spans)}, state=state, end=end)
    assert [job_alert.alert.slug for job_alert in alerts_of([LocalStore(store).job("last")])] == slugs
    exported = open_store(store).job("last")
    assert exported.events()["slug"].to_pylist() == slugs
    exported.export(store / "timeline.json")
    marks = [event for event in json.loads((store / "timeline.json").read_text())["traceEvents"] if event["ph"] == "i"]
    assert [mark["name"] for mark in marks] == slugs


@pytest.mark.parametrize(("alert_rows", "has_note"), [([alert(SLOWER, 41)], True), ([], False)])
def test_a_view_says_since_when_the_steps_of_a_job_are_slower(store, alert_rows, has_note):
    times_ms = [1.0] * 40 + [8.0] * 40
    spans = [span(layout.RUN, 1 + at, 10 * at, ms) for at, ms in enumerate(times_ms)]
    tables = {"alerts": rows("alerts", alert_rows), "spans": rows("spans", spans)}
    made_job(store, [step(500)] * 3, GRAPH, **tables)
    notes = " ".join(CliRunner().invoke(op, ["last", "--store", str(store)]).stderr.split())
    assert ("since run 41 (" in notes) == has_note
    assert (
        "steps take 8.0 times as long as before: 8.00 ms instead of 1.00 ms. Only these: --steps 41-80" in notes
    ) == (has_note)
