"""The fence: ours is kept from the job, the job's is kept from nobody."""

import os
import signal

import pytest
from tfprof.shim import guard
from tfprof.shim.guard import guarded


class JobsError(Exception):
    """An error of the job's own."""


def test_an_error_of_ours_gives_none_and_is_counted(channel, reader):
    @guarded
    def fails():
        raise KeyError("what")

    assert fails() is None
    assert fails() is None
    assert reader.word("faults") == 2
    assert "KeyError: 'what'" in reader.fault()
    assert "in fails" in reader.fault()


def test_a_long_traceback_is_cut_to_the_page(channel, reader):
    @guarded
    def fails():
        raise ValueError("x" * 10000)

    assert fails() is None
    assert len(reader.fault()) == 2044
    assert reader.fault().endswith("xxx\n")


def test_what_works_is_handed_on():
    assert guarded(lambda value, other=1: value + other)(2, other=3) == 5


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_the_way_out_of_a_job_is_not_stopped(error):
    @guarded
    def leaves():
        raise error

    with pytest.raises(error):
        leaves()


@pytest.mark.parametrize("error", [TimeoutError, JobsError, ValueError])
def test_an_error_of_the_jobs_signal_handler_is_the_jobs(channel, reader, error):
    class Handler:
        def handle(self, *_):
            raise error("theirs")

    def function(*_):
        raise error("theirs")

    for handler in (function, Handler().handle):
        before = signal.signal(signal.SIGUSR1, handler)
        try:
            with pytest.raises(error, match="theirs"):
                guarded(lambda: os.kill(os.getpid(), signal.SIGUSR1))()
        finally:
            signal.signal(signal.SIGUSR1, before)
    assert reader.word("faults") == 0


def test_our_own_tests_see_our_errors(monkeypatch):
    empty: dict[str, int] = {}
    monkeypatch.setattr(guard, "_raise", True)
    with pytest.raises(KeyError):
        guarded(lambda: empty["none"])()
