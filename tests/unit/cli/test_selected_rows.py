"""`--since`, `--steps` and `--top` of the commands about one job.

Tests collector/documents/breakdown.py, collector/documents/events.py, collector/documents/host.py,
collector/documents/spans.py, collector/documents/steps.py, collector/query/breakdown.py,
collector/query/job_steps.py, collector/query/job_usage.py, collector/render/host_text.py,
collector/render/spans_text.py, collector/render/steps_text.py, cli/breakdown.py, cli/host.py,
cli/spans.py, cli/steps.py.
"""

import json
from datetime import datetime
from pathlib import Path

import pytest
from fakes import page_store
from fakes.command import Run
from fakes.made_store import SECOND, START_NS, rows, span, trace, write_job
from tfprof.collector.summaries.spans import SpanNode, largest_lines
from tfprof.formats import activities, layout

#: Five seconds after the start of the job: it ran a step each 100 ms for eight seconds.
SINCE_NS = START_NS + 5 * SECOND
SINCE = datetime.fromtimestamp(SINCE_NS // 10**9).astimezone().isoformat(timespec="seconds")
LATER = datetime.fromtimestamp(SINCE_NS // 10**9 + 3600).astimezone().isoformat(timespec="seconds")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return page_store.write(tmp_path_factory.mktemp("selected") / "store")


def test_steps_are_selected_by_number_and_by_time(run: Run) -> None:
    document = json.loads(run("steps", "aa10", "--steps", "41-60", "--since", SINCE, "--json", "--all")[1])
    assert (document["range"], document["since_ns"]) == ([41, 60], SINCE_NS)
    assert [step["ordinal"] for step in document["steps"]] == list(range(50, 61))
    assert document["counts"] == {"run": 11}
    assert document["groups"][0]["untraced"]["count"] == 11
    first_line = run("steps", "aa10", "--steps", "41-")[1].splitlines()[0]
    assert first_line == "only steps 41-"


def test_top_lists_the_longest_steps(run: Run) -> None:
    steps = json.loads(run("steps", "aa10", "--top", "12", "--json")[1])["steps"]
    assert [step["ordinal"] % 7 for step in steps] == [6] * 11 + [5]
    assert "the 12 longest of 80 entries:" in run("steps", "aa10", "--top", "12")[1].splitlines()


def test_spans_that_ended_before_are_left_out(run: Run) -> None:
    spans = json.loads(run("spans", "aa10", "--since", SINCE, "--json")[1])["spans"]
    assert [(line["kind"], line["label"], line["count"]) for line in spans[:2]] == [("fit", "1", 1), ("epoch", "2", 1)]
    assert [line["count"] for line in spans if line["kind"] == "run"] == [31]


def test_top_keeps_the_lines_above_the_longest_ones(run: Run) -> None:
    lines = [SpanNode(depth, "fit", str(ns), 1, ns, ns, ns) for depth, ns in ((0, 9), (1, 2), (2, 7), (1, 1), (0, 3))]
    assert [line.label for line in largest_lines(lines, 2)] == ["9", "2", "7"]
    assert largest_lines(lines, 0) == lines
    assert "and 3 more (--top)" in run("spans", "aa10", "--top", "1")[1].splitlines()


def test_the_parts_are_those_of_the_steps_since_then(run: Run) -> None:
    (parts,) = json.loads(run("breakdown", "aa10", "--since", SINCE, "--json")[1])["kinds"]
    (same,) = json.loads(run("breakdown", "aa10", "--steps", "50-", "--json")[1])["kinds"]
    assert parts["steps"] + 1 == parts["timed_steps"] == 31
    assert parts == same
    assert "no step began since" in run("breakdown", "aa10", "--since", LATER)[2]
    assert run("breakdown", "aa10", "--steps", "500-")[2].startswith("tfprof: no step 500-: the last one is run 80")


def test_host_shows_the_samples_since_then_and_the_one_before(run: Run) -> None:
    document = json.loads(run("host", "aa10", "--since", SINCE, "--json")[1])
    assert (document["samples"], document["since_ns"]) == (6, SINCE_NS)
    assert len(document["job_series"]["cpu_cores"]["values"]) == 5


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("steps", "aa10", "--since", LATER), 2, "no step began since "),
        (("steps", "aa10", "--steps", "81-90"), 2, "no step 81-90: the last one is run 80, of "),
        (
            ("breakdown", "aa10", "--kind", "test_batch"),
            2,
            "no step of the kind test_batch was timed; there are 80 run",
        ),
        (("spans", "aa10", "--since", LATER), 0, "no span ended since "),
        (("host", "aa10", "--since", LATER), 0, "no samples since "),
        (("alerts", "--since", LATER), 0, "no alerts since "),
        (("steps", "aa10", "--last", "3", "--top", "3"), 2, "--last, --all and --top exclude each other"),
        (("spans", "aa10", "--top", "3", "--json"), 2, "--top limits the rows of the screen: --json has all rows"),
        (("show", "aa10", "--top", "3", "--json"), 2, "--top limits the rows of the screen: --json has all rows"),
    ],
)
def test_what_selects_nothing_says_what_there_is(run: Run, arguments: tuple[str, ...], code: int, message: str) -> None:
    status, _, err = run(*arguments)
    assert (status, message in err) == (code, True)


def test_alerts_that_were_found_before_are_left_out(run: Run) -> None:
    assert run("alerts", "--since", SINCE)[1] == ""
    found = json.loads(run("alerts", "--since", "2020-01-01", "--json")[1])["alerts"]
    assert len(found) == 2


def test_show_has_as_many_op_types_as_wanted(run: Run) -> None:
    many, one = (run("show", "aa10", "--top", top)[1] for top in ("9", "1"))
    assert len(many.splitlines()) == len(one.splitlines()) + 2


def test_steps_that_are_stored_together_are_selected_by_any_of_their_numbers(run: Run, tmp_path: Path) -> None:
    spans = [span(layout.BATCH, 1 + 64 * number, 100 * number, 64.0, count=64) for number in range(20)]
    write_job(tmp_path / "short", 0xAA << 56, {"spans": rows("spans", spans)}, identity={"name": "loop.py"})
    for steps, count in (("70", 64), ("66-130", 128)):
        words = ("breakdown", "aa", "--steps", steps, "--json", "--store", str(tmp_path / "short"))
        (parts,) = json.loads(run(*words)[1])["kinds"]
        assert parts["steps"] == count


@pytest.mark.parametrize(
    ("option", "value", "reason"), [("--steps", "7-9", "7-9 was"), ("--since", SINCE, "was traced since")]
)
def test_what_an_imported_job_lacks_is_an_error(run: Run, tmp_path: Path, option: str, value: str, reason: str) -> None:
    tables = {"traces": rows("traces", [trace(0, 5, 0, 0)])}
    write_job(tmp_path / "imported", 0xAA << 56, tables, state="imported")
    status, _, err = run("breakdown", "aa", option, value, "--store", str(tmp_path / "imported"))
    assert (status, reason in err) == (2, True)


def test_marked_parts_are_those_of_the_selected_steps(run: Run, tmp_path: Path) -> None:
    key = activities.key_of(activities.PART, "augment")
    spans = [
        row
        for number in range(1, 21)
        for row in (
            span(layout.FUNCTION, number, 10 * number, 8.0),
            span(layout.ACTIVITY, number, 10 * number + 1, 2.0, key=key, flags=layout.FLAG_IN_STEP),
        )
    ]
    write_job(tmp_path / "marked", 0xAA << 56, {"spans": rows("spans", spans)}, identity={"name": "loop.py"})
    words = ("breakdown", "aa", "--steps", "11-20", "--json", "--store", str(tmp_path / "marked"))
    (parts,) = json.loads(run(*words)[1])["kinds"]
    assert [part["mean_ns"] for part in parts["marked"]] == [2e6]
