"""Times of nodes in each traced step."""

from pathlib import Path

import pytest
from fakes import small_store
from fakes.made_store import trace_tables, write_job
from fakes.profiles import profile
from fakes.run_metadata import run_metadata
from tfprof.collector.query.node_times import STEPS_MAX, evenly_spaced, node_times
from tfprof.collector.store.reader import LocalStore


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> LocalStore:
    return LocalStore(small_store.write(tmp_path_factory.mktemp("times") / "store"))


def test_times_of_all_jobs_follow_each_other_and_add_up_to_the_profile(store: LocalStore) -> None:
    job_profile = profile([store.job("aa10"), store.job("bb10")], averaged=False, required_facts=())
    assert job_profile is not None
    times = node_times(job_profile)
    assert times.steps == 3
    assert times.by_node == {"net/weights": [10_000, 0, 0], "net/MatMul": [10_000] * 3, "loss": [10_000, 10_000, 0]}
    assert {node.name: node.stats.micros for node in job_profile.nodes if node.stats.micros} == {
        name: sum(node_times) for name, node_times in times.by_node.items()
    }


def test_times_cover_the_steps_and_the_device_of_the_profile(store: LocalStore) -> None:
    jobs = [store.job("aa10"), store.job("bb10")]
    one_step = profile(jobs[0], 1, averaged=False, required_facts=())
    on_gpu = profile(jobs, device="GPU", averaged=False, required_facts=())
    assert one_step is not None
    assert on_gpu is not None
    assert node_times(one_step) == (1, {"net/MatMul": [10_000], "loss": [10_000]})
    assert node_times(on_gpu, "GPU") == (3, {"net/MatMul": [0, 0, 10_000]})


def test_an_evenly_spaced_selection_of_many_steps_is_read(tmp_path: Path) -> None:
    assert evenly_spaced(range(STEPS_MAX)) == range(STEPS_MAX)
    selection = evenly_spaced(range(1000))
    assert (len(selection), selection[0], selection[-1]) == (STEPS_MAX, 0, 999)
    assert len(set(selection)) == STEPS_MAX
    graph = small_store.GRAPH.SerializeToString()
    write_job(tmp_path, 1, trace_tables(graph, [run_metadata([b"loss"])] * (STEPS_MAX + 5)))
    job_profile = profile(LocalStore(tmp_path).job("last"), averaged=False, required_facts=())
    assert job_profile is not None
    assert node_times(job_profile) == (STEPS_MAX, {"loss": [10_000] * STEPS_MAX})


def test_times_of_nodes_that_get_the_same_name_add_up(store: LocalStore) -> None:
    job_profile = profile(store.job("aa10"), averaged=False, required_facts=())
    assert job_profile is not None
    renamed = node_times(job_profile).renamed({"loss": "all", "net/weights": "all"})
    assert renamed == (2, {"all": [20_000, 10_000], "net/MatMul": [10_000, 10_000]})
