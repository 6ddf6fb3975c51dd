"""tfprof's options: texts to values, defaults, refusals."""

import pytest
from tfprof.collector.errors import UsageError
from tfprof.collector.views.options import ORDERS, SELECTS, Matcher, Options, from_texts, pieces


def test_options_not_given_have_the_defaults_of_tfprofs_shell() -> None:
    assert from_texts({}) == Options()
    assert (Options().max_depth, Options().step, Options().order_by, Options().select) == (10, -1, "name", {"micros"})


def test_lists_are_split_at_commas_quotes_stripped_and_empty_pieces_dropped() -> None:
    assert pieces("'a',, \"b\" ,c") == ["a", "b", "c"]
    assert from_texts({"select": "micros,,bytes"}).select == {"micros", "bytes"}


def test_an_empty_list_of_regexes_is_kept_empty() -> None:
    assert from_texts({"account_type_regexes": ""}).account_type_regexes == ()


@pytest.mark.parametrize("select", SELECTS)
def test_every_select_is_accepted(select: str) -> None:
    assert from_texts({"select": select}).select == {select}


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_is_accepted(order: str) -> None:
    assert from_texts({"order_by": order}).order_by == order


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        ("max_depth", "four", "a whole number"),
        ("order_by", "colour", "one of name"),
        ("select", "micros,colour", "one of bytes"),
        ("select", "", "one of bytes"),
        ("show_name_regexes", "((", "not a regular expression"),
        ("account_displayed_op_only", "perhaps", "true or false"),
    ],
)
def test_a_bad_value_is_refused_in_tfprofs_words_with_a_hint(name: str, text: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        from_texts({name: text})
    assert f"Invalid option '-{name}' value: '" in str(refused.value)
    assert hint in str(refused.value)
    assert refused.value.exit_code == 2


@pytest.mark.parametrize(("text", "value"), [("true", True), ("T", True), ("1", True), ("no", False), ("F", False)])
def test_truth_may_be_spelled_as_in_tfprofs_shell(text: str, value: bool) -> None:
    assert from_texts({"account_displayed_op_only": text}).account_displayed_op_only is value


def test_a_regex_matches_the_whole_name_only() -> None:
    matches = Matcher(("Conv2D", "Mat.*"))
    assert [matches(name) for name in ("Conv2D", "Conv2DBackpropInput", "MatMul", "xMatMul")] == [
        True,
        False,
        True,
        False,
    ]


def test_no_regex_matches_nothing_and_the_one_of_all_everything() -> None:
    assert not Matcher(())("Conv2D")
    assert Matcher((".*",))("any\nthing")


def test_every_minimum_is_looked_at_so_that_negative_totals_are_hidden() -> None:
    minima = dict(from_texts({"min_bytes": "1"}).minima)
    assert minima.pop("bytes") == 1
    assert set(minima.values()) == {0}
