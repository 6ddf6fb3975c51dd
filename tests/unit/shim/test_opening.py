"""The channel is created again after an exception of the job, not after an error of the shim."""

import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from fakes.channel_reader import channels
from fakes.open_channel import open_channel
from fakes.our_code import ours
from tfprof.formats.runtime_dir import ANNOUNCE
from tfprof.shim import opening, own_os
from tfprof.shim.opening import announce


def failing_function(times, error):
    """Return a function that raises ``error`` in its first ``times`` calls."""
    errors = [error] * times

    @ours
    def fail(*_args):
        if errors:
            raise errors.pop()

    return fail


@pytest.mark.parametrize("name", ["Hello", "SpanWriter"])
def test_an_exception_of_the_job_leaves_no_channel_and_the_next_step_tries_again(armed, monkeypatch, name):
    with monkeypatch.context() as patch:
        patch.setattr(opening, name, failing_function(1, KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            open_channel()
    assert channels(os.getpid()) == []
    assert open_channel() is not None
    assert len(channels(os.getpid())) == 1


def test_after_an_error_of_the_shim_there_is_no_retry(armed, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(opening, "SpanWriter", failing_function(1, ZeroDivisionError("by accident")))
        with pytest.raises(ZeroDivisionError):
            open_channel()
    assert open_channel() is None
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
    monkeypatch.setattr(own_os.os, "rename", rename)
    previous_handler = signal.signal(signal.SIGALRM, handler)
    try:
        with pytest.raises(TimeoutError, match="theirs"):
            announce(SimpleNamespace(folder=str(tmp_path), launch=1), 2, "channel")
    finally:
        signal.signal(signal.SIGALRM, previous_handler)
    names = os.listdir(tmp_path / ANNOUNCE)
    assert names == ([f"{os.getpid()}-{2:016x}"] if moment == "after" else [])


def test_the_first_argument_may_be_a_path(armed, read, monkeypatch):
    monkeypatch.setattr(sys, "argv", [Path("/work/train.py")])
    monkeypatch.delattr(sys.modules["__main__"], "__spec__", raising=False)
    hello = read().hello()
    assert (hello["argv0"], hello["name"]) == ("/work/train.py", "train.py")


def test_names_that_do_not_fit_are_encoded_once(armed, read, monkeypatch):
    hello, encode = open_channel().hello, mock.Mock(wraps=opening._encoded)
    published_keys: set[int] = set()
    monkeypatch.setattr(opening, "_encoded", encode)
    for key in range(opening.NAMES_MAX):
        hello.publish(10**9 + key, str(key).ljust(opening.LENGTH_MAX, "x"), published_keys)
    assert len(published_keys) == opening.NAMES_MAX
    assert encode.call_count <= 2 * opening.NAMES_MAX
    names = list(read().hello()["functions"].values())
    assert [name.rstrip("x") for name in names] == [str(number) for number in range(len(names))]
