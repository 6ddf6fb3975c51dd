"""The table of settings."""

import pytest
from tfprof.shim.settings import SETTINGS, flag, size


@pytest.mark.parametrize(("text", "value"), [("1", 1), ("2k", 2048), ("16M", 16 << 20), (" 1g ", 1 << 30)])
def test_a_size_may_have_a_unit(text, value):
    assert size(text) == value


@pytest.mark.parametrize("text", ["", "M", "-1", "0", "1.5M", "2T", "k2"])
def test_what_is_no_size_is_an_error(text):
    with pytest.raises(ValueError):
        size(text)


def test_a_flag_is_on_or_off():
    assert [flag(text) for text in ("1", "yes", "On", "", "0", "off")] == [True] * 3 + [False] * 3
    with pytest.raises(ValueError):
        flag("maybe")


def test_every_setting_reads_its_default_and_its_variable():
    for row in SETTINGS.values():
        assert row.read({}) == row.parse(row.default)
        assert row.read({row.variable: row.default}) == row.parse(row.default)
        assert row.variable.startswith("TFPROF_")
        assert row.sentence.endswith(".")
        assert row.users
