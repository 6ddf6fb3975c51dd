"""Threads as lines of an XSpace."""

import pytest
from tfprof.collector.decoders import thread_lines
from tfprof.formats.layout import XSPACE_OTHER_THREADS


@pytest.mark.parametrize(
    ("ident", "line_id"),
    [
        (140367364565888, 728776921845672089),  # TensorFlow 2.21
        (140187651414912, 3361262381),  # 2.10
        (140471824866176, 918910930),  # 2.4
    ],
)
def test_a_thread_has_the_line_id_that_tensorflow_gives_it(ident: int, line_id: int) -> None:
    assert thread_lines.line_id(ident) == line_id & 0xFFFFFFFF
    for others in (0, XSPACE_OTHER_THREADS):
        caller = thread_lines.caller_of(ident | others)
        assert (caller >> 1, caller & 1) == ((line_id & 0xFFFFFFFF) >> 1, others)


def test_an_unknown_thread_has_no_line() -> None:
    assert [thread_lines.caller_of(thread) for thread in (0, XSPACE_OTHER_THREADS)] == [0, XSPACE_OTHER_THREADS]
