"""Which wire version two sides speak."""

import pytest
from tfprof.formats import wire
from tfprof.formats.errors import FormatError, VersionError


def test_the_highest_version_of_both_is_chosen(monkeypatch):
    monkeypatch.setattr(wire, "SPOKEN", (1, 2))
    assert wire.shared([1, 2, 3]) == 2
    assert wire.shared([1]) == 1


def test_without_one_the_versions_of_both_sides_are_named():
    with pytest.raises(VersionError, match=r"version 9 .*speaks 1"):
        wire.shared([8, 9])
    with pytest.raises(FormatError, match="no wire version"):
        wire.shared([])
