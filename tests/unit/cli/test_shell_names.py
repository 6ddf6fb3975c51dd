"""The names in the jobs of a shell, by view and option."""

from pathlib import Path

import pytest
from fakes import small_store
from tfprof.cli.shell_names import JobNames
from tfprof.collector.store.reader import LocalStore


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> JobNames:
    store = LocalStore(small_store.write(tmp_path_factory.mktemp("names") / "store"))
    return JobNames([store.job(f"{small_store.FIRST_JOB:016x}")])


def test_regexes_match_op_types_in_the_op_view_and_nodes_in_trees(names: JobNames) -> None:
    assert {"MatMul", "Mean"} <= set(names("op", "show_name_regexes"))
    assert {"net/MatMul", "loss"} <= set(names("scope", "show_name_regexes"))


def test_types_are_op_types_and_devices_in_lower_case(names: JobNames) -> None:
    types = list(names("graph", "account_type_regexes"))
    assert "MatMul" in types
    assert any(":cpu:0" in name or ":gpu:0" in name for name in types)


def test_steps_and_kinds_begin_with_the_word_for_all(names: JobNames) -> None:
    steps, kinds = list(names("op", "step")), list(names("op", "kind"))
    assert (steps[0], kinds[0]) == ("-1", "all")
    assert steps[1:]
    assert kinds[1:]


def test_other_options_and_jobs_that_cannot_be_read_have_no_names(tmp_path: Path) -> None:
    store = LocalStore(small_store.write(tmp_path / "store"))
    job = store.job(f"{small_store.FIRST_JOB:016x}")
    assert list(JobNames([job])("op", "order_by")) == []
    store.remove([small_store.FIRST_JOB])
    assert list(JobNames([job])("op", "show_name_regexes")) == []
