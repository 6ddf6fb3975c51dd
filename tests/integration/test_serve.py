"""`tfprof serve` under a service manager: readiness, reload, take-over, kill and restart, stop."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.collector_process import CollectorProcess, StepStream
from fakes.polling import until
from fakes.wire_agent import WireAgent
from tfprof.collector.store.reader import LocalStore
from tfprof.formats import wire

UID = 0x5E


class Service(CollectorProcess):
    """`tfprof serve` for ``store``, started as by systemd, with a socket for its messages."""

    def __init__(self, store: Path, folder: Path) -> None:
        super().__init__(store)
        self._command = [sys.executable, "-m", "tfprof.cli.main", "serve"]
        self._address = str(folder / "notify")
        self._receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._receiver.bind(self._address)
        self._receiver.settimeout(30)

    def start(self) -> "Service":
        reader, journal = os.pipe()
        status = os.fstat(journal)
        environment = {
            **os.environ,
            "NOTIFY_SOCKET": self._address,
            "WATCHDOG_USEC": "2000000",
            "JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}",
        }
        self.process = subprocess.Popen(self._command, stderr=journal, text=True, env=environment)
        os.close(journal)
        self.process.stderr = os.fdopen(reader)
        return self

    def await_message(self, first_line: str) -> None:
        while self._receiver.recv(1000).decode().splitlines()[0] != first_line:
            pass

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._receiver.close()


@pytest.fixture
def service(private_store, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config/tfprof").mkdir(parents=True)
    with Service(private_store, tmp_path) as service:
        yield service


def test_a_service_takes_over_survives_a_kill_and_stops_in_order(service):
    with CollectorProcess(service.store) as earlier:
        earlier.start()
        earlier.await_status(lambda status: status["pid"] == earlier.process.pid)
        stream = StepStream(service.instance_dir, UID, 600)
        try:
            stream.run(until=50)
            service.start().await_message("READY=1")
            assert earlier.wait_end() == (0, "")
            assert service.await_status(lambda status: status["service"])["pid"] == service.process.pid
            stream.run(until=stream.acked + 100)
            service.kill()
            service.start().await_message("READY=1")
            stream.run()
        finally:
            stream.close()
    service.await_message("WATCHDOG=1")
    service.process.send_signal(signal.SIGTERM)
    service.await_message("STOPPING=1")
    code, errors = service.stop()
    assert (code, errors.splitlines()[0]) == (
        0,
        f"tfprof: serves {service.store}, pid {service.process.pid}; SIGTERM or Ctrl-C ends it",
    )
    traces = LocalStore(service.store).job(f"{UID:016x}").table("traces")["trace"].to_pylist()
    assert sorted(traces) == list(range(600))


def test_a_reload_applies_valid_settings_and_keeps_the_old_ones_otherwise(service, tmp_path):
    service.start().await_message("READY=1")
    agent = WireAgent(service.instance_dir)
    try:
        agent.greet()
        agent.open(UID, name="ended", pid=12)
        agent.finish(UID, status=0)
        agent.expect(wire.ACK, wire.CLOSE)
        service.await_status(lambda status: status["messages"] >= 3 and status["jobs"] == 0)
    finally:
        agent.close()
    settings = tmp_path / "config/tfprof/config.toml"
    for text in ('keep-days = "soon"', "keep-days = 1e-7"):
        assert [job.info.state for job in LocalStore(service.store).jobs()] == ["exited"]
        settings.write_text(text)
        service.process.send_signal(signal.SIGHUP)
        service.await_message("RELOADING=1")
        service.await_message("READY=1")
    until(lambda: not LocalStore(service.store).jobs(), "the removal of the ended job", 5)
    code, errors = service.stop()
    assert code == 0
    assert "<4>tfprof: the settings stay as they were: " in errors
    assert "[settings-file]" in errors
    assert errors.endswith("\ntfprof: the settings are reloaded\n")


def test_a_second_service_is_refused(service):
    service.start().await_message("READY=1")
    service.await_status(lambda status: status["service"])
    second = subprocess.run(
        [sys.executable, "-m", "tfprof.cli.main", "serve"], capture_output=True, text=True, timeout=60, check=False
    )
    assert second.returncode == 1
    assert second.stderr.endswith("stop it first [store-in-use]\n")
    assert service.process.poll() is None
