"""The end report; the launcher waits for it as long as the agent makes progress."""

from typing import Any

import pytest
from tfprof.agent.launcher import report
from tfprof.agent.launches import Result

STORE_FULL = {"slug": "store-full", "text": "no space"}


def result(progress: int = 0, stall: dict[str, str] | None = None) -> Result:
    return Result(7, complete=False, progress=progress, jobs=[], refused=[], stall=stall)


@pytest.mark.parametrize(
    ("jobs", "refused", "text"),
    [
        ([{"pid": 1}], [], None),
        ([], [{"pid": 2, "slug": "too-short", "text": "it ended", "times": 1}], "it ended"),
        ([{"pid": 1}], [{"pid": 1, "slug": "undecodable", "text": "bad bytes", "times": 4}], None),
        (
            [{"pid": 1}],
            [{"pid": 2, "slug": "too-short", "text": "it ended", "times": 1}],
            "a process is not recorded: it ended",
        ),
        (
            [],
            [{"pid": pid, "slug": "too-short", "text": "it ended", "times": 600} for pid in (2, 3)],
            "1,200 processes are not recorded: it ended",
        ),
        (
            [{"pid": 1}],
            [{"pid": 2, "slug": "too-short", "text": "it ended", "times": 1}, {"slug": "bad-channel", "text": "bad"}],
            "2 processes are not recorded: it ended (other reasons: tfprof status)",
        ),
    ],
)
def test_the_report_counts_the_processes_without_a_job(
    jobs: list[dict[str, Any]], refused: list[dict[str, Any]], text: str | None
) -> None:
    warning = report._unrecorded_reason(Result(7, complete=True, progress=1, jobs=jobs, refused=refused))
    assert (warning and warning["text"]) == text


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (None, None, True),
        (None, result(), True),
        (None, result(stall=STORE_FULL), False),
        (None, result(5, STORE_FULL), True),
        (result(5), result(5, STORE_FULL), False),
        (result(5, STORE_FULL), result(5, {**STORE_FULL, "text": "still none"}), False),
        (result(5, STORE_FULL), result(6, STORE_FULL), True),
        (result(5, STORE_FULL), result(5), True),
    ],
)
def test_after_a_stall_only_stored_data_counts_as_progress(
    before: Result | None, now: Result | None, expected: bool
) -> None:
    assert report._has_progress(before, now) is expected
