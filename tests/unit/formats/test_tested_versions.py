"""How a version relates to those that tfprof is tested with.

Tests shim/cpython/version.py.
"""

import pytest
from matrix.versions import VERSIONS
from tfprof.formats import tested_versions
from tfprof.shim.cpython import version

TESTED = ("1.15", "2.4", "2.10")


@pytest.mark.parametrize(
    ("name", "remark", "is_outside"),
    [
        ("1.14.0", "older than 1.15, the oldest tested version", True),
        ("1.15.5", "a tested version", False),
        ("2.3.1", "between the tested versions 1.15 and 2.4", False),
        ("2.10.0rc1", "a tested version", False),
        ("2.11.0.dev20261126", "newer than 2.10, the newest tested version", True),
        ("3", "newer than 2.10, the newest tested version", True),
    ],
)
def test_a_version_is_tested_between_tested_ones_or_outside(name: str, remark: str, is_outside: bool) -> None:
    assert tested_versions.remark(name, TESTED) == remark
    assert tested_versions.is_outside(name, TESTED) is is_outside


def test_the_tested_versions_of_tensorflow_are_those_of_the_matrix() -> None:
    assert tested_versions.FRAMEWORKS["tensorflow"] == tuple(row.name for row in VERSIONS)


def test_the_tested_versions_of_cpython_are_those_that_the_shim_knows() -> None:
    assert tuple(map(tested_versions.release, tested_versions.PYTHON)) == tuple(version.KNOWN)
