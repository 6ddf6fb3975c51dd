"""Trace policies from texts, and from the words of a control page."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tfprof.formats import layout
from tfprof.formats.policy import DEFAULT, Policy, PolicyError


@pytest.mark.parametrize(
    ("trace", "level", "expected"),
    [
        ("off", "auto", (layout.MODE_OFF, 0, 0, 0, 0, 0)),
        ("all", "software", (layout.MODE_ALL, 1, 0, 0, 0, 0)),
        ("every=10", "full", (layout.MODE_EVERY, 3, 0, 0, 10, 0)),
        ("steps=10-20", "auto", (layout.MODE_STEPS, 0, 10, 20, 0, 0)),
        ("steps=7", "auto", (layout.MODE_STEPS, 0, 7, 7, 0, 0)),
        ("budget=1%", "auto", (layout.MODE_BUDGET, 0, 0, 0, 0, 10000)),
        (" budget=0.25% ", "auto", (layout.MODE_BUDGET, 0, 0, 0, 0, 2500)),
    ],
)
def test_a_text_gives_a_policy(trace, level, expected):
    assert Policy.from_text(trace, level).words() == expected
    assert Policy.from_words(expected) == Policy.from_text(trace, level)


def test_a_text_may_have_several_ranges():
    policy = Policy.from_text("steps=20-25,1-3,10")
    assert policy.ranges == ((1, 3), (10, 10), (20, 25))
    assert policy.words() == (layout.MODE_STEPS, 0, 1, 25, 0, 0)
    assert policy not in {Policy.from_text("steps=1-25"), Policy.from_text("steps=1-3,10-25")}
    assert policy == Policy.from_text("steps=1-3,10,20-25")


@pytest.mark.parametrize(
    "trace",
    ["", "on", "all=1", "off=", "every", "every=", "every=0", "every=-1", "every=1.5", "every=²",
     "steps=0-3", "steps=5-4", "steps=1-", "steps=-4", "steps=1-2-3", "steps=1,", "steps=,1", "steps=1,x",
     "steps=1 2", "steps=3,5-4", "budget=1", "budget=0%", "budget=101%", "budget=%", "budget=nan%",
     "budget=-1%", "every=99999999999999999999", "budget=inf%"],
)  # fmt: skip
def test_an_invalid_text_is_refused_and_quoted(trace):
    with pytest.raises(PolicyError) as caught:
        Policy.from_text(trace)
    assert repr(trace) in str(caught.value)
    assert "[trace-policy]" in str(caught.value)
    assert caught.value.exit_code == 2


def test_an_unknown_level_is_refused():
    with pytest.raises(PolicyError, match="'most' is not a trace level"):
        Policy.from_text("all", "most")


@given(st.text(max_size=20))
def test_any_text_is_valid_or_refused(text):
    with contextlib.suppress(PolicyError):
        assert Policy.from_words(Policy.from_text(text).words())


@given(st.tuples(*[st.integers(0, 2**64 - 1) | st.integers(0, 5)] * 6))
def test_words_make_a_policy_or_are_refused(words):
    try:
        policy = Policy.from_words(words)
    except PolicyError:
        return
    assert policy.mode in range(5)
    assert policy.words() == words


def test_the_default_is_one_percent():
    assert Policy.from_text("budget=1%") == DEFAULT
