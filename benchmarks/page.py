"""The page with fifty live jobs: age of its figures, memory of server and tabs, processor time.

usage: benchmarks/page.py [--jobs 50] [--tabs 20] [--seconds 60]
The jobs are those of many_jobs.py, with small steps. `tfprof web` is measured without a viewer,
then with one tab, then with `--tabs`, each for `--seconds`; 600 s show whether the memory is flat.
The figures are the numbers of steps in the table of all jobs: their age follows from the numbers
that the jobs have reached. Memory of a tab is its JavaScript heap after a collection.
Limits: figures at most 2 s old; a viewer adds 2 % of a core like the reference core of _core.py;
server 200 MB; growth from the second tenth of the time to the last one at most 10 %.
"""

import argparse
import statistics
import time
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest
from _core import Core, cpu_s
from _jobs import private_folder
from _limits import report
from fakes.model_steps import model_steps
from fakes.page_server import page_server
from integration.trace_viewer import chromium
from many_jobs import SPANS_A_SECOND, running_jobs

AGE_S, VIEWER_PERCENT, SERVER_MB, GROWTH = 2.0, 2.0, 200, 1.1
#: Interval between the looks at a tab, and at the memory (seconds).
LOOK_S = 1.0
MEMORY_S = 10.0
#: Returns the time (ms) and [job's number, its steps] of each row.
ROWS = """() => [Date.now(), [...document.querySelectorAll("tbody tr")].map((row) => [
  Number(row.querySelector("a").textContent.split("-")[1]),
  Number(row.cells[COLUMN].textContent.replace(/\\D/g, "")),
])]"""


class Usage(NamedTuple):
    """What was measured while some tabs were open.

    ``ages``: the oldest figure of each look (s); ``server`` and ``tab``: memory in the course of
    time (MB); ``percent``: the server's share of a core.
    """

    ages: list[float]
    server: list[float]
    tab: list[float]
    percent: float


class Tab:
    """A tab with the table of all jobs."""

    def __init__(self, context: Any, link: str) -> None:
        self.page = context.new_page()
        self.page.goto(link)
        self.page.locator("tbody tr").first.wait_for(timeout=60_000)
        titles = self.page.locator("thead th").all_inner_texts()
        self._rows = ROWS.replace("COLUMN", str([title.strip().lower() for title in titles].index("steps")))
        self._session = context.new_cdp_session(self.page)
        self._session.send("Performance.enable")

    def age_s(self, start_s: float) -> float:
        """Return the age of the oldest figure; ``start_s``: when the jobs began."""
        now_ms, shown = self.page.evaluate(self._rows)
        return max(now_ms / 1e3 - start_s - number % 50 / 50 - steps / SPANS_A_SECOND for number, steps in shown)

    def heap_mb(self) -> float:
        """Return the size of the JavaScript heap after a collection."""
        self._session.send("HeapProfiler.collectGarbage")
        metrics = self._session.send("Performance.getMetrics")["metrics"]
        return float(next(metric["value"] for metric in metrics if metric["name"] == "JSHeapUsedSize")) / 1e6


def watch(tabs: list[Tab], server: psutil.Process, start_s: float, seconds: float, core: Core) -> Usage:
    """Look at ``tabs`` in turns for ``seconds``."""
    ages: list[float] = []
    server_mb: list[float] = []
    tab_mb: list[float] = []
    begin_s, before_s, memory_s = time.monotonic(), cpu_s(server), 0.0
    while time.monotonic() < begin_s + seconds:
        time.sleep(LOOK_S)
        if tabs:
            ages.append(tabs[len(ages) % len(tabs)].age_s(start_s))
        if time.monotonic() > memory_s + MEMORY_S:
            memory_s = time.monotonic()
            server_mb.append(server.memory_info().rss / 1e6)
            tab_mb += [tabs[0].heap_mb()] if tabs else []
        core.sample()
    return Usage(ages, server_mb, tab_mb, 100 * (cpu_s(server) - before_s) / (time.monotonic() - begin_s))


def growth(values: list[float]) -> float:
    """Return the mean of the last tenth of ``values`` divided by that of the second tenth."""
    tenth = max(1, len(values) // 10)
    return statistics.mean(values[-tenth:]) / statistics.mean(values[tenth : 2 * tenth] or values[:1])


def figures(tabs: int, usage: Usage, idle_percent: float, core: Core) -> list[tuple[str, float, str, float]]:
    """Return what was measured with ``tabs``, with the limits."""
    ages = sorted(usage.ages)
    added = (usage.percent - idle_percent) * core.speed
    rows = (
        ("oldest figure, median", statistics.median(ages), "s", AGE_S),
        ("oldest figure, in 95 %", ages[len(ages) * 95 // 100], "s", AGE_S),
        ("oldest figure, in 99 %", ages[len(ages) * 99 // 100], "s", AGE_S),
        ("oldest figure, at most", ages[-1], "s", AGE_S),
        ("server, of the reference core", added, "%", VIEWER_PERCENT),
        ("server, memory at most", max(usage.server), "MB", SERVER_MB),
        ("server, growth", growth(usage.server), "times", GROWTH),
        (f"tab, {usage.tab[0]:.1f} MB, growth", growth(usage.tab), "times", GROWTH),
    )
    return [(f"{tabs:2} tabs  {title}", *row) for title, *row in rows]


def measure(folder: Path, jobs: int, tab_count: int, seconds: float) -> None:
    """Measure without a viewer, with one, and with ``tab_count`` tabs."""
    store = folder / "store"
    steps = model_steps(20, blocks=1)
    core = Core(steps[0])
    with (
        running_jobs(jobs, store, steps) as running,
        page_server(store, folder, "--port", "0") as served,
        chromium() as browser,
    ):
        server, context = psutil.Process(served.process.pid), browser.new_context()
        idle = watch([], server, running.start_s, min(seconds, 20), core)
        tabs: list[Tab] = []
        rows: list[tuple[str, float, str, float]] = []
        for count in (1, tab_count):
            tabs += [Tab(context, served.link) for _ in range(count - len(tabs))]
            rows += figures(count, watch(tabs, server, running.start_s, seconds, core), idle.percent, core)
    print(core)
    report(rows)


def main() -> None:
    """Measure with a private store, private daemons and a private server."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=50)
    parser.add_argument("--tabs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60)
    args = parser.parse_args()
    try:
        with private_folder() as folder:
            measure(folder, args.jobs, args.tabs, args.seconds)
    except pytest.skip.Exception as skipped:
        print(f"not installed: {skipped}")


if __name__ == "__main__":
    main()
