"""The collector as a daemon: its start, its crashes and its end.

Tests collector/__main__.py.
"""

import signal
import time
from typing import ClassVar

import pytest
from tfprof.collector import daemon
from tfprof.collector.__main__ import main
from tfprof.collector.errors import StoreError
from tfprof.collector.selfstats import CollectorStats


class ScriptedCollector:
    """A collector. Each of its steps raises the error that ``errors`` has for the step, if any."""

    instances: ClassVar = []
    errors: ClassVar = {}

    def __init__(self, options):
        self.options = options
        self.steps = []
        ScriptedCollector.instances.append(self)

    def _step(self, name):
        self.steps.append(name)
        if name in ScriptedCollector.errors:
            raise ScriptedCollector.errors[name]

    def start(self):
        self._step("start")

    def serve(self):
        self._step("serve")

    def close(self):
        self._step("close")


@pytest.fixture
def run(monkeypatch, private_store):
    monkeypatch.setattr(daemon, "Collector", ScriptedCollector)
    monkeypatch.setattr(daemon.os, "nice", lambda _by: None)
    ScriptedCollector.instances.clear()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}

    def run(*arguments, **errors):
        ScriptedCollector.errors = errors
        return main(arguments)

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_the_collector_starts_serves_and_closes(run):
    assert run("--store", "/s") == 0
    assert ScriptedCollector.instances[0].steps == ["start", "serve", "close"]


def test_an_error_at_the_start_is_one_line(run, capsys):
    assert run(start=StoreError("in use by 5", "store-in-use")) == 1
    assert capsys.readouterr().err == "tfprof: in use by 5 [store-in-use]\n"


def test_a_crash_keeps_its_traceback_and_closes_the_store(run):
    with pytest.raises(ZeroDivisionError):
        run(serve=ZeroDivisionError())
    assert ScriptedCollector.instances[0].steps == ["start", "serve", "close"]


def test_an_error_of_closing_is_reported_and_does_not_hide_a_crash(run, capsys):
    assert run(close=StoreError("full", "store-full")) == 1
    assert capsys.readouterr().err == "tfprof: full [store-full]\n"
    with pytest.raises(ZeroDivisionError):
        run(serve=ZeroDivisionError(), close=StoreError("full", "store-full"))


def test_settings_come_from_the_environment_unless_they_are_given(run, monkeypatch):
    monkeypatch.setenv("TFPROF_COLLECTOR_IDLE", "7")
    monkeypatch.setenv("TFPROF_KEEP_DAYS", "2")
    monkeypatch.setenv("TFPROF_KEEP_BYTES", "3K")
    run()
    run("--idle", "9")
    first, second = (collector.options for collector in ScriptedCollector.instances)
    assert (first.idle_s, first.retention.max_age_s, first.retention.max_bytes) == (7.0, 2 * 86_400, 3 * 1024)
    assert second.idle_s == 9.0


@pytest.mark.parametrize(("idle_s", "first_s"), [(60.0, 30.0), (float("inf"), 30.0), (10.0, 5.0)])
def test_the_first_removal_waits_for_the_agents_of_jobs_that_still_run(monkeypatch, private_store, idle_s, first_s):
    removals = []
    monkeypatch.setattr(daemon, "remove_expired", lambda *_: removals.append(seconds))
    collector = daemon.Collector(daemon.CollectorOptions(private_store, idle_s))
    collector.start()
    started = time.monotonic()
    for seconds in (0, first_s - 1, first_s + 1, first_s + daemon.REMOVAL_S - 1, first_s + daemon.REMOVAL_S + 2):
        collector._tick(started + seconds)
    collector.close()
    assert removals == [first_s + 1, first_s + daemon.REMOVAL_S + 2]


def test_without_limits_everything_is_kept(run, monkeypatch):
    for name in ("TFPROF_KEEP_DAYS", "TFPROF_KEEP_BYTES"):
        monkeypatch.delenv(name, raising=False)
    run()
    assert ScriptedCollector.instances[0].options.retention == daemon.Limits(None, None)


def test_an_error_in_a_setting_is_one_line(run, monkeypatch, capsys):
    monkeypatch.setenv("TFPROF_KEEP_BYTES", "lots")
    assert run() == 2
    assert capsys.readouterr().err.startswith("tfprof: TFPROF_KEEP_BYTES: ")


def test_a_stall_is_reported_until_no_append_has_failed_for_some_seconds():
    stats = CollectorStats()
    stats.count_stall(StoreError("full", "store-full"))
    assert stats.snapshot(0, 0.0)["stalled"] == {"slug": "store-full", "text": "full"}
    later = stats.snapshot(0, 1e12)
    assert (later["stalled"], later["stalls"]) == (None, 1)


def test_the_rate_covers_the_time_since_the_last_status():
    stats = CollectorStats()
    stats.snapshot(100, 1e6)
    assert stats.snapshot(400, 1e6 + 2)["rows_per_s"] == 150.0
