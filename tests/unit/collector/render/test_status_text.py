"""The state of the daemons as text."""

from tfprof.collector.render.status_text import lines


def test_a_daemon_that_does_not_run_is_shown_as_started_when_needed() -> None:
    text = list(lines("/s", {"agent": {"alive": False}, "collector": {"alive": False, "decoder": "walker"}}))
    assert text[1:] == [
        "agent: not running (started when needed)",
        "collector: not running (started when needed; decoder: walker)",
    ]


def test_a_stall_is_shown_with_its_slug_and_unknown_values_are_left_out() -> None:
    status = {
        "alive": True,
        "pid": 5,
        "stalled": {"slug": "store-full", "text": "no space"},
        "stalls": 3,
        "last_error": None,
    }
    text = list(lines("/s", {"collector": status}))
    assert text[1] == "collector: running, pid 5"
    assert [line.split() for line in text[2:]] == [["stalls", "3"], ["stalled", "by", "no", "space", "[store-full]"]]


def test_the_state_of_an_agent_contains_jobs_losses_and_refusals() -> None:
    jobs = {"aa": {"dropped_records": 2, "dropped_spans": 3}, "bb": {"dropped_records": 1}}
    refusals = [{"slug": "x", "text": "old"}, {"slug": "unknown-version", "text": "version 9"}]
    status = {"alive": True, "pid": 5, "jobs": jobs, "refused": 7, "refusals": refusals, "stall": None, "lag_bytes": 0}
    status["samples_dropped"] = 321
    text = [" ".join(line.split()) for line in lines("/s", {"agent": status})]
    assert text[2:5] == ["open jobs 2", "lag 0 B", "lost 6"]
    assert text[5:] == ["lost samples 321", "refusals 7", "last refusal version 9 [unknown-version]"]


def test_lines_are_wrapped_on_a_narrow_terminal() -> None:
    stalled = {"slug": "store-full", "text": "no space is left where the store lies, so that nothing is stored now"}
    statuses = {
        "agent": {"alive": True, "pid": 5, "stalled": stalled},
        "collector": {"alive": False, "decoder": "walker"},
    }
    text = list(lines("/a/store/somewhere", statuses, 60))
    assert max(map(len, text)) <= 60
    assert " ".join(" ".join(text).split()).endswith(
        "stalled by no space is left where the store lies, so that nothing is stored now [store-full]"
        " collector: not running (started when needed; decoder: walker)"
    )


def test_what_waits_on_the_disk_is_shown_while_the_agent_runs_and_after() -> None:
    full = {"slug": "spool-full", "text": "it has reached its limit"}
    status = {"alive": True, "pid": 5, "spool_bytes": 2_000_000, "spool_failure": full}
    text = [" ".join(line.split()) for line in lines("/s", {"agent": status})]
    assert text[2:] == ["on disk 2.0 MB", "disk refuses it has reached its limit [spool-full]"]
    assert list(lines("/s", {"agent": {"alive": False, "spool_bytes": 2_000_000}}))[2:] == [
        "  2.0 MB on disk for the collector: `tfprof start` sends it"
    ]
    assert len(list(lines("/s", {"agent": {"alive": False, "spool_bytes": 0}}))) == 2
