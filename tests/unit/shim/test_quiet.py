"""What is kept of the C library's standard error while a call of ours runs."""

import os
import threading

import pytest
from fakes.eager_tensorflow import log
from tfprof.shim import quiet

OURS = "2026-01-01 00:00:00.1: I tensorflow/core/profiler/lib/profiler_session.cc:131] Profiler session started."
PREAMBLE = quiet._PREAMBLE.decode()


@pytest.fixture
def captured(monkeypatch):
    monkeypatch.setattr(quiet, "_captured", None)
    made = quiet.captured()
    yield made
    assert made.stream.value == made.job


def test_lines_of_the_profiler_are_left_out_and_others_come_afterwards(captured, capfd):
    with captured:
        log(OURS)
        log("E tensorflow/other.cc:1] theirs")
        assert capfd.readouterr().err == ""
    assert capfd.readouterr().err == "E tensorflow/other.cc:1] theirs\n"


def test_each_capture_begins_empty(captured, capfd):
    for number in range(3):
        with captured:
            log("line %d" % number)
        assert capfd.readouterr().err == "line %d\n" % number


def test_what_goes_to_the_descriptor_is_not_touched(captured, capfd):
    with captured:
        os.write(2, b"python's")
        assert capfd.readouterr().err == "python's"


def test_the_librarys_first_words_are_left_out_with_the_line_that_caused_them(captured, capfd):
    with captured:
        log(PREAMBLE)
        log(OURS)
    assert capfd.readouterr().err == ""
    with captured:
        log(PREAMBLE)
        log("theirs")
    assert capfd.readouterr().err == PREAMBLE + "\ntheirs\n"


def test_a_line_without_an_end_is_kept(captured):
    assert quiet.others(b"a\nb") == b"a\nb"


def test_other_threads_may_write_all_the_time(captured, capfd):
    stop = threading.Event()
    written = []

    def write():
        while not stop.is_set():
            log("theirs")
            written.append(1)

    thread = threading.Thread(target=write)
    thread.start()
    for _ in range(300):
        with captured:
            log(OURS)
    stop.set()
    thread.join()
    with captured:
        pass
    assert capfd.readouterr().err == "theirs\n" * len(written)


def test_a_child_forked_within_has_its_stream_back(captured, capfd):
    with captured:
        pid = os.fork()
        if pid == 0:
            log("child")
            os._exit(0)
        os.waitpid(pid, 0)
    assert capfd.readouterr().err == "child\n"
