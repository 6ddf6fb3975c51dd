"""The end report; the launcher waits for it as long as the agent makes progress."""

from pathlib import Path
from typing import Any

import pytest
from tfprof.agent import launches
from tfprof.agent.launcher import report
from tfprof.agent.launcher.channel_holder import ChannelHolder
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


@pytest.mark.parametrize(
    ("ending", "quiet", "texts"),
    [
        (report.Ending(is_late=True), False, ["no space [store-full]", "no report: it took too long; `tfprof show`"]),
        (report.Ending(is_late=True), True, ["no space [store-full]"]),
        (report.Ending(has_failed=True), True, ["no space [store-full]", "no report: it could not be made, see "]),
        (report.Ending(), False, []),
        (report.Ending(interruption=2), False, []),
    ],
)
def test_without_a_report_the_launcher_prints_its_problem_and_why(
    ending: report.Ending,
    quiet: bool,
    texts: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(report, "run_report", lambda *_: ending)
    launch, folder = launches.Launch(7, 1, 0, str(tmp_path), "host", "user"), str(tmp_path)
    end_report = report.EndReport(folder, launch, ChannelHolder(folder, launch), quiet=quiet)
    end_report._run_report(STORE_FULL)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(texts)
    for line, text in zip(lines, texts, strict=True):
        assert line.startswith(f"tfprof: {text}")


@pytest.mark.parametrize(("stall", "shows_earlier"), [(None, True), (STORE_FULL, False)])
def test_the_jobs_that_an_earlier_agent_stored_on_another_host_are_named_unless_it_may_still_keep_them(
    stall: dict[str, str] | None, shows_earlier: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    launch, folder = launches.Launch(7, 1, 0, "tcp://head:7199", "host", "user"), str(tmp_path)
    holder = ChannelHolder(folder, launch)
    holder.stored_uids = {"aa", "bb"}
    end_report = report.EndReport(folder, launch, holder)
    job = {"uid": "aa", "state": "exited", "acked": 1, "records": 1, "dropped_traces": 0, "dropped_spans": 0}
    end_report._result = result(1, stall)._replace(jobs=[job], complete=stall is None)
    end_report._tell_where(end_report._problem())
    text = capsys.readouterr().err
    assert text.count("ssh head tfprof show aa") == 1
    assert text.count("ssh head tfprof show bb") == shows_earlier
