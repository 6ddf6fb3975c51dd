"""`tfprof metrics`: Prometheus reads what it prints and serves, whatever the jobs are called.

Tests collector/render/metrics_text.py, collector/summaries/job_totals.py, web/server/metrics.py.
"""

import json
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fakes import hostile_store, page_store
from fakes.command import Run
from fakes.made_store import MS, SECOND, rows, span, write_job
from fakes.page_server import page_server
from house.tree import ROOT
from prometheus_client.parser import text_string_to_metric_families
from tfprof.collector.query.metrics import StoreMetrics
from tfprof.collector.render import metrics_text
from tfprof.formats import layout

ALL = ("--ended", "5000d")
NAMES = [
    'say "hi"',
    "back\\slash\\n",
    "ends with \\",
    'a="b",c="d"} 1',
    "né 名",
    "x" * 10_000,
    "two\nlines\r\n",
    "",
    "{}",
]


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Return the value of each sample by name and labels; no two samples may have the same."""
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for family in text_string_to_metric_families(text):
        assert family.type in ("counter", "gauge", "histogram")
        assert family.documentation
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found
            found[key] = sample.value
    return found


def values(text: str, name: str, /, **labels: str) -> list[float]:
    """Return the values of ``name`` with ``labels``."""
    return [value for (found, have), value in samples(text).items() if found == name and labels.items() <= set(have)]


def test_the_figures_are_those_of_the_other_commands(run: Run) -> None:
    status, text, err = run("metrics", *ALL)
    assert (status, err) == (0, "")
    jobs = json.loads(run("jobs", "--json")[1])["jobs"]
    assert sum(values(text, "tfprof_jobs")) == len(jobs) == 2
    for job in jobs:
        labels = {"job_id": job["uid"]}
        assert values(text, "tfprof_steps_total", **labels) == ([job["steps"]] if job["steps"] else [])
        assert values(text, "tfprof_job_start_time_seconds", **labels) == [job["started_ns"] / 1e9]
        assert values(text, "tfprof_job_exit_status", **labels) == [job["status"]] * (job["status"] is not None)
        assert sum(values(text, "tfprof_lost_total", **labels)) == job["lost"]
    (kind,) = json.loads(run("steps", "train.py", "--json")[1])["kinds"]
    assert values(text, "tfprof_step_duration_seconds_count", kind="batch") == [kind["untraced"]["count"]]
    (total_s,) = values(text, "tfprof_step_duration_seconds_sum", kind="batch")
    assert total_s == pytest.approx(kind["untraced"]["count"] * kind["untraced"]["mean_ns"] / 1e9)
    assert values(text, "tfprof_step_duration_seconds_bucket", le="0.0128") == [0]
    assert values(text, "tfprof_step_duration_seconds_bucket", le="+Inf") == [40]
    assert values(text, "tfprof_alerts_total", alert="stall", name="train.py") == [1]
    assert values(text, "tfprof_daemon_up") == [0, 0]


def test_jobs_that_ended_long_ago_are_only_counted(run: Run) -> None:
    text = run("metrics")[1]
    assert values(text, "tfprof_left_out", what="ended_jobs") == [2]
    assert "job_id" not in text
    status, out, err = run("metrics", "--ended", "soon")
    assert (status, out) == (2, "")
    assert "--ended: 'soon'" in err


def test_the_parts_of_a_step_are_those_of_breakdown(run: Run, store: Path) -> None:
    page_store.write(store)
    parts = json.loads(run("breakdown", f"{page_store.JOBS[0]:x}", "--json")[1])["kinds"][0]["parts"]
    found = values(run("metrics", *ALL)[1], "tfprof_step_part_seconds", job_id=f"{page_store.JOBS[0]:x}")
    assert found == pytest.approx([part["mean_ns"] / 1e9 for part in parts])


def test_any_name_is_read_back(run: Run, store: Path) -> None:
    for number, name in enumerate(NAMES):
        identity = {"name": name, "host": name, "functions": {"7": name}, "user": name}
        spans = [span(layout.FUNCTION, at, at * 100, 20, key=7) for at in range(3)]
        write_job(store, 0xE000 + number, {"spans": rows("spans", spans)}, identity=identity)
    text = run("metrics", *ALL)[1]
    found = {
        labels["job_id"]: labels.get("name", "")
        for (name, have), _ in samples(text).items()
        if name == "tfprof_job_info" and (labels := dict(have))
    }
    for number, name in enumerate(NAMES[:5]):
        assert found[f"{0xE000 + number:016x}"] == name
    assert len(found[f"{0xE005:016x}"]) <= 120
    assert found[f"{0xE006:016x}"] == "two?lines??"
    assert max(map(len, text.splitlines())) < 1000


def test_hostile_texts_are_one_line_each(run: Run, store: Path) -> None:
    hostile_store.write(store)
    text = run("metrics", *ALL)[1]
    assert values(text, "tfprof_job_info")
    assert all(re.match(r"# (HELP|TYPE) tfprof_|tfprof_", line) for line in text.splitlines())


@pytest.mark.parametrize("exists", [True, False])
def test_a_store_without_jobs_has_metrics(run: Run, tmp_path: Path, exists: bool) -> None:
    if exists:
        (tmp_path / "empty").mkdir()
    text = run("metrics", "--store", str(tmp_path / "empty"))[1]
    assert set(values(text, "tfprof_jobs")) == {0}


def test_a_file_is_no_store(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    status, out, err = run("metrics", "--store", str(tmp_path / "file"))
    assert (status, out) == (1, "")
    assert "[store-missing]" in err


def test_every_family_is_documented_and_named_by_the_conventions() -> None:
    page = (ROOT / "docs/how-to/prometheus.md").read_text()
    for family in metrics_text.FAMILIES:
        assert f"`{family.name}`" in page
        assert (family.kind == "counter") == family.name.endswith("_total")
    assert len({family.name for family in metrics_text.FAMILIES}) == len(metrics_text.FAMILIES)


def test_the_state_of_the_daemons_is_that_of_their_status_files() -> None:
    agent = {"alive": True, "started_ns": 5 * SECOND, "rss_bytes": 7, "refused": 2, "samples_dropped": 3, "stall": {}}
    collector: dict[str, Any] = {"alive": True, "lag_s": 0.5, "rows": 9, "refusals": 4, "lost_samples": 1}
    collector |= {"stalled": {"slug": "store-full", "text": "full"}, "quarantined": {"a": "b"}}
    text = "\n".join((*metrics_text.lines(StoreMetrics({}), {"agent": agent, "collector": collector}), ""))
    assert values(text, "tfprof_daemon_up") == [1, 1]
    assert values(text, "tfprof_daemon_start_time_seconds") == [5]
    assert values(text, "tfprof_daemon_refused_total", daemon="agent") == [2]
    assert values(text, "tfprof_daemon_refused_total", daemon="collector") == [4]
    assert values(text, "tfprof_daemon_lost_samples_total") == [3, 1]
    assert values(text, "tfprof_daemon_stalled") == [0, 1]
    assert values(text, "tfprof_collector_lag_seconds") == [0.5]
    assert values(text, "tfprof_collector_quarantined_jobs") == [1]
    gone = "\n".join(metrics_text.lines(StoreMetrics({}), {"agent": agent, "collector": {**collector, "alive": False}}))
    assert "tfprof_collector_" not in gone


@pytest.mark.parametrize(
    "address",
    ["0.0.0.0:9464", "*:9464", ":9464", "9464", "10.0.0.1:9464", "node7:9464", "[::]:9464", "unix:", "127.0.0.1:70000"],
)
def test_an_address_that_others_reach_is_refused(run: Run, address: str) -> None:
    status, out, err = run("metrics", "--listen", address)
    assert (status, out) == (2, "")
    assert "[metrics-address]" in err


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "unix:{}/m.sock"])
def test_metrics_are_served_until_ctrl_c(store: Path, tmp_path: Path, listen: str) -> None:
    tmp_path.chmod(0o700)
    options = ("--listen", listen.format(tmp_path), *ALL)
    with page_server(store, tmp_path, *options, command="metrics") as server:
        if server.socket:
            assert stat.S_IMODE(Path(server.socket).stat().st_mode) == 0o600
        answer = server.ask("/metrics")
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert values(answer.body.decode(), "tfprof_step_duration_seconds_count") == [40]
        write_job(store, 0xE000, {"spans": rows("spans", [span(layout.RUN, 1, 0, MS)])})
        assert len(values(server.ask("/metrics").body.decode(), "tfprof_job_info")) == 3
        assert server.ask("/metrics", Host="evil.example").status == 403
        assert server.ask("/").status == 404
        (store / "store.json").write_text("{")
        unreadable = server.ask("/metrics")
        assert unreadable.status == 503
        assert b"[store-" in unreadable.body
    assert server.process.returncode == 0
    assert not server.socket or not Path(server.socket).exists()


@pytest.mark.parametrize("name", ["metrics --listen 127.0.0.1:0", "web --port 0"])
def test_ctrl_c_does_not_wait_for_a_request_that_takes_long(store: Path, tmp_path: Path, name: str) -> None:
    tmp_path.chmod(0o700)
    code = f"""
import sys, threading, time
from tfprof.cli.main import main
threading.Thread(target=time.sleep, args=(60,)).start()  # as a thread with a request
main({name.split()!r})"""
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "TFPROF_STORE": str(store)}
    with subprocess.Popen([sys.executable, "-c", code], stdout=-1, text=True, env=environment) as process:
        assert process.stdout is not None
        while process.stdout.readline() != "Ctrl-C ends it.\n":
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
