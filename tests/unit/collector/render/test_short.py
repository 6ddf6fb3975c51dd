"""Names shortened in the middle."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tfprof.collector.render.cells import cells
from tfprof.collector.render.short import DOTS, shortened, shortened_distinctly

LONG = "gradient_tape/sequential_1/conv2d_1_2/convolution/Conv2DBackpropFilter"


@pytest.mark.parametrize(
    ("text", "width", "short"),
    [
        (LONG, 70, LONG),
        (LONG, 60, "gradient_tape/…/conv2d_1_2/convolution/Conv2DBackpropFilter"),
        (LONG, 40, "gradient_tape/…/Conv2DBackpropFilter"),
        (LONG, 24, "gradien…2DBackpropFilter"),
        (f"    {LONG}", 40, "    gradient_tape/…/Conv2DBackpropFilter"),
        ("keras_digits.py:31", 12, "ker…ts.py:31"),
        (" " * 70 + "abc/def", 20, " " * 10 + "abc/def"),
        ("abc", 1, "…"),
        ("abc", 0, ""),
        ("模型/训练/层/卷积", 16, "模型/…/层/卷积"),
        ("模型训练脚本.py", 9, "模…本.py"),
        ("模型", 3, "…型"),
    ],
)
def test_the_first_part_and_the_last_parts_stay(text: str, width: int, short: str) -> None:
    assert shortened(text, width) == short


@given(st.text(" ab/模é\u0301", max_size=40), st.integers(0, 45))
def test_names_fit_and_short_names_are_unchanged(text: str, width: int) -> None:
    short = shortened(text, width)
    assert cells(short) <= width or short == text
    assert (short == text) == (cells(text) <= width)
    assert text.endswith(short.rpartition(DOTS)[2]) or not short.strip()


def test_different_names_stay_different_if_their_ends_differ() -> None:
    names = ["  MaxPool_grad/MaxPoolGrad", "  MaxPool_1_grad/MaxPoolGrad", "  MaxPool_1_grad/MaxPoolGrad", "Relu"]
    assert shortened_distinctly(names, 23) == [
        "  …ool_grad/MaxPoolGrad",
        "  …l_1_grad/MaxPoolGrad",
        "  …l_1_grad/MaxPoolGrad",
        "Relu",
    ]
