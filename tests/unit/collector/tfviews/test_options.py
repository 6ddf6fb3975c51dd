"""The TF profiler's options: parsing, defaults, errors."""

import pytest
from tfprof.collector.errors import UsageError
from tfprof.collector.tfviews.option_values import ORDERS, SELECTS, OutputChoice, pieces
from tfprof.collector.tfviews.options import (
    TABLE,
    Options,
    from_dict,
    from_texts,
    warnings,
)
from tfprof.collector.tfviews.parity import Parity


def test_omitted_options_have_the_defaults_of_the_tf_profilers_shell() -> None:
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
        ("max_depth", "", "a whole number"),
        ("max_depth", "1_000", "a whole number"),
        ("max_depth", "+5", "a whole number"),
        ("max_depth", "٣", "a whole number"),
        ("min_micros", "9223372036854775808", "64 bits"),
        ("min_micros", "9" * 5000, "64 bits"),
        ("min_bytes", "1.5", "a whole number"),
        ("min_occurrence", "10%", "or for example 2k)"),
        ("step", "-9223372036854775809", "64 bits"),
        ("order_by", "colour", "one of name"),
        ("select", "micros,colour", "one of bytes"),
        ("select", "", "one of bytes"),
        ("show_name_regexes", "((", "not a regular expression"),
        ("account_displayed_op_only", "perhaps", "true or false"),
    ],
)
def test_a_bad_value_is_refused_with_the_tf_profilers_message_and_a_hint(name: str, text: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        from_texts({name: text})
    assert f"Invalid option '-{name}' value: '" in str(refused.value)
    assert hint in str(refused.value)
    assert refused.value.exit_code == 2


@pytest.mark.parametrize(("text", "value"), [("true", True), ("T", True), ("1", True), ("no", False), ("F", False)])
def test_booleans_are_spelled_as_in_the_tf_profilers_shell(text: str, value: bool) -> None:
    assert from_texts({"account_displayed_op_only": text}).account_displayed_op_only is value


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("min_micros", "1ms", 1000),
        ("min_micros", "1.5 ms", 1500),
        ("min_cpu_micros", "2s", 2_000_000),
        ("min_micros", "7", 7),
        ("min_bytes", "10MB", 10_000_000),
        ("min_peak_bytes", "4KiB", 4096),
        ("min_output_bytes", "1.5K", 1536),
        ("min_params", "2M", 2_000_000),
        ("min_float_ops", "0.5g", 500_000_000),
        ("min_occurrence", "2k", 2000),
    ],
)
def test_minima_may_have_units(name: str, text: str, value: int) -> None:
    assert getattr(from_texts({name: text}), name) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [("min_micros", "1MB"), ("min_bytes", "1ms"), ("min_params", "1.5"), ("max_depth", "2k"), ("min_micros", "1e3")],
)
def test_a_unit_of_another_quantity_is_refused(name: str, text: str) -> None:
    with pytest.raises(UsageError, match=f"Invalid option '-{name}' value"):
        from_texts({name: text})


def test_attributes_have_names_of_today() -> None:
    options = from_texts({"select": "time,memory,flops", "order_by": "peak_memory"})
    assert (options.select, options.order_by) == (frozenset({"micros", "bytes", "float_ops"}), "peak_bytes")


def test_every_minimum_applies_so_that_negative_totals_are_hidden() -> None:
    minima = dict(from_texts({"min_bytes": "1"}).minima)
    assert minima.pop("bytes") == 1
    assert set(minima.values()) == {0}


def test_numbers_may_have_64_bits_and_be_negative() -> None:
    options = from_texts(
        {"min_micros": "9223372036854775807", "step": "-9223372036854775808", "max_depth": " 7 "},
        parity=Parity(exact=True),
    )
    assert (options.min_micros, options.step, options.max_depth) == (2**63 - 1, -(2**63), 7)


def test_omitted_options_are_taken_from_the_base() -> None:
    base = from_texts({"max_depth": "4", "select": "bytes"})
    options = from_texts({"select": "micros"}, base)
    assert (options.max_depth, options.select) == (4, {"micros"})


def test_with_exact_parity_a_bad_regex_is_a_warning() -> None:
    options = from_texts({"show_name_regexes": "((,a"}, parity=Parity(exact=True))
    assert options.show_name_regexes == ("((", "a")
    assert warnings(options) == ["-show_name_regexes '((' matches nothing: missing ): (("]


def test_every_option_has_a_row_and_help_for_every_view() -> None:
    assert [*(option.name for option in TABLE), "explicit", "top", "by"] == list(Options.__dataclass_fields__)
    assert all(option.help_for(view).endswith(".") or "(" in option.help for option in TABLE for view in ("op", "code"))
    rows = {option.name: option for option in TABLE}
    assert rows["max_depth"].help_for("op") != rows["max_depth"].help_for("scope") == rows["max_depth"].help_for("code")


def test_an_empty_dict_has_the_defaults_of_tensorflows_python() -> None:
    options = from_dict({})
    assert (options.max_depth, options.step, options.order_by, options.select) == (10, -1, "name", set())
    assert options.account_type_regexes == options.start_name_regexes == options.show_name_regexes == ()
    assert (options.output, options.account_displayed_op_only) == (OutputChoice(), False)


def test_orders_columns_and_keys_of_a_dict_are_not_checked() -> None:
    python_options = {
        "order_by": "colour",
        "select": ["colour"],
        "viz": True,
        "show_name_regexes": ["(("],
        "trim_name_regexes": {"a"},
    }
    options = from_dict(python_options)
    assert (options.order_by, options.select, options.show_name_regexes) == ("colour", {"colour"}, ("((",))
    assert options.trim_name_regexes == ("a",)


def test_dump_to_file_takes_precedence() -> None:
    assert from_dict({"output": "none", "dump_to_file": "f"}).output == OutputChoice("file", "f")
    assert from_dict({"output": "none", "dump_to_file": ""}).output == OutputChoice("none")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_depth", "4"),
        ("max_depth", 4.0),
        ("max_depth", None),
        ("max_depth", True),
        ("max_depth", 2**63),
        ("step", -(2**63) - 1),
        ("order_by", None),
        ("order_by", 4),
        ("order_by", b"\xff"),
        ("select", None),
        ("select", "micros"),
        ("select", [1]),
        ("account_type_regexes", ".*"),
        ("show_name_regexes", ["\ud800"]),
        ("account_displayed_op_only", "true"),
        ("account_displayed_op_only", None),
        ("output", None),
        ("dump_to_file", 1),
    ],
)
def test_a_value_of_the_wrong_type_in_a_dict_is_refused(name: str, value: object) -> None:
    with pytest.raises(UsageError) as refused:
        from_dict({name: value})
    assert f"'-{name}'" in str(refused.value)
