"""The choice of a wire version, and the versions in heads."""

import pytest
from tfprof.formats import wire
from tfprof.formats.errors import FormatError, VersionError
from tfprof.formats.wire import Head


def test_the_highest_common_version_is_chosen(monkeypatch):
    monkeypatch.setattr(wire, "SUPPORTED_VERSIONS", (1, 4, 5))
    assert wire.common_version([1, 4, 6]) == 4
    assert wire.common_version([1]) == 1


def test_without_a_common_version_the_error_names_both_sides():
    with pytest.raises(VersionError, match=r"version 9 .*speaks 3"):
        wire.common_version([8, 9])
    with pytest.raises(FormatError, match="no wire version"):
        wire.common_version([])


def test_a_development_version_is_refused_although_it_offers_version_1():
    with pytest.raises(VersionError, match=r"version 2 .*speaks 3"):
        wire.common_version([1, 2])
    assert wire.common_version([1, 2, 3]) == 3


def test_a_head_has_the_version_that_added_its_type():
    versions = {kind: int.from_bytes(wire.pack(Head(kind))[4:6], "little") for kind in (wire.OPEN, wire.ORDER)}
    assert versions == {wire.OPEN: 1, wire.ORDER: 3}
    assert all(wire.unpack(wire.pack(Head(kind, 7))) == Head(kind, 7) for kind in versions)
    with pytest.raises(VersionError, match=r"version 2 .*speaks 3"):
        wire.unpack(wire.pack(Head(wire.OPEN))[:4] + (2).to_bytes(2, "little") + bytes(34))
