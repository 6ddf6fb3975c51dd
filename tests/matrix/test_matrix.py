"""The cells of the matrix that CI runs. `make matrix` runs all cells."""

import os
from collections.abc import Iterator

import pytest
from matrix import cell
from matrix.instance import Instance, instance
from matrix.rows import ROWS, Row
from matrix.versions import VERSIONS, Version

pytestmark = pytest.mark.tf
CELLS = [
    pytest.param(row, version, id=f"{row.name}-{version.name}")
    for version in VERSIONS
    for row in ROWS
    if row.runs_on(version) and (version.ci_rows is None or row.name in version.ci_rows)
]


@pytest.fixture(scope="module")
def private_instance() -> Iterator[Instance]:
    """The private agent, collector and store of this module."""
    with instance() as module_instance:
        yield module_instance


@pytest.mark.parametrize(("row", "version"), CELLS)
def test_a_job_runs_as_without_tfprof_and_is_recorded_completely(
    row: Row, version: Version, private_instance: Instance
) -> None:
    missing = cell.missing_environment(version)
    if missing:
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    problems = cell.run(row, version, private_instance).problems()
    assert not problems, "\n".join(problems)
