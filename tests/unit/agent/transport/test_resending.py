"""When unacked messages are sent again."""

from itertools import pairwise

import pytest
from tfprof.agent.transport.resending import REOPEN_S, SILENCE_MAX_S, SILENCE_S, STALL_S, Resending


def silences(resending: Resending, start: int, seconds: int) -> list[int]:
    """Return the times at which a waiting job finds the collector silent."""
    return [now for now in range(start, start + seconds) if resending.is_silent(now, is_waiting=True)]


def test_silences_become_longer_up_to_a_limit_until_an_answer() -> None:
    resending = Resending()
    times = silences(resending, 100, 200)
    gaps = [after - before for before, after in pairwise([100, *times])]
    assert gaps[0] > SILENCE_S
    assert gaps == sorted(gaps)
    assert SILENCE_MAX_S < gaps[-1] <= SILENCE_MAX_S + 2
    resending.note_answered()
    assert silences(resending, 400, 10)[0] <= 400 + SILENCE_S + 2


def test_nobody_is_silent_who_has_nothing_to_answer() -> None:
    resending = Resending()
    assert not any(resending.is_silent(now, is_waiting=False) for now in range(100, 200))


def test_a_stall_delays_everything() -> None:
    resending = Resending()
    resending.note_stalled(100.0)
    assert not resending.may_send(100.0 + STALL_S / 2)
    assert resending.may_send(100.0 + STALL_S)


def test_all_is_sent_again_at_most_once_in_an_interval_however_many_reopens_come() -> None:
    resending = Resending()
    sent = []
    for now in (100 + step * REOPEN_S / 10 for step in range(30)):
        resending.note_reopened(now)
        if resending.may_send(now):
            resending.note_sending(now)
            sent.append(now)
    assert len(sent) == 3
    assert min(after - before for before, after in pairwise(sent)) == pytest.approx(REOPEN_S)
