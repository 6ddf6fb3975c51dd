"""The C library's standard error while a call of ours runs."""

import ctypes
import os
import threading

import pytest
from fakes.eager_tensorflow import log
from tfprof.shim.steps import window
from tfprof.shim.tensorflow import stderr_guard

PROFILER_LINE = (
    "2026-01-01 00:00:00.1: I tensorflow/core/profiler/lib/profiler_session.cc:131] Profiler session started."
)
LIBC = ctypes.CDLL(None)
STDERR = ctypes.c_void_p.in_dll(LIBC, "stderr")
PREAMBLE = stderr_guard._PREAMBLE.decode()


@pytest.fixture
def filtered_stderr():
    new_stderr = stderr_guard.FilteredStderr()
    fileno = new_stderr.fileno.value
    yield new_stderr
    new_stderr.close()
    assert new_stderr.fileno.value == fileno == 2


def test_lines_of_the_profiler_are_left_out_and_others_come_afterwards(filtered_stderr, capfd):
    with filtered_stderr:
        log(PROFILER_LINE)
        log("E tensorflow/other.cc:1] theirs")
        assert capfd.readouterr().err == ""
    assert capfd.readouterr().err == "E tensorflow/other.cc:1] theirs\n"


def test_each_capture_begins_empty(filtered_stderr, capfd):
    for number in range(3):
        with filtered_stderr:
            log(f"line {number}")
        assert capfd.readouterr().err == f"line {number}\n"


def test_output_to_the_descriptor_is_not_touched(filtered_stderr, capfd):
    with filtered_stderr:
        os.write(2, b"python's")
        assert capfd.readouterr().err == "python's"


def test_the_preamble_is_left_out_with_the_line_that_caused_it(filtered_stderr, capfd):
    with filtered_stderr:
        log(PREAMBLE)
        log(PROFILER_LINE)
    assert capfd.readouterr().err == ""
    with filtered_stderr:
        log(PREAMBLE)
        log("theirs")
    assert capfd.readouterr().err == PREAMBLE + "\ntheirs\n"


def test_a_line_without_an_end_is_kept(filtered_stderr):
    assert stderr_guard.job_lines(b"a\nb") == b"a\nb"


def test_other_threads_may_write_all_the_time(filtered_stderr, capfd):
    stop = threading.Event()
    written = []

    def write():
        while not stop.is_set():
            log("theirs")
            written.append(1)

    thread = threading.Thread(target=write)
    thread.start()
    for _ in range(300):
        with filtered_stderr:
            log(PROFILER_LINE)
    stop.set()
    thread.join()
    with filtered_stderr:
        pass
    assert capfd.readouterr().err == "theirs\n" * len(written)


def test_a_child_forked_meanwhile_gets_its_stream_back(filtered_stderr, capfd):
    with filtered_stderr:
        pid = os.fork()
        if pid == 0:
            filtered_stderr.close()
            log("child")
            os._exit(0)
        os.waitpid(pid, 0)
    assert capfd.readouterr().err == "child\n"


def test_output_through_a_copied_stream_pointer_is_captured_too(filtered_stderr, capfd):
    with filtered_stderr:
        pointer = STDERR.value
        LIBC.fputs(PROFILER_LINE.encode() + b"\n", ctypes.c_void_p(pointer))
    LIBC.fputs(b"theirs\n", ctypes.c_void_p(pointer))
    assert capfd.readouterr().err == "theirs\n"


def test_messages_of_several_lines_are_left_out_whole(filtered_stderr):
    text = (
        b"I x/save_profile.cc:1] made\n\nDumped tool data for xplane.pb\n2026: I other.cc:1] theirs\nDumped by others\n"
    )
    assert stderr_guard.job_lines(text) == b"2026: I other.cc:1] theirs\nDumped by others\n"


def test_a_descriptor_that_the_job_has_replaced_is_not_touched(filtered_stderr, capfd, tmp_path):
    with (tmp_path / "file").open("wb") as file:
        os.dup2(file.fileno(), filtered_stderr.fd)
        with filtered_stderr:
            log("theirs")
        fd = filtered_stderr.fd
        filtered_stderr.close()
        os.close(fd)
    assert capfd.readouterr().err == "theirs\n"
    assert (tmp_path / "file").read_bytes() == b""


def test_a_library_with_another_stream_layout_is_refused(monkeypatch):
    monkeypatch.setattr(stderr_guard, "_FILENO_AT", 120)
    with pytest.raises(window.ExportError):
        stderr_guard.FilteredStderr()


def test_an_exception_while_the_file_is_made_leaves_no_descriptor(monkeypatch):
    def interrupted(*_arguments):
        raise TimeoutError("the job's")

    monkeypatch.setattr("tfprof.shim.descriptors.control", interrupted)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(TimeoutError):
        stderr_guard.FilteredStderr()
    assert len(os.listdir("/proc/self/fd")) == len(before)
