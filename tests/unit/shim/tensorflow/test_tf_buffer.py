"""`is_usable`, which checks whether TF_Buffers can be written, with fake buffers."""

from types import SimpleNamespace

from tfprof.shim.tensorflow import tf_buffer


class Impostor:
    """Not a TF_Buffer."""


def test_buffers_of_an_unknown_layout_are_not_usable(monkeypatch):
    monkeypatch.setattr(tf_buffer, "_is_usable", None)
    native = SimpleNamespace(
        TF_NewBuffer=Impostor,
        TF_NewBufferFromString=lambda _data: Impostor(),
        TF_DeleteBuffer=lambda _buffer: None,
        TF_GetBuffer=lambda _buffer: b"",
    )
    assert not tf_buffer.is_usable(native)


def test_buffers_with_an_invalid_address_are_not_usable_and_cause_no_crash(monkeypatch):
    monkeypatch.setattr(tf_buffer, "_is_usable", None)
    wild_buffer = SimpleNamespace(this=0xDEAD000)
    native = SimpleNamespace(
        TF_NewBuffer=lambda: wild_buffer,
        TF_NewBufferFromString=lambda _data: wild_buffer,
        TF_DeleteBuffer=lambda _buffer: None,
        TF_GetBuffer=lambda _buffer: b"",
    )
    assert not tf_buffer.is_usable(native)
