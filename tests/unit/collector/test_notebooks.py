"""What a notebook shows of stores, jobs and views: the figures of the screens, as valid HTML.

Tests collector/render/html.py.
"""

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from fakes import hostile_store, small_store
from fakes.command import Run, caller
from fakes.many_executions import write_many_executions
from tfprof.collector import open_store
from tfprof.collector.errors import UsageError


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command on the store in the test's folder."""
    monkeypatch.setenv("TFPROF_STORE", str(tmp_path / "store"))
    return caller(capsys)


class Cells(HTMLParser):
    """Collects the cells of each row; elements must be closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.open: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] in (["td"], ["th"]):
            self.rows[-1].append(data)


def test_a_store_is_the_list_of_its_jobs_newest_first(run: Run, tmp_path: Path) -> None:
    small_store.write(tmp_path / "store")
    titles, *rows = Cells(open_store(tmp_path / "store")._repr_html_()).rows
    assert [dict(zip(titles, row, strict=False))["id"] for row in rows] == ["cc10", "bb10", "aa10"]
    screen = run("jobs")[1]
    for row in rows:
        cells = {title: cell for title, cell in zip(titles, row, strict=False) if cell and title != "for"}  # it ages
        assert all(re.search(rf"(?<!\S){re.escape(cell)}(?!\S)", screen) for cell in cells.values())


def test_a_job_is_its_ops_with_the_figures_of_the_op_view(run: Run, tmp_path: Path) -> None:
    write_many_executions(tmp_path / "store")
    _, *rows = Cells(open_store(tmp_path / "store").job("last")._repr_html_()).rows
    screen = run("op", "last")[1]
    assert [row[0] for row in rows] == ["MatMul", "Add"]
    for op, _device, time, share, calls, *_ in rows:
        assert re.search(rf"{op} +{time} +{share} .* {calls}$", screen, re.MULTILINE)


def test_a_view_is_the_screen_of_its_command(run: Run, tmp_path: Path) -> None:
    small_store.write(tmp_path / "store")
    job = open_store(tmp_path / "store").job("aa10")
    for name in ("op", "scope", "graph"):
        screen, words = run(name, "aa10", "-select", "time,memory", "-max_depth", "2")[1], {}
        view = job.view(name, select=["time", "memory"], max_depth=2, **words)
        assert str(view).startswith(screen.rstrip("\n"))
        assert repr(view) == str(view)
        assert unescape(view._repr_html_()).partition(">")[2] == f"{view}</pre>"


def test_a_wrong_view_option_or_value_is_refused(tmp_path: Path) -> None:
    small_store.write(tmp_path / "store")
    job = open_store(tmp_path / "store").job("aa10")
    with pytest.raises(UsageError, match="no view is called 'ops'"):
        job.view("ops")
    with pytest.raises(UsageError, match="has no option 'depth'"):
        job.view("op", depth=3)
    with pytest.raises(UsageError, match="has no option 'output'"):
        job.view("op", output="file:outfile=x")
    with pytest.raises(UsageError, match="order_by"):
        job.view("op", order_by="tme")


def test_hostile_texts_make_valid_html(tmp_path: Path) -> None:
    hostile_store.write(tmp_path / "store")
    store = open_store(tmp_path / "store")
    for html in (
        store._repr_html_(),
        store.select()._repr_html_(),
        store.job(f"{hostile_store.JOB:x}").view()._repr_html_(),
    ):
        Cells(html)
        assert not re.search("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", html)
        assert "<script" not in html
