"""Progress in the agent's results, for which a launcher keeps waiting."""

import pytest
from tfprof.agent.launcher import report
from tfprof.agent.launches import Result

FULL = {"slug": "store-full", "text": "no space"}


def result(progress: int = 0, stall: dict[str, str] | None = None) -> Result:
    return Result(7, complete=False, progress=progress, jobs=[], refused=[], stall=stall)


@pytest.mark.parametrize(
    ("before", "now", "moves"),
    [
        (None, None, True),
        (None, result(), True),
        (None, result(stall=FULL), False),
        (None, result(5, FULL), True),
        (result(5), result(5, FULL), False),
        (result(5, FULL), result(5, {**FULL, "text": "still none"}), False),
        (result(5, FULL), result(6, FULL), True),
        (result(5, FULL), result(5), True),
    ],
)
def test_after_a_stall_only_stored_data_counts_as_progress(
    before: Result | None, now: Result | None, moves: bool
) -> None:
    assert report._has_progress(before, now) is moves
