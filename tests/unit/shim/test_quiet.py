"""A thread's own descriptors."""

import _thread
import os
import sys
from types import SimpleNamespace

import pytest
from tfprof.shim import quiet


def in_thread(call):
    """Run ``call`` in a thread that ends with it, and return its value or the exception."""
    done, result = _thread.allocate_lock(), []
    done.acquire()

    def body():
        try:
            result.append(call())
        except Exception as error:
            result.append(error)
        finally:
            done.release()

    _thread.start_new_thread(body, ())
    assert done.acquire(timeout=10)
    return result[0]


@pytest.fixture(params=["close_range", "unshare"])
def way(request, monkeypatch):
    if request.param == "unshare":
        monkeypatch.setattr(quiet, "_CLOSE_RANGE", 1 << 20)


def test_what_the_thread_prints_is_lost_and_what_others_print_is_not(way, capfd):
    def call():
        quiet.private_descriptors()
        os.write(2, b"ours")

    assert in_thread(call) is None
    os.write(2, b"theirs")
    assert capfd.readouterr().err == "theirs"


def test_the_thread_holds_no_descriptor_of_the_job(way):
    reading, writing = os.pipe()

    def call():
        quiet.private_descriptors()
        return sorted(os.listdir("/proc/thread-self/fd"), key=int)[:3], [fd for fd in (reading, writing) if is_pipe(fd)]

    assert in_thread(call) == (["0", "1", "2"], [])
    os.close(writing)
    assert os.read(reading, 1) == b""
    os.close(reading)


def is_pipe(fd):
    try:
        return os.readlink(f"/proc/thread-self/fd/{fd}").startswith("pipe:")
    except OSError:
        return False


def test_a_process_with_a_device_raises_the_log_level_instead(monkeypatch):
    devices = [SimpleNamespace(device_type="CPU"), SimpleNamespace(device_type="GPU")]
    context = SimpleNamespace(context=lambda: SimpleNamespace(_logical_devices=devices))
    monkeypatch.setitem(sys.modules, "tensorflow.python.eager.context", context)
    assert quiet.accelerated()
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(__file__="/nowhere/__init__.py"))
    with pytest.raises(quiet.NoisyError):
        quiet.silence()
