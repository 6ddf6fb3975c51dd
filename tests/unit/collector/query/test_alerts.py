import json

import pytest
from click.testing import CliRunner
from fakes.made_steps import Execution, graph, made_job
from fakes.made_store import START_NS, rows
from tfprof.cli.alerts import alerts
from tfprof.collector.alerts.alert import SLOWER, STALL
from tfprof.collector.query.alerts import alerts_of
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


def test_a_slow_down_names_the_op_that_takes_longer(store):
    [job_alert] = alerts_of([job(store, alert(SLOWER, 4))])
    assert (job_alert.traced_before, job_alert.traced_since) == (3, 3)
    [op] = job_alert.ops
    assert (op.op, op.device, op.before_us, op.now_us) == ("Conv2D", "CPU:0", 500, 1550)
    assert "Conv2D on CPU:0: 1.55 ms a step, before 500 µs" in run(store)


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
    assert document["text"] == "steps are slower from run 4 on: 3.00 ms, 3x the usual 1.00 ms"
    assert document["ops"][0]["op"] == "Conv2D"


def test_a_store_without_alerts_says_so(store):
    job(store)
    assert "no alerts" in run(store)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_lines_fit_the_terminal(store, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    job(store, alert(SLOWER, 4), alert(STALL, 9))
    assert max(map(len, run(store).splitlines())) <= width
