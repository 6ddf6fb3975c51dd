"""Activities of real jobs, whose times equal those that the jobs measure themselves.

Tests collector/summaries/activities.py.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from fakes.profiled import ProfiledScripts
from tfprof.collector.render import spans_text
from tfprof.collector.store.protocols import JobReader
from tfprof.collector.summaries.activities import ActivityNode, activity_tree
from tfprof.collector.summaries.jobs import functions_of

pytestmark = pytest.mark.tf

SCRIPT = Path(__file__).parent / "jobs" / "activities.py"
MS = 10**6


class ActivityJob(NamedTuple):
    """The activities of a job, and what it measured itself (seconds)."""

    reader: JobReader
    tree: list[ActivityNode]
    true: Mapping[str, float]

    def node(self, category: str, name: str, depth: int = 0) -> ActivityNode:
        """Return the line of an activity; ``name`` is the beginning of its name."""
        found = [each for each in self.tree if each.category == category and each.name.startswith(name)]
        assert found, (category, name, [(each.category, each.name) for each in self.tree])
        assert found[0].depth == depth
        return found[0]

    def below(self, parent: ActivityNode) -> set[tuple[str, str]]:
        """Return the categories and names of the lines directly below that of ``parent``."""
        found = set()
        for each in self.tree[self.tree.index(parent) + 1 :]:
            if each.depth <= parent.depth:
                break
            if each.depth == parent.depth + 1:
                found.add((each.category, each.name))
        return found


def is_near(node: ActivityNode, true_s: float) -> bool:
    """Return whether the time of an activity is within 15 % or 5 ms of the true one."""
    return abs(node.total_ns - 1e9 * true_s) <= max(0.15e9 * true_s, 5 * MS)


@pytest.fixture(scope="module")
def run(
    profiled_jobs: Callable[[str], ProfiledScripts], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., ActivityJob]:
    """Return a function that runs a kind of job with a version of TensorFlow."""

    def run_job(version: str, kind: str, *packages: Path) -> ActivityJob:
        profiled = profiled_jobs(version)
        result = profiled.run("budget=1%", SCRIPT, kind, tmp_path_factory.mktemp("job"), *packages)
        assert result.status == 0, result.errors
        job = profiled.job
        counters = job.info.counters
        assert not counters.get("faults"), job.table("events").to_pylist()
        assert not counters.get("dropped_spans")
        assert "patch-missing" not in job.table("events").column("slug").to_pylist()
        tree = activity_tree(job.table("spans"), functions_of(job.info))
        return ActivityJob(job, tree, json.loads(result.output[-1]))

    return run_job


def test_a_fit_shows_its_callbacks_with_the_checkpoints_and_summaries_in_them(
    run: Callable[..., ActivityJob],
) -> None:
    job = run("tf2", "fit")
    for name in ("Slow", "Saving", "Logging"):
        assert is_near(job.node("callback", name), job.true[name]), name
        assert job.node("callback", name).outside_ns > 0.9 * job.node("callback", name).total_ns
    assert ("checkpoint", "Model.save_weights") in job.below(job.node("callback", "Saving"))
    assert {("summary", "summary.write"), ("summary", "SummaryWriter.flush")} <= job.below(
        job.node("callback", "Logging")
    )
    writes = job.node("summary", "summary.write", 1)
    assert writes.count == 200
    assert job.node("callback", "Logging").self_ns <= job.node("callback", "Logging").total_ns - writes.total_ns
    assert job.node("tracing", "multi_step_on_iterator").in_steps_ns > 0
    assert job.node("first_run", "multi_step_on_iterator").in_steps_ns > 0
    assert job.node("python_function", "load (activities.py:").other_threads_ns > 0
    assert job.node("input", "new iterator").count >= 4


def test_a_prediction_shows_its_waits_for_input_in_its_steps(run: Callable[..., ActivityJob]) -> None:
    node = run("tf2", "fit").node("input", "next")
    assert 20 <= node.count <= 22
    assert node.in_steps_ns > 0.9 * node.total_ns > 0.9 * 20 * MS


@pytest.mark.parametrize("version", ["tf2", "tf313"])
def test_a_loop_by_hand_shows_its_waits_checkpoints_and_new_graphs(
    run: Callable[..., ActivityJob], version: str
) -> None:
    job = run(version, "hand")
    waits, saves = job.node("input", "next"), job.node("checkpoint", "CheckpointManager.save")
    assert waits.count == 60
    assert is_near(waits, job.true["next"])
    assert waits.outside_ns == waits.total_ns
    assert saves.count == 3
    assert is_near(saves, job.true["save"])
    assert job.node("tracing", "train_step").count == 4
    assert job.node("first_run", "train_step").count == 4


@pytest.mark.parametrize("version", ["tf1", "tf2"])
def test_a_session_shows_its_saver_its_writer_and_the_function_of_an_op(
    run: Callable[..., ActivityJob], version: str
) -> None:
    job = run(version, "session")
    saves = job.node("checkpoint", "Saver.save")
    assert saves.count == 2
    assert is_near(saves, job.true["save"])
    assert job.node("checkpoint", "Saver.restore").count == 1
    assert job.node("summary", "FileWriter.add_summary").count == 40
    function = job.node("python_function", "load (activities.py:")
    assert function.count == 40
    assert function.total_ns > 40 * 5 * MS
    lines = spans_text.activity_lines(job.tree, 100)
    assert any(line.startswith("checkpoint Saver.save") and " 2 " in line for line in lines)


def test_marks_of_nvtx_opentelemetry_and_tensorflow_are_spans(
    run: Callable[..., ActivityJob], marks_python: Path
) -> None:
    job = run("tf2", "marks", next(marks_python.parent.parent.glob("lib/python3*/site-packages")))
    step, pushed = job.node("mark", "step"), job.node("mark", "pushed", 1)
    assert (step.count, pushed.count) == (50, 50)
    assert is_near(step, job.true["step"])
    for name, parent in {"decode": step, "log": step, "decorated": pushed}.items():
        node = job.node("mark", name, parent.depth + 1)
        assert node.count == 50
        assert is_near(node, job.true[name])
        assert ("mark", name) in job.below(parent)
    for name in ("trace_on", "trace_export"):  # of tf.summary, around steps that the job itself profiles
        assert is_near(job.node("summary", f"summary.{name}"), job.true[name])
