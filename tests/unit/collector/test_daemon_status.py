"""Whether the daemons of a store fail, which is the exit status of `tfprof status`."""

import pytest
from tfprof.collector.daemon_status import DaemonStatus

REST = {"alive": False}
RUNS = {"alive": True, "stall": None, "stalled": None, "spool_bytes": 9, "spool_failure": None, "copy": None}
FULL = {"slug": "store-full", "text": "No space left on device"}


@pytest.mark.parametrize("healthy", [REST, RUNS, {**REST, "stalled": FULL}, {**RUNS, "copy": {"error": None}}])
def test_daemons_that_store_or_rest_do_not_fail(healthy: dict[str, object]) -> None:
    assert not DaemonStatus("", "", healthy, healthy).is_failing


@pytest.mark.parametrize(
    "failing",
    [
        {**REST, "failed": True},
        {**REST, "spool_bytes": 9},
        *({**RUNS, name: FULL} for name in ("stall", "stalled", "spool_failure")),
        {**RUNS, "copy": {"error": FULL}},
    ],
)
def test_a_reason_why_data_is_not_stored_is_a_failure(failing: dict[str, object]) -> None:
    assert DaemonStatus("", "", failing, RUNS).is_failing
    assert DaemonStatus("", "", REST, failing).is_failing
