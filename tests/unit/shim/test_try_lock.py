"""Try-locks have one holder at a time, and are released whatever happens."""

import threading

import pytest
from tfprof.shim.try_lock import TryLock


def test_a_lock_has_one_holder_at_a_time():
    lock = TryLock()
    hold = lock.take()
    assert hold is not None
    assert lock.take() is None
    del hold
    assert lock.take() is not None


def test_an_exception_releases_a_lock_that_nobody_released():
    lock = TryLock()

    def take_and_raise():
        hold = lock.take()
        assert hold is not None
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        take_and_raise()
    del caught
    assert lock.take() is not None


def test_a_lock_knows_whether_another_thread_holds_it():
    lock = TryLock()
    assert not lock.is_held_by_another_thread
    hold = lock.take()
    assert hold is not None
    answers = []
    other = threading.Thread(target=lambda: answers.append(lock.is_held_by_another_thread))
    other.start()
    other.join()
    assert answers == [True]
    assert not lock.is_held_by_another_thread
