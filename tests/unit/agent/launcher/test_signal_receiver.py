"""Signals are received as sent, even by a process that was stopped while it waited."""

import signal
import subprocess
import sys
import time

import psutil
import pytest
from tfprof.agent.launcher import signal_receiver

#: Prints the signals that it receives; the first argument "without" hides ctypes.
RECEIVER = """
import signal, sys, time
if sys.argv[1] == "without":
    sys.modules["ctypes"] = None
from tfprof.agent.launcher.signal_receiver import BLOCKABLE_SIGNALS, SignalReceiver
signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKABLE_SIGNALS)
receiver = SignalReceiver()
print("up", flush=True)
until = time.monotonic() + 30
while time.monotonic() < until:
    info = receiver.next(0.2)
    if info is not None:
        print(info.number, info.code, info.value, flush=True)
    if info is not None and info.number == signal.SIGTERM:
        break
"""


@pytest.mark.parametrize("ctypes_state", ["with", "without"])
def test_signals_are_received_as_sent_and_a_stop_adds_none(ctypes_state: str) -> None:
    with subprocess.Popen([sys.executable, "-c", RECEIVER, ctypes_state], stdout=-1, text=True) as process:
        assert process.stdout.readline() == "up\n"
        for _ in range(3):
            process.send_signal(signal.SIGSTOP)
            while psutil.Process(process.pid).status() != psutil.STATUS_STOPPED:
                time.sleep(0.01)
            time.sleep(0.25)  # the receiver's wait has ended by then
            process.send_signal(signal.SIGCONT)
            assert process.stdout.readline() == "18 0 0\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "15 0 0\n"


def test_where_ctypes_is_missing_there_is_no_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ctypes", None)
    assert signal_receiver._signal_fd() is None
