"""The width of texts on a terminal."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tfprof.collector.render.cells import cells, first_cells, last_cells, padded

KOREAN = "훈련.py"
WIDE = st.text("ab/ 模型🚀e\u0301\u200d가\u1100\u1161…", max_size=30)


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("", 0),
        ("train.py", 8),
        ("模型训练.py", 11),
        (KOREAN, 7),
        (unicodedata.normalize("NFD", KOREAN), 7),
        ("ｔｒａｉｎ", 10),
        ("ﾓﾃﾞﾙ", 4),
        ("🚀rocket", 8),
        ("été", 3),
        (unicodedata.normalize("NFD", "été"), 3),
        ("zero\u200bwidth", 9),
        ("▁▃█ │ … · ±µ", 12),
        ("\x1b\n", 2),
    ],
)
def test_wide_characters_take_two_cells_and_combining_marks_none(text: str, width: int) -> None:
    assert cells(text) == width


def test_texts_are_padded_to_cells() -> None:
    assert padded("模型", 6) == "模型  "
    assert padded("模型", 6, right=True) == "  模型"
    assert padded("模型", 3) == "模型"


def test_a_cut_keeps_a_character_and_its_marks_together() -> None:
    accented = unicodedata.normalize("NFD", "été")
    assert first_cells(accented, 1) == accented[:2]
    assert last_cells(accented, 2) == accented[2:]
    assert (first_cells("a模型", 2), last_cells("模型a", 2)) == ("a", "a")


@given(WIDE, st.integers(-2, 40))
def test_a_cut_fits_and_is_as_long_as_possible(text: str, width: int) -> None:
    first, last = first_cells(text, width), last_cells(text, width)
    assert text.startswith(first)
    assert text.endswith(last)
    for part in (first, last):
        assert cells(part) <= max(0, width)
        assert cells(part) >= min(width - 1, cells(text))
