"""The page and the report in a real browser."""

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes import page_store
from fakes.command import Run, caller
from fakes.page_server import PageServer, page_server
from fakes.page_store import FORMULA, JOBS, SCRIPT
from integration.page_browser import WINDOWS, Page, browser_page
from tfprof.collector import numbers
from tfprof.commands.new_outputs import is_installed
from tfprof.formats.exports import FORMATS, KIND, STEPS

UID, OTHER = (f"{uid:016x}" for uid in JOBS)
#: Page -> its last heading.
PAGES = {
    "/": "Jobs",
    f"/job/{UID}": "Alerts, events and losses",
    f"/job/{UID}/step/1?kind=run": "Slices",
    f"/diff/{UID}/{OTHER}": "Ops",
}
#: Theme -> what axe checks; the themes have the same elements, but other colors.
AXE_OPTIONS = {"light": {}, "dark": {"runOnly": ["color-contrast"]}}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return page_store.write(tmp_path_factory.mktemp("p") / "store")


@pytest.fixture(scope="module")
def server(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    runtime = tmp_path_factory.mktemp("q")
    runtime.chmod(0o700)
    with page_server(store, runtime, "--port", "0") as running:
        yield running


@pytest.fixture
def run(store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("TFPROF_STORE", str(store))
    return caller(capsys)


def document(run: Run, *words: str) -> Any:
    return json.loads(run(*words, "--json")[1])


def opened(page: Page, server: PageServer) -> str:
    """Open the printed link; return the address of the server."""
    page.open(server.link, "Jobs")
    assert "token" not in page.page.url
    return page.page.url.rstrip("/")


@pytest.mark.parametrize(("width", "theme"), WINDOWS)
def test_every_page_fits_shows_foreign_text_as_text_and_asks_nobody_else(
    server: PageServer, width: int, theme: str
) -> None:
    with browser_page(width, theme, f"127.0.0.1:{server.port}") as page:
        address = opened(page, server)
        for path, heading in PAGES.items():
            page.open(address + path, heading)
            assert page.overflow() <= 0, path
            assert page.page.title() != "x"
            assert page.page.locator("img").count() == 0
            assert "<img src=x onerror=" in page.text(), path
        assert page.problems == []


def test_no_page_has_a_barrier(server: PageServer) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    for theme in AXE_OPTIONS:
        with browser_page(1280, theme, f"127.0.0.1:{server.port}") as page:
            address = opened(page, server)
            for path, heading in PAGES.items():
                page.open(address + path, heading)
                found = axe.run(page.page, options=AXE_OPTIONS[theme]).response["violations"]
                assert [(each["id"], each["nodes"][0]["html"]) for each in found] == [], (theme, path)


def rows(page: Page, caption: str) -> list[list[str]]:
    """Return the cells of the table whose caption begins so."""
    table = page.page.locator("table").filter(has=page.page.locator("caption", has_text=caption)).first
    return [row.locator("td").all_inner_texts() for row in table.locator("tbody tr").all()]


def test_the_menu_of_downloads_fits_a_narrow_window(server: PageServer) -> None:
    with browser_page(400, "light", f"127.0.0.1:{server.port}") as page:
        page.open(opened(page, server) + f"/job/{UID}", "Alerts, events and losses")
        page.page.locator(".menu > summary").first.click()
        box = page.page.locator(".menu > div").first.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 400


def test_a_download_comes_as_a_file_and_an_error_as_its_text(server: PageServer) -> None:
    with browser_page(host=f"127.0.0.1:{server.port}") as page:
        address = opened(page, server)
        page.open(address + f"/job/{UID}", "Alerts, events and losses")
        page.page.locator(".menu > summary").first.click()
        with page.page.expect_download() as coming:
            page.page.locator(".menu a", has_text="csv").click()
        assert coming.value.suggested_filename.endswith(".csv")
        page.page.goto(address + f"/job/{UID}/step/999?kind=run")
        page.page.locator(".menu > summary").click()
        offered = page.page.locator(".menu a span:first-child").all_inner_texts()
        assert offered == [
            row.name for row in FORMATS.values() if {STEPS, KIND} <= {*row.options} and is_installed(row)
        ]
        page.page.locator(".menu a", has_text="csv").click()
        page.page.wait_for_url("**/export/csv?*")
        assert "step 999" in json.loads(page.text())["error"]


def test_traced_steps_lead_to_their_timelines(server: PageServer) -> None:
    with browser_page(host=f"127.0.0.1:{server.port}") as page:
        page.open(opened(page, server) + f"/job/{UID}", "Alerts, events and losses")
        page.page.get_by_text("Timelines of traced steps").get_by_text("2", exact=True).click()
        page.page.get_by_role("heading", name="run step 2").wait_for()
        page.page.get_by_text("traced before").click()
        page.page.get_by_role("heading", name="run step 1").wait_for()
        curves = {"step_curves": [{"kind": "run", "traced_steps": [[1, 3], [10, 5000]]}]}
        module = "import('/static/pages/step/page.js')"
        nearest = "([curves, steps]) => " + module + ".then((m) => steps.map((n) => m.neighbours(curves, 'run', n)))"
        found = page.page.evaluate(nearest, [curves, [1, 3, 7, 10, 5000]])
        assert found == [[None, 2], [2, 10], [3, 10], [3, 11], [4999, None]]
        assert page.problems == []


def test_times_of_a_run_are_rounded_before_they_are_split(server: PageServer) -> None:
    with browser_page(host=f"127.0.0.1:{server.port}") as page:
        opened(page, server)
        module = "import('/static/pictures/curve.js')"
        texts = page.page.evaluate(
            module + ".then((m) => [[119.6], [3599.7], [119.996, 0.01]].map((a) => m.timeOfRun(...a)))"
        )
        assert texts == ["2m 00s", "1h 00m", "2m 00.00s"]


def test_arrows_of_a_timeline_lead_to_the_slice_that_begins_there(server: PageServer) -> None:
    slices = [{"ph": "X", "pid": 1, "tid": 1, "ts": at, "dur": 10, "name": f"from {at}"} for at in (0, 10, 20)]
    ends = [{"ph": kind, "pid": 1, "tid": 1, "ts": at, "id": 7} for kind, at in (("s", 0), ("f", 20))]
    lonely = {"ph": "s", "pid": 1, "tid": 1, "ts": 10, "id": 8}
    with browser_page(host=f"127.0.0.1:{server.port}") as page:
        opened(page, server)
        flows = page.page.evaluate(
            "(file) => import('/static/lib/trace.js').then((m) => m.traceOf(file).flows)",
            {"traceEvents": [*slices, *ends, lonely]},
        )
        assert [(flow["from"]["name"], flow["to"]["name"]) for flow in flows] == [("from 0", "from 20")]


def test_the_nodes_and_operations_of_an_op_are_those_of_its_device(server: PageServer) -> None:
    ops = [{"op": op, "device": device} for op, device in (("MatMul", "CPU:0"), ("MatMul", "CPU:1"), ("Add", "CPU:0"))]
    nodes = [
        {"name": name, "devices": devices, "float_ops": float_ops}
        for name, devices, float_ops in (("large", ["CPU:1"], 400), ("small", ["CPU:0"], 2), ("idle", [], 7))
    ]
    types = [["MatMul", {"nodes": nodes, "float_ops": 409}], ["Add", {"nodes": [], "float_ops": 5}]]
    with browser_page(host=f"127.0.0.1:{server.port}") as page:
        opened(page, server)
        rows = page.page.evaluate(
            "([ops, types]) => import('/static/pages/job/ops.js').then((m) => m.rowsOf(ops, new Map(types)))",
            [ops, types],
        )
        shown = [([node["name"] for node in row["nodes"]], row["float_ops"]) for row in rows]
        assert shown == [(["small"], 2), (["large"], 400), ([], 5)]


def test_a_section_says_why_its_document_cannot_be_read(server: PageServer) -> None:
    sections = {"advise": "advice", "breakdown": "parts", "compiled": "programs", "scope": "scopes", "code": "lines"}
    sections |= {"source": "source", "memory": "memory", "curves": "host", "spans": "spans"}
    sections |= {"steps": "events", "alerts": "events"}

    def refuse(route: Any) -> None:
        name = route.request.url.rpartition("/")[2]
        route.fulfill(status=400, json={"error": f"no {name}!"})

    with browser_page(host=f"127.0.0.1:{server.port}") as page:
        address = opened(page, server)
        for name in sections:
            page.page.route(f"**/api/job/{UID}/{name}", refuse)
        page.open(f"{address}/job/{UID}", "Alerts, events and losses")
        for name, section in sections.items():
            page.page.locator(f"#{section}").get_by_text(f"no {name}!").wait_for()
        assert "No alerts." not in page.text()


def test_a_running_job_is_read_again_after_a_minute(server: PageServer, run: Run) -> None:
    top, advice = document(run, "top", "--all"), document(run, "advise", UID)
    (job,) = [job for job in top["jobs"] if job["uid"] == UID]
    job.update(state="running", phase="running", traced=12_345, steps=2_345_678, duration_ns=59e9)

    def events(route: Any) -> None:
        route.fulfill(content_type="text/event-stream", body=f"retry: 100\nevent: top\ndata: {json.dumps(top)}\n\n")

    with browser_page(host=f"127.0.0.1:{server.port}") as page:
        address = opened(page, server)
        page.page.route("**/api/live", events)
        page.page.route("**/advise", lambda route: route.fulfill(json=advice))  # at once: soon asked for again
        page.open(f"{address}/job/{UID}", "Alerts, events and losses")
        with page.page.expect_request(f"**/api/job/{UID}/advise"):
            job["duration_ns"] = 61e9
        figures = " ".join(page.page.locator(".figures dd").all_inner_texts()).split()
        assert {"12,345", "2,345,678"} <= {*figures}


def test_a_long_table_shows_a_thousand_rows_and_copies_all(server: PageServer) -> None:
    table = """([name, count]) => Promise.all([import('/static/vendor/preact-htm.js'), import('/static/lib/table.js')])
        .then(([{ html, render }, { Table }]) => {
            const columns = [{ key: name, title: name, value: (row) => row.at }];
            const rows = Array.from({ length: count }, (_, at) => ({ at }));
            document.body.textContent = "";
            render(html`<${Table} columns=${columns} rows=${rows} caption="many" />`, document.body);
        })"""
    with browser_page(host=f"127.0.0.1:{server.port}") as page:
        opened(page, server)
        page.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.page.evaluate(table, ["at", 1500])
        page.page.get_by_role("button", name="first 1,000 rows").click()
        page.page.get_by_text("The first 1,000 of 1,500 rows are shown").wait_for()
        assert page.page.locator("tbody tr").count() == 1000
        page.page.get_by_role("button", name="Copy as CSV").click()
        page.page.get_by_text("copied").wait_for()
        assert len(page.page.evaluate("navigator.clipboard.readText()").split()) == 1501


def test_jobs_without_a_step_have_no_step_time_as_csv_and_the_page_is_as_it_was_left(
    server: PageServer, run: Run
) -> None:
    top = document(run, "top", "--all")
    for job in top["jobs"]:
        job["now"].update(idle_ns=7e9, step_ns=1e6, change=1.0)
    body = f"event: top\ndata: {json.dumps(top)}\n\n"
    with browser_page(host=f"127.0.0.1:{server.port}") as page:
        address = opened(page, server)
        page.page.route("**/api/live", lambda route: route.fulfill(content_type="text/event-stream", body=body))
        page.page.goto(address)
        page.page.get_by_text("no step").first.wait_for()
        page.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.page.get_by_role("button", name="Copy as CSV").click()
        page.page.get_by_text("copied").wait_for()
        rows = list(csv.DictReader(io.StringIO(page.page.evaluate("navigator.clipboard.readText()"))))
        assert [(row["step_ns"], row["change"]) for row in rows] == [("", "")] * len(JOBS)
        page.page.get_by_role("searchbox").fill(FORMULA[:5])
        page.page.get_by_role("button", name="ended").click()
        page.page.get_by_role("button", name="steps", exact=True).click()
        page.page.get_by_role("checkbox").first.check()
        page.page.wait_for_function("history.state.jobs.chosen.length")
        page.page.locator("tbody a").first.click()
        page.page.wait_for_url("**/job/*")
        page.page.go_back()
        assert page.page.get_by_role("searchbox").input_value() == FORMULA[:5]
        page.page.locator("[aria-pressed=true]", has_text="ended").wait_for()
        page.page.locator("th[aria-sort=descending]", has_text="steps").wait_for()
        page.page.get_by_role("checkbox", checked=True).wait_for()


def test_a_comparison_with_an_untraced_job_has_a_note_and_no_verdict(server: PageServer, run: Run) -> None:
    diff = document(run, "diff", UID, OTHER)
    for op in diff["ops"]:
        op.update(after_ns=None, ratio=None, own_ratio=None, visible=None, significant=None)
    with browser_page(host=f"127.0.0.1:{server.port}") as page:
        address = opened(page, server)
        page.page.route("**/api/diff/**", lambda route: route.fulfill(json=diff))
        page.open(f"{address}/diff/{UID}/{OTHER}", "Ops")
        page.page.get_by_text("No op is compared").wait_for()
        page.page.get_by_text("gone").first.wait_for()
        assert page.page.locator(".good, .bad").count() == 0


def test_a_drag_moves_a_timeline_and_the_window_but_not_by_the_right_button(server: PageServer) -> None:
    with browser_page(host=f"127.0.0.1:{server.port}") as page:
        page.page.set_viewport_size({"width": 1280, "height": 300})
        page.open(opened(page, server) + f"/job/{UID}/step/1?kind=run", "Slices")
        canvas = page.page.locator("canvas")
        canvas.scroll_into_view_if_needed()
        box, mouse = canvas.bounding_box(), page.page.mouse

        def drag(button: str) -> tuple[str, int]:
            mouse.move(600, box["y"] + 60)
            mouse.down(button=button)
            mouse.move(700, box["y"] + 30)
            mouse.move(700, box["y"] + 20)
            mouse.up(button=button)
            page.page.wait_for_timeout(100)
            return canvas.evaluate("(picture) => picture.toDataURL()"), page.page.evaluate("scrollY")

        before = canvas.evaluate("(picture) => picture.toDataURL()"), page.page.evaluate("scrollY")
        assert drag("right") == before
        picture, top = drag("left")
        assert (picture != before[0], top - before[1]) == (True, 40)


def check_figures(page: Page, run: Run) -> None:
    """Check figures of a job's page against the documents of the commands."""
    show, steps, alerts = document(run, "show", UID), document(run, "steps", UID), document(run, "alerts", UID)
    spread = show["step_times"][0]["spread"]
    for section in ("#advice", "#steps table", "#ops table", "#programs", "#memory"):  # each from a request of its own
        page.page.locator(section).first.wait_for()
    text = page.text()
    assert numbers.count(show["steps"]) in text
    assert f"p99 {numbers.duration(spread['p99_ns'])}" in text
    assert f"cost {numbers.total_cost(show['cost'], show['steps_ns'])}" in text
    (group,) = [each for each in steps["kinds"] if each["kind"] == "run"]
    (cells,) = [row for row in rows(page, "untraced steps") if row[0].startswith("run")]
    assert cells[1:7] == [
        numbers.count(group["count"]),
        *(numbers.duration(group["untraced"][name]) for name in ("p50_ns", "p90_ns", "p99_ns", "min_ns", "max_ns")),
    ]
    shown_ops = {(row[1], row[2]): row for row in rows(page, "op types")}
    assert len(shown_ops) == len(show["top_ops"]["ops"])
    for op in show["top_ops"]["ops"]:
        row = shown_ops[op["op"], op["device"]]
        assert row[3:5] == [numbers.duration(op["ns"]), numbers.percent(op["share"])]
        assert row[6:8] == [numbers.duration(op["least_ns"]), numbers.duration(op["most_ns"])]
        assert row[9] == numbers.size(op["bytes"])
    (memory,) = document(run, "memory", UID)["allocators"]
    held = [(row[0], row[3]) for row in rows(page, "who holds it on CPU:0 (cpu)")]
    assert held == [(holder["node"], numbers.size(holder["bytes"])) for holder in memory["holders"]]
    (program,) = document(run, "compiled", UID)["programs"]
    (shown_program,) = rows(page, "programs")
    assert shown_program[1:4] == [program["name"], numbers.duration(program["ns"]), numbers.percent(program["share"])]
    page.page.locator("#programs button[aria-expanded]").click()
    nodes = page.page.locator("#programs table table td:first-child").all_inner_texts()
    assert nodes == [op["node"] for op in program["ops"]]
    assert [row[2] for row in rows(page, "alerts")] == [alert["text"] for alert in alerts["alerts"]]
    for report in show["advice"]:
        assert report["text"].rstrip(".").lower() in text.lower()


def test_the_figures_of_a_job_are_those_of_the_commands(server: PageServer, run: Run) -> None:
    with browser_page(1280, "light", f"127.0.0.1:{server.port}") as page:
        page.open(f"{opened(page, server)}/job/{UID}", "Alerts, events and losses")
        check_figures(page, run)


def test_the_figures_of_two_jobs_are_those_of_diff(server: PageServer, run: Run) -> None:
    diff = document(run, "diff", UID, OTHER)
    with browser_page(1280, "light", f"127.0.0.1:{server.port}") as page:
        page.open(f"{opened(page, server)}/diff/{UID}/{OTHER}", "Ops")
        shown = rows(page, "op types by change")
        assert [row[:4] for row in shown] == [
            [op["op"], op["device"], numbers.duration(op["before_ns"]), numbers.duration(op["after_ns"])]
            for op in diff["ops"]
        ]
        assert numbers.duration(diff["step"]["after_ns"]) in page.text()


def test_the_table_of_jobs_is_that_of_the_command(server: PageServer, run: Run) -> None:
    jobs = document(run, "jobs")["jobs"]
    with browser_page(1280, "light", f"127.0.0.1:{server.port}") as page:
        opened(page, server)
        page.page.get_by_text(FORMULA).first.wait_for()
        page.page.wait_for_timeout(500)
        shown = {row[1].splitlines()[1].split(" ")[0]: row for row in rows(page, "jobs")}
        for job in jobs:
            row = shown[job["id"]]
            assert job["name"] in row[1]
            assert row[3] == numbers.duration(job["step_ns"])
            assert row[6] == numbers.count(job["steps"])
            assert row[7:9] == [numbers.cores(job["cpu_cores"]), numbers.size(job["memory_bytes"])]
        page.page.get_by_role("searchbox").fill(FORMULA[:10])
        assert page.page.locator("tbody tr").count() == 2  # a name, and a tag of the other job
        page.page.get_by_role("searchbox").fill("no such job")
        assert page.page.locator("tbody tr").count() == 0


def test_everything_can_be_reached_and_used_by_keyboard(server: PageServer) -> None:
    with browser_page(1280, "light", f"127.0.0.1:{server.port}") as page:
        address = opened(page, server)
        page.open(f"{address}/job/{UID}/step/1?kind=run", "Slices")
        page.page.locator("canvas").focus()
        page.page.keyboard.press("ArrowRight")
        first = page.page.locator(".readout b").inner_text()
        page.page.keyboard.press("ArrowDown")
        page.page.keyboard.press("f")
        assert first
        assert page.page.locator(".readout b").inner_text()
        page.open(f"{address}/job/{UID}", "Alerts, events and losses")
        for section in ("#source", "#memory", "#spans"):
            page.page.locator(section).wait_for()
        reached = set()
        for _ in range(150):
            page.page.keyboard.press("Tab")
            reached.add(
                page.page.evaluate("document.activeElement.closest('section')?.id ?? document.activeElement.tagName")
            )
        assert {"steps", "ops", "scopes", "source", "memory", "host", "spans"} <= reached


def test_a_report_shows_the_same_from_disk_without_a_request(run: Run, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    assert run("report", UID, "-o", str(report))[0] == 0
    for width, theme in WINDOWS:
        with browser_page(width, theme, offline=True) as page:
            page.open(report.as_uri(), "Alerts, events and losses")
            assert page.requests == [report.as_uri()]
            assert page.problems == []
            assert page.overflow() <= 0
            assert page.page.title() != "x"
            assert page.page.locator("img").count() == 0
            assert "It holds the 500 most expensive ops" in page.text()
            if width > 1000:
                check_figures(page, run)


def test_a_report_of_two_jobs_shows_their_difference(run: Run, tmp_path: Path) -> None:
    report = tmp_path / "diff.html"
    assert run("report", UID, OTHER, "-o", str(report))[0] == 0
    with browser_page(offline=True) as page:
        page.open(report.as_uri(), "Ops")
        assert page.problems == []
        assert len(page.requests) == 1
        assert len(rows(page, "op types by change")) == len(document(run, "diff", UID, OTHER)["ops"])


def test_a_report_prints_on_few_pages(run: Run, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    run("report", UID, "-o", str(report))
    with browser_page() as page:
        page.open(report.as_uri(), "Alerts, events and losses")
        pdf = page.page.pdf(format="A4")
        assert 1 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 6


def test_a_page_says_that_the_server_has_ended(store: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    with page_server(store, tmp_path, "--port", "0") as running, browser_page(host=f"127.0.0.1:{running.port}") as page:
        opened(page, running)
        running.process.terminate()
        page.page.get_by_role("alert").get_by_text("The connection to tfprof web is lost").wait_for()


def test_a_page_says_that_the_store_is_gone_and_recovers(tmp_path: Path) -> None:
    store = page_store.write(tmp_path / "store")
    runtime = tmp_path / "r"
    runtime.mkdir(mode=0o700)
    with page_server(store, runtime, "--port", "0") as running, browser_page(host=f"127.0.0.1:{running.port}") as page:
        opened(page, running)
        store.rename(tmp_path / "moved")
        page.page.get_by_role("alert").get_by_text("The store cannot be read").wait_for()
        (tmp_path / "moved").rename(store)
        page.page.get_by_role("alert").wait_for(state="detached")
        assert SCRIPT in page.text()
