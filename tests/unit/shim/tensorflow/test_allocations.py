"""The switch that makes TensorFlow's CPU allocator report allocations, in a fake library."""

import contextlib
import os
import sys
from types import SimpleNamespace

import pytest
from tfprof.shim.tensorflow import allocations


@contextlib.contextmanager
def enabled():
    allocations.enable()
    try:
        yield
    finally:
        allocations.disable()


class Library:
    """A fake of TensorFlow's library, as ctypes opens it, with the function names of a version."""

    def __init__(self, function_names):
        self.is_on = False
        self.log = []
        for name, call in zip(function_names, (lambda: self.is_on, self._turn(True), self._turn(False)), strict=True):
            setattr(self, name, call)

    def _turn(self, on):
        def turn():
            self.is_on = on
            self.log.append(on)

        return turn


@pytest.fixture(params=allocations._SWITCHES, ids=["tsl", "tensorflow"])
def library(request, monkeypatch):
    fake_library = Library(request.param)
    monkeypatch.setattr(allocations, "library", lambda: fake_library)
    monkeypatch.setattr(allocations, "has_accelerator", lambda: False)
    return fake_library


def test_the_switch_is_on_during_a_session_and_off_after(library):
    with enabled():
        assert library.is_on
    assert library.log == [True, False]


def test_the_switch_is_turned_off_even_after_an_error(library):
    with pytest.raises(ValueError, match="ours"), enabled():
        raise ValueError("ours")
    assert not library.is_on


def test_a_switch_that_the_job_turned_on_stays_on(library):
    library.is_on = True
    with enabled():
        pass
    assert library.is_on
    assert library.log == []


def test_with_accelerators_the_switch_is_not_touched(library, monkeypatch):
    monkeypatch.setattr(allocations, "has_accelerator", lambda: True)
    with enabled():
        assert not library.is_on


@pytest.mark.parametrize("other_library", [None, object()])
def test_without_the_switch_nothing_happens_and_this_is_reported_once(library, monkeypatch, other_library, armed):
    monkeypatch.setattr(allocations, "library", lambda: other_library)
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace())
    for _ in range(2):
        with enabled():
            pass
    assert library.log == []
    assert [text.partition(" lacks ")[0] for text in armed.state().missing] == [allocations.LIBRARY]


def test_the_switch_is_off_in_a_forked_child_and_stays_on_in_the_parent(library):
    with enabled():
        pid = os.fork()
        if pid == 0:
            os._exit(1 if library.is_on else 0)
        assert os.waitpid(pid, 0)[1] == 0
        assert library.is_on
    pid = os.fork()
    if pid == 0:
        os._exit(len(library.log) - 2)
    assert os.waitpid(pid, 0)[1] == 0


def test_no_library_is_loaded_for_the_switch(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", allocations)
    assert allocations.library() is None
    monkeypatch.delitem(sys.modules, "tensorflow")
    assert allocations.library() is None


def test_a_process_with_a_gpu_has_an_accelerator(monkeypatch):
    devices = [SimpleNamespace(device_type="CPU"), SimpleNamespace(device_type="GPU")]
    context = SimpleNamespace(context=lambda: SimpleNamespace(_logical_devices=devices))
    monkeypatch.setitem(sys.modules, allocations._CONTEXT, context)
    assert allocations.has_accelerator()
    del devices[1]
    assert not allocations.has_accelerator()
