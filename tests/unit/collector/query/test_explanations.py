"""Explanations why nothing of a job was traced."""

import errno
from pathlib import Path
from typing import Any

import pytest
from fakes.made_store import MS, START_NS, rows, span, trace, write_job
from tfprof.collector.query.engine import QueryEngine
from tfprof.collector.query.explanations import (
    main_warnings,
    missed_steps_note,
    notes_of,
    slowdown,
    untested_versions,
    untraced_reason,
)
from tfprof.collector.query.job_selection import Selection
from tfprof.collector.store.reader import LocalJob, LocalStore
from tfprof.collector.tfviews.options import from_texts
from tfprof.formats import layout


def ended_job(folder: Path, policy: str = "", tables: Any = None, **counters: Any) -> LocalJob:
    """Return a job that ended with these counters."""
    write_job(folder, 1, tables or {}, identity={"trace": policy}, counters=counters)
    return LocalStore(folder).job("last")


@pytest.mark.parametrize(
    ("policy", "counters", "message"),
    [
        ("", {}, "TensorFlow ran no step: no session"),
        ("all", {"counts": {"epoch": 3}}, "TensorFlow ran no step: no session"),
        ("all", {"counts": {"partial_run": 4}}, "TensorFlow cannot trace the job's 4 partial runs"),
        ("off", {"counts": {"run": 40}}, "its 40 steps were only timed, as requested (--trace off)"),
        ("steps=100-200", {"counts": {"eager": 40}}, "none of its 40 steps was selected"),
        ("every=50", {"counts": {"call": 1}}, "its only step was not selected"),
        ("budget=1%", {"counts": {"batch": 2}}, "its 2 steps ran before the first step that is traced under a budget"),
        ("", {"counts": {"batch": 2}}, "its 2 steps ran before the first step that is traced under a budget"),
        (
            "off",
            {"counts": {"run": 40}, "policy_seen": 3},
            "its 40 steps ran before the first step that an order selected",
        ),
        (
            "all",
            {"counts": {"batch": 9}, "missed": 9},
            "9 selected steps were not traced: TensorFlow has one profiler",
        ),
        (
            "all",
            {"counts": {"batch": 9}, "traced": 1, "dropped_traces": 1, "ring_error": errno.EFBIG},
            "no memory for the record ring: File too large [channel-memory]",
        ),
        ("all", {"counts": {"batch": 9}, "ring_error": errno.EBADF}, "the program closed the channel's descriptor"),
        (
            "all",
            {"counts": {"batch": 9}, "ring_error": 2**64 - 1},
            "no memory for the record ring: error 18446744073709",
        ),
        (
            "all",
            {"counts": {"batch": 9}, "traced": 1, "dropped_traces": 1},
            "the one traced step was dropped, because the collector did not keep up",
        ),
        (
            "all",
            {"counts": {"batch": 9}, "traced": 3, "dropped_traces": 3},
            "all 3 traced steps were dropped, because the collector did not keep up",
        ),
    ],
)
def test_the_explanation_names_the_actual_reason(
    tmp_path: Path, policy: str, counters: dict[str, Any], message: str
) -> None:
    assert untraced_reason(ended_job(tmp_path, policy, **counters)).startswith(f"no traced steps: {message}")


def test_traced_steps_without_ops_in_the_process_are_not_lost(tmp_path: Path) -> None:
    tables = {"traces": rows("traces", [trace(number, number + 1, 0, 1) for number in range(2)])}
    message = untraced_reason(ended_job(tmp_path, "all", tables, traced=2))
    assert message == "no traced steps: 2 were recorded, and no op ran in this process: XLA or a remote server ran them"
    assert "did not reach the store" in untraced_reason(ended_job(tmp_path / "other", "all", traced=2))


def test_the_op_view_says_that_no_op_of_the_traced_steps_ran_here(tmp_path: Path) -> None:
    tables = {
        "traces": rows("traces", [trace(0, 1, 0, 1)]),
        "graph_nodes": rows("graph_nodes", [{"name": "product", "op": "MatMul"}]),
    }
    selection = Selection((ended_job(tmp_path, "all", tables, traced=1),))
    answer = QueryEngine().ask(selection, "op", from_texts({}))
    assert [
        note for note in notes_of(answer, in_own_layout=True) if "ran in this process: XLA or a remote server" in note
    ]


def test_a_slowdown_is_named_unless_other_kinds_are_selected(tmp_path: Path) -> None:
    spans = [span(layout.BATCH, number, number * 100, 10 if number < 100 else 50) for number in range(200)]
    alert = {"found_ns": START_NS, "slug": "slower", "kind": layout.BATCH, "step": 100}
    traces = [trace(0, 3, 0, 1) | {"kind": layout.BATCH}, trace(1, 3, 0, 1) | {"kind": layout.TEST_BATCH}]
    tables = {"spans": rows("spans", spans), "alerts": rows("alerts", [alert]), "traces": rows("traces", traces)}
    job = ended_job(tmp_path, tables=tables, counts={"batch": 200}, times={"batch": 6_000 * MS})
    for kinds, is_named in ((None, True), ((layout.BATCH,), True), ((layout.TEST_BATCH,), False)):
        answer = QueryEngine().ask(Selection((job,), kinds=kinds), "op", from_texts({}))
        assert ("Only these: --steps 100-199" in (slowdown(answer) or "")) == is_named


def test_missed_steps_are_counted(tmp_path: Path) -> None:
    assert missed_steps_note(ended_job(tmp_path)) is None
    assert str(missed_steps_note(ended_job(tmp_path / "other", missed=112))).startswith(
        "112 selected steps were not traced"
    )


def event(slug: str, text: str, t_ns: int) -> dict[str, Any]:
    return {"t_ns": t_ns, "slug": slug, "text": text, "count": 1}


def test_all_parts_that_cannot_be_recorded_are_the_main_warnings(tmp_path: Path) -> None:
    gap, missing = event("gap", "records", 1), [event("patch-missing", name, at) for at, name in enumerate("ab", 2)]
    jobs = [
        ended_job(tmp_path / str(number), tables={"events": rows("events", events)})
        for number, events in enumerate([[], [gap], [gap, event("store-full", "x", 9)], [gap, *missing]])
    ]
    assert [main_warnings(job) for job in jobs] == [
        None,
        "records: 1 [gap]",
        f"records: 1 [gap]; 1 more in: tfprof steps {jobs[2].info.hex}",
        f"a [patch-missing]; b [patch-missing]; 1 more in: tfprof steps {jobs[3].info.hex}",
    ]


@pytest.mark.parametrize(
    ("identity", "beginnings"),
    [
        ({"framework": "tensorflow", "framework_version": "2.12.1", "python": "3.11.7"}, []),
        ({"framework": None, "framework_version": None, "python": None}, []),
        ({"framework": "other", "framework_version": "9.0", "python": "3.8.1"}, []),
        (
            {"framework": "tensorflow", "framework_version": "2.22.0rc0", "python": "3.14.0"},
            [
                "CPython 3.14.0 is newer than 3.13, the newest tested version: plain functions count and time every",
                "TensorFlow 2.22.0rc0 is newer than 2.21, the newest tested version: some steps",
            ],
        ),
        (
            {"framework": "tensorflow", "framework_version": "1.14.0", "python": "3.7.16"},
            ["TensorFlow 1.14.0 is older than 1.15, the oldest tested version"],
        ),
    ],
)
def test_versions_outside_of_the_tested_ones_are_named(
    tmp_path: Path, identity: dict[str, Any], beginnings: list[str]
) -> None:
    write_job(tmp_path, 1, {}, identity=identity)
    texts = untested_versions(LocalStore(tmp_path).job("last"))
    assert len(texts) == len(beginnings)
    assert all(text.startswith(beginning) for text, beginning in zip(texts, beginnings, strict=True))
