"""Making the channel: an exception of the job's in between is a delay, a fault of ours is the end of it."""

import os

import pytest
from fakes.channel_reader import channels
from tfprof.shim.channel import channel_setup


def failing(times, error):
    """Return what raises ``error`` so many times, and then nothing."""
    left = [error] * times

    def act(*_args):
        if left:
            raise left.pop()

    return act


@pytest.mark.parametrize("name", ["write_hello", "_policy"])
def test_an_exception_of_the_jobs_leaves_nothing_and_the_next_step_tries_again(armed, monkeypatch, name):
    with monkeypatch.context() as patch:
        patch.setattr(channel_setup, name, failing(1, KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            armed.channel()
    assert channels(os.getpid()) == []
    assert armed.channel() is not None
    assert len(channels(os.getpid())) == 1


def test_a_fault_of_ours_is_not_tried_again(armed, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(channel_setup, "_policy", failing(1, ZeroDivisionError("by accident")))
        with pytest.raises(ZeroDivisionError):
            armed.channel()
    assert armed.channel() is None
    assert channels(os.getpid()) == []
