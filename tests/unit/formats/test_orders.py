"""Orders and answers as JSON: they round-trip, and invalid ones are refused."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tfprof.formats import orders
from tfprof.formats.errors import FormatError
from tfprof.formats.orders import Giver, Order, OrderAnswer

GIVER = Giver("ann", "node7", 42)


@pytest.mark.parametrize(
    ("order", "text", "ends_by_itself"),
    [
        (Order(orders.TRACE, GIVER, steps=10), "the next 10 steps", True),
        (Order(orders.TRACE, GIVER, steps=1), "the next step", True),
        (Order(orders.TRACE, GIVER, for_ns=5 * 10**9), "every step for 5 s", True),
        (Order(orders.TRACE, GIVER, "every=50", steps=3), "one step in 50, 3 steps", True),
        (Order(orders.TRACE, GIVER, "every=50", steps=1), "one step in 50, 1 step", True),
        (Order(orders.TRACE, GIVER, "every=1"), "every step", False),
        (Order(orders.TRACE, GIVER, "budget=0.5%", "software"), "a budget of 0.5%", False),
        (Order(orders.TRACE, GIVER, "steps=10-20,30"), "steps 10-20,30", True),
        (Order(orders.TRACE, GIVER, "off", for_ns=5 * 10**8), "no step for 0.5 s", True),
        (Order(orders.END, GIVER), "the order in force ends", False),
        (Order(orders.DETACH, GIVER), "detach", False),
    ],
)
def test_an_order_round_trips_and_has_a_text(order: Order, text: str, ends_by_itself: bool) -> None:
    assert orders.order_of(json.loads(json.dumps(order.document()))) == order
    assert (str(order), order.ends_by_itself) == (text, ends_by_itself)


def test_an_answer_round_trips() -> None:
    answer = OrderAnswer(7, orders.ENDED, "", "", "train", 5, 10, 100, 200)
    assert orders.answer_of(7, json.loads(json.dumps(answer.document()))) == answer
    assert OrderAnswer(7, orders.REFUSED, "no-agent", "none").is_temporary
    assert not OrderAnswer(7, orders.REFUSED, "job-gone", "gone").is_temporary


@pytest.mark.parametrize(
    "changes",
    [
        {"giver": None},
        {"giver": {"user": 1}},
        {"giver": {"pid": -1}},
        {"action": "halt"},
        {"action": 3},
        {"trace": "sometimes"},
        {"trace": ["all"]},
        {"level": "loud"},
        {"steps": -1},
        {"steps": True},
        {"steps": 1 << 63},
        {"for_ns": 0.5},
        {"patience_s": 0},
        {"patience_s": 1e9},
        {"patience_s": "10"},
    ],
)
def test_an_invalid_order_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(orders.OrderError):
        orders.order_of({**Order(orders.TRACE, GIVER).document(), **changes})


@given(
    st.dictionaries(
        st.sampled_from(["state", "slug", "text", "kind", "step", "traced", "from_ns"]), st.integers() | st.text()
    )
)
def test_any_answer_is_valid_or_refused(values: dict[str, object]) -> None:
    with contextlib.suppress(FormatError):
        assert orders.answer_of(1, values).state in (orders.OBEYED, orders.ENDED, orders.REFUSED)


def test_a_long_name_of_a_giver_is_cut() -> None:
    order = orders.order_of(
        {**Order(orders.TRACE, GIVER).document(), "giver": {"user": "x" * 10**6, "host": "h", "pid": 1}}
    )
    assert len(order.giver.user) == 64
