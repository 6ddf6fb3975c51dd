"""The table of settings.

Tests formats/values.py.
"""

import pytest
from tfprof.formats.settings import SETTINGS, SettingError
from tfprof.formats.values import days, flag, job_name, seconds, size


@pytest.mark.parametrize(("text", "value"), [("1", 1), ("2k", 2048), ("16M", 16 << 20), (" 1g ", 1 << 30)])
def test_a_size_may_have_a_unit(text, value):
    assert size(text) == value


@pytest.mark.parametrize("text", ["", "M", "-1", "0", "1.5M", "2T", "k2"])
def test_an_invalid_size_is_an_error(text):
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


@pytest.mark.parametrize(("text", "value"), [("60", 60.0), ("0.5", 0.5), ("1e3", 1000.0)])
def test_a_time_is_a_number_above_0(text, value):
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["-5", "0", "nan", "inf", "-inf", "1e300", "x", "", "1_0", "\u0663", "9" * 5000])
def test_an_invalid_time_is_an_error(text):
    for parse in (seconds, days):
        with pytest.raises(ValueError, match="is not a time in"):
            parse(text)


def test_a_job_name_is_printable_and_not_reserved():
    assert job_name("night run é") == "night run é"
    for text in ("", " ", "last", "a\nb", "\x1b[1m", "\udcff", "x" * 201):
        with pytest.raises(ValueError, match=r"name (for|of) a job"):
            job_name(text)


def test_an_error_names_the_variable_and_an_empty_variable_counts_as_unset():
    with pytest.raises(SettingError, match=r"^TFPROF_RING: 'x' is not a size: .* \[usage\]$"):
        SETTINGS["ring"].read({"TFPROF_RING": "x"})
    assert SETTINGS["ring"].read({"TFPROF_RING": ""}) == 16 << 20
