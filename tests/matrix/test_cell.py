"""The checks of a cell of the matrix."""

from collections import Counter

import pytest
from matrix import cell, table
from matrix.cell import Outcome, ScriptResult
from matrix.rows import LIMITS, ROWS, Limit
from matrix.versions import VERSIONS

BARE = ScriptResult(0, 'loss 1\n{"spans": {}, "steps": {"run": 10}}\n', "W0000 12:01 slow\n", [])
NO_LIMIT = Limit(frozenset(), lacks_ops=False, text="")
NO_FUNCTIONS = Limit(frozenset({"function"}), lacks_ops=True, text="")


def job(**more):
    return {"uid": "1", "lost": 0, "state": "exited", "status": 0, "traced": 3, **more}


class FakeInstance:
    """Answers queries in place of a store."""

    def __init__(self, runs, traces):
        view = {"traces": traces, "rows": [{"name": "Add", "runs": 2}, {"name": "MatMul", "runs": runs}]}
        self._answers = {"op": view, "steps": {"events": [{"slug": "profiler-busy"}]}}

    def ask(self, view, *_words):
        return self._answers[view]


@pytest.mark.parametrize(("slug", "is_false_alarm"), [("patch-missing", True), ("no-ops", True), ("gap", False)])
def test_a_part_that_is_said_to_be_missing_in_a_tested_version_is_a_problem(slug, is_false_alarm):
    instance = FakeInstance(3, 3)
    instance.ask("steps")["events"][:] = [{"slug": slug, "text": "a module lacks a name"}]
    assert list(cell._false_alarms(instance, [job()])) == [f"a module lacks a name [{slug}]"] * is_false_alarm


def test_a_job_that_ends_and_prints_as_without_tfprof_has_no_problem():
    armed = ScriptResult(0, 'loss 1\n{"spans": {}, "steps": {"run": 11}}\n', "W0000 12:02 slow\n", [])
    assert list(cell._status_problems(BARE, armed)) == []


@pytest.mark.parametrize(
    "change",
    [
        {"status": 1},
        {"status": None},
        {"out": "loss 2\n"},
        {"errors": ""},
        {"errors": BARE.errors * 2},
        {"leftovers": ["7"]},
    ],
    ids=str,
)
def test_any_other_end_is_a_problem(change):
    assert len(list(cell._status_problems(BARE, BARE._replace(**change)))) == 1


def test_a_job_that_fails_without_tfprof_is_a_problem_too():
    failed = BARE._replace(status=1)
    assert len(list(cell._status_problems(failed, failed))) == 1


@pytest.mark.parametrize(
    ("reported", "recorded", "limit", "is_right"),
    [
        ({"run": 10}, {"run": 10}, NO_LIMIT, True),
        ({"run": 10}, {"run": 9}, NO_LIMIT, False),
        ({"run": 10}, {"run": 10, "function": 1}, NO_LIMIT, False),
        ({"run": None}, {"run": 3}, NO_LIMIT, True),
        ({"run": None}, {}, NO_LIMIT, False),
        ({"function": 10, "batch": 4}, {"batch": 4}, NO_FUNCTIONS, True),
        ({"function": 10}, {"function": 10}, NO_FUNCTIONS, False),
        ({"train": 4, "runs": 9}, {"train": 4, "init": 2, "run": 3}, NO_LIMIT, True),
        ({"train": 4, "runs": 9}, {"train": 5, "init": 1, "run": 3}, NO_LIMIT, False),
        ({"train": 4, "runs": 9}, {"train": 4, "init": 1, "run": 3}, NO_LIMIT, False),
    ],
)
def test_recorded_steps_and_spans_equal_those_that_the_job_reports_except_for_limitations(
    reported, recorded, limit, is_right
):
    assert (list(cell._step_problems(reported, Counter(recorded), limit, [job()])) == []) is is_right
    entries = [{"kind": kind, "count": count, "running": False} for kind, count in recorded.items()]
    assert (list(cell._span_problems(reported, entries, limit)) == []) is is_right


@pytest.mark.parametrize("change", [{"lost": 1}, {"state": "killed"}, {"state": "running"}])
def test_lost_data_or_a_missing_end_is_a_problem(change):
    assert len(list(cell._step_problems({"run": 1}, Counter(run=1), NO_LIMIT, [job(**change)]))) == 1


@pytest.mark.parametrize(
    ("runs", "traces", "limit", "is_right"),
    [
        (6, 3, NO_LIMIT, True),
        (0, 3, NO_LIMIT, False),
        (6, 2, NO_LIMIT, False),
        (0, 0, NO_FUNCTIONS, True),
        (6, 3, NO_FUNCTIONS, False),
    ],
)
def test_every_traced_step_has_ops_unless_the_limitation_excludes_them(runs, traces, limit, is_right):
    assert (list(cell._op_problems("MatMul", FakeInstance(runs, traces), [job()], limit)) == []) is is_right


def test_the_terminal_shows_errors_and_cells_that_did_not_run():
    right, wrong = Outcome("", "", "", ""), Outcome("", "run: 9 recorded, 10 expected", "", "")
    names = [(ROWS[0].name, version.name) for version in VERSIONS]
    text = table.terminal({names[0]: right, names[1]: wrong})
    assert text.splitlines()[1].split()[1:] == ["✓", "✗"]
    assert text.splitlines()[-1] == f"{ROWS[0].name} {VERSIONS[1].name} steps: run: 9 recorded, 10 expected"


def test_each_limitation_has_a_letter():
    assert set(table.LETTERS) == set(LIMITS)
