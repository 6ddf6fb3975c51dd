"""Attributes that code assigns."""

import pytest
from tfprof.shim.cpython import codes


def assigns(self, other):
    self.assigned = other.read
    other.called()
    self.read_and_assigned += 1
    del self.deleted


@pytest.mark.parametrize(
    ("name", "is_assigned"),
    [
        ("assigned", True),
        ("read_and_assigned", True),
        ("read", False),
        ("called", False),
        ("deleted", False),
        ("gone", False),
    ],
)
def test_an_attribute_is_assigned_or_only_used(name, is_assigned):
    assert codes.assigns_attribute(assigns.__code__, name) is is_assigned


def test_a_name_with_a_large_number_is_found():
    lines = [f"x.name{number}" for number in range(300)] + ["x.name299 = 1"]
    code = compile("\n".join(lines), "large.py", "exec")
    assert codes.assigns_attribute(code, "name299")


def test_on_an_unknown_version_a_name_that_is_used_counts_as_assigned(monkeypatch):
    monkeypatch.setattr(codes, "KNOWS_INSTRUCTIONS", False)
    assert codes.assigns_attribute(assigns.__code__, "read")
    assert not codes.assigns_attribute(assigns.__code__, "gone")
