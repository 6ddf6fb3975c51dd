"""Giving bytes to a buffer of the job's: here, objects that only look like one."""

from types import SimpleNamespace

from tfprof.shim.tensorflow import tf_buffer


class Impostor:
    """Not a TF_Buffer."""


def test_a_tensorflow_whose_buffers_are_something_else_is_left_alone(monkeypatch):
    monkeypatch.setattr(tf_buffer, "_usable", None)
    native = SimpleNamespace(
        TF_NewBuffer=Impostor,
        TF_NewBufferFromString=lambda _data: Impostor(),
        TF_DeleteBuffer=lambda _made: None,
        TF_GetBuffer=lambda _made: b"",
    )
    assert not tf_buffer.usable(native)


def test_an_address_that_is_none_is_an_error_and_no_crash(monkeypatch):
    monkeypatch.setattr(tf_buffer, "_usable", None)
    wild = SimpleNamespace(this=0xDEAD000)
    native = SimpleNamespace(
        TF_NewBuffer=lambda: wild,
        TF_NewBufferFromString=lambda _data: wild,
        TF_DeleteBuffer=lambda _made: None,
        TF_GetBuffer=lambda _made: b"",
    )
    assert not tf_buffer.usable(native)
