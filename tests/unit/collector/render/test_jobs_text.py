"""The list of jobs as text."""

from fakes.made_store import IDENTITY, SECOND, START_NS
from tfprof.collector.query.listing import ListedJob
from tfprof.collector.render.jobs_text import lines, lost_part, start_text, state
from tfprof.collector.store.catalog import JobInfo
from tfprof.collector.summaries.jobs import UNKNOWN_USAGE, JobRow, job_row


def row(name: str = "train.py", job_state: str = "exited", **end: int) -> JobRow:
    """Return the row of a job that ended after a minute."""
    info = JobInfo(0x7F3A << 48, job_state, {**IDENTITY, "name": name}, {}, {"t_ns": START_NS + 60 * SECOND, **end})
    return job_row(info, "7f3a", START_NS)


def listed(job_row: JobRow, *tags: str) -> ListedJob:
    """Return a job of a list whose use is unknown."""
    return ListedJob(None, job_row, UNKNOWN_USAGE, tags, None)


def test_a_narrow_terminal_drops_columns_before_it_shortens_names() -> None:
    names = ("a_rather_long_name_of_a_program.py", "a_rather_long_name_of_a_problem.py")
    rows = [listed(row(name)) for name in names]
    wide_lines = lines(rows, START_NS, None)
    assert wide_lines[0].split()[-2:] == ["FOR", "STARTED"]
    narrower_lines = lines(rows, START_NS, len(wide_lines[0]) - 1)
    assert narrower_lines[0].split()[-1] == "FOR"
    for width in (40, 60, 80):
        titles, *texts = lines(rows, START_NS, width)
        assert max(map(len, (titles, *texts))) <= width
        assert titles.split()[:2] + titles.split()[-1:] == ["ID", "NAME", "STATE"]
        assert texts[0] != texts[1]
    assert "a_rather_long_name_of_a_program.py" in lines(rows, START_NS, 60)[1]


def test_a_state_contains_exit_status_or_signal() -> None:
    assert state(row(job_state="killed", signal=9)) == "killed SIGKILL"
    assert state(row(job_state="killed", signal=99)) == "killed 99"
    assert state(row(status=3)) == "exited 3"
    assert state(row(status=0)) == "exited"


def test_an_unknown_loss_is_not_shown_as_none() -> None:
    titles, text = lines([listed(row(job_state="lost"))], START_NS, None)
    end = titles.index("LOST") + len("LOST")
    assert text[:end].endswith(" unknown")
    assert lost_part(row(job_state="lost")) == "an unknown number lost"
    assert lost_part(row()) == "0 lost"


def test_tags_have_a_column_if_any_job_has_tags() -> None:
    plain, tagged = listed(row("a.py")), listed(row("b.py"), "baseline", "lr 0.1")
    assert "TAGS" not in lines([plain], START_NS, None)[0]
    titles, first, second = lines([plain, tagged], START_NS, None)
    assert titles.endswith("TAGS")
    assert second.endswith("baseline, lr 0.1")
    assert len(first) < len(second)


def test_a_job_of_another_day_has_a_date() -> None:
    assert len(start_text(row(), START_NS + SECOND)) == len("12:34:56")
    assert len(start_text(row(), START_NS + 2 * 24 * 3600 * SECOND)) == len("2023-11-14 12:34")
