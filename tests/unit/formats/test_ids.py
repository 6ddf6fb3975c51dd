"""Ids as text."""

import pytest
from tfprof.formats.ids import hex_id


@pytest.mark.parametrize(("number", "text"), [(0, "0" * 16), (0xAB, "00000000000000ab"), (2**64 - 1, "f" * 16)])
def test_an_id_has_sixteen_digits(number: int, text: str) -> None:
    assert hex_id(number) == text
