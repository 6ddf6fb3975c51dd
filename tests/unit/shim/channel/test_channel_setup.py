"""The channel is created again after an exception of the job, not after an error of the shim."""

import os
import signal

import pytest
from fakes.channel_reader import channels
from tfprof.formats.runtime_dir import ANNOUNCE
from tfprof.shim.channel import channel_setup


def failing_function(times, error):
    """Return a function that raises ``error`` in its first ``times`` calls."""
    errors = [error] * times

    def fail(*_args):
        if errors:
            raise errors.pop()

    return fail


@pytest.mark.parametrize("name", ["write_hello", "_trace_policy"])
def test_an_exception_of_the_job_leaves_no_channel_and_the_next_step_tries_again(armed, monkeypatch, name):
    with monkeypatch.context() as patch:
        patch.setattr(channel_setup, name, failing_function(1, KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            armed.channel()
    assert channels(os.getpid()) == []
    assert armed.channel() is not None
    assert len(channels(os.getpid())) == 1


def test_after_an_error_of_the_shim_there_is_no_retry(armed, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(channel_setup, "_trace_policy", failing_function(1, ZeroDivisionError("by accident")))
        with pytest.raises(ZeroDivisionError):
            armed.channel()
    assert armed.channel() is None
    assert channels(os.getpid()) == []


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_exception_of_the_job_passes_before_and_after_the_announcement(armed, monkeypatch, tmp_path, moment):
    def handler(_number, _frame):
        raise TimeoutError("theirs")

    def rename(source, target, original=os.rename):
        if moment == "after":
            original(source, target)
        signal.raise_signal(signal.SIGALRM)

    (tmp_path / ANNOUNCE).mkdir()
    monkeypatch.setattr(os, "rename", rename)
    previous_handler = signal.signal(signal.SIGALRM, handler)
    try:
        with pytest.raises(TimeoutError, match="theirs"):
            channel_setup.announce(str(tmp_path), 1, 2, "channel\n")
    finally:
        signal.signal(signal.SIGALRM, previous_handler)
    names = os.listdir(tmp_path / ANNOUNCE)
    assert names == ([f"1-{2:016x}"] if moment == "after" else [])
