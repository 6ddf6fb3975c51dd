"""Turns: one caller at a time, and an end whatever happens."""

import threading

import pytest
from tfprof.shim.turn import Turns


def test_one_caller_at_a_time_has_a_turn():
    turns = Turns()
    first = turns.take()
    assert first is not None
    assert turns.take() is None
    del first
    assert turns.take() is not None


def test_an_exception_ends_a_turn_that_nobody_released():
    turns = Turns()

    def interrupted():
        turn = turns.take()
        assert turn is not None
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        interrupted()
    del caught
    assert turns.take() is not None


def test_a_turn_knows_whether_it_is_the_calling_threads():
    turns = Turns()
    assert not turns.is_of_another_thread
    turn = turns.take()
    assert turn is not None
    seen = []
    other = threading.Thread(target=lambda: seen.append(turns.is_of_another_thread))
    other.start()
    other.join()
    assert seen == [True]
    assert not turns.is_of_another_thread
