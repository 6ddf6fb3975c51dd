"""Guards notice re-entry, and replace a lock that an exception left behind."""

import threading

import pytest
from tfprof.shim.reentrant_guard import ReentrantGuard


def work(guard, action=lambda: None):
    """Return whether the lock was taken; it is held while ``action`` runs."""
    lock = guard.take()
    if lock is None:
        return False
    try:
        action()
    finally:
        lock.release()
    return True


def leave_locked(guard):
    lock = guard.take()
    assert lock is not None
    raise KeyboardInterrupt


def test_re_entry_skips_the_lock():
    guard, taken = ReentrantGuard(), []
    assert work(guard, lambda: taken.append(work(guard)))
    assert taken == [False]
    assert work(guard)


def test_a_lock_that_an_exception_left_behind_is_replaced():
    guard, taken = ReentrantGuard(), []
    with pytest.raises(KeyboardInterrupt):
        leave_locked(guard)
    assert work(guard, lambda: taken.append(work(guard)))
    assert taken == [False]
    other = threading.Thread(target=lambda: taken.append(work(guard)))
    other.start()
    other.join()
    assert taken == [False, True]


def test_another_thread_waits_for_the_lock():
    guard, begun, may_end, taken = ReentrantGuard(), threading.Event(), threading.Event(), []

    def wait_for_end():
        begun.set()
        assert may_end.wait(60.0)

    holder = threading.Thread(target=work, args=(guard, wait_for_end))
    holder.start()
    assert begun.wait(60.0)
    waiter = threading.Thread(target=lambda: taken.append(work(guard)))
    waiter.start()
    may_end.set()
    waiter.join()
    holder.join()
    assert taken == [True]
