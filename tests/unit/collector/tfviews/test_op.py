"""The op view's rules, on nodes made by hand.

An integration test compares the view with TensorFlow's own.
"""

from fakes.nodes import node
from tfprof.collector.tfviews.nodes import Stats
from tfprof.collector.tfviews.op import op_view
from tfprof.collector.tfviews.options import Options

NODES = [
    node("a", "MatMul", micros=50, bytes=5),
    node("b", "Conv2D", micros=30, bytes=100),
    node("c", "Conv2D", micros=40, bytes=200),
    node("d", "Const", ""),
]


def shown_names(**options: object) -> list[str]:
    """Return the names of the entries that a view of NODES shows."""
    return [entry.name for entry in op_view(NODES, Options(**options)).entries]  # type: ignore[arg-type]


def test_each_op_type_has_own_sums_and_a_running_total() -> None:
    view = op_view(NODES, Options())
    assert [(entry.name, entry.own.micros, entry.running_total.micros) for entry in view.entries] == [
        ("Const", 0, 120),
        ("Conv2D", 70, 120),
        ("MatMul", 50, 50),
    ]
    assert view.total.micros == 120


def test_order_is_by_own_values_descending_and_ties_keep_the_name_order() -> None:
    assert shown_names(order_by="micros") == ["Conv2D", "MatMul", "Const"]
    assert shown_names(order_by="occurrence") == ["Conv2D", "Const", "MatMul"]
    assert shown_names(order_by="params") == ["Const", "Conv2D", "MatMul"]


def test_depth_counts_from_the_start_entry() -> None:
    assert shown_names(max_depth=1) == ["Const", "Conv2D"]
    assert shown_names(max_depth=1, start_name_regexes=("Conv2D",)) == ["Conv2D", "MatMul"]
    assert shown_names(max_depth=0, start_name_regexes=("Conv2D",)) == ["Conv2D"]


def test_min_occurrence_applies_to_the_number_of_nodes_and_other_minima_to_running_totals() -> None:
    assert shown_names(min_bytes=1) == ["Const", "Conv2D", "MatMul"]
    assert shown_names(min_bytes=6) == ["Const", "Conv2D"]
    assert shown_names(min_occurrence=2) == ["Conv2D"]


def test_trim_stops_the_list_and_hide_omits_an_entry() -> None:
    assert shown_names(trim_name_regexes=("Conv.*",)) == ["Const"]
    assert shown_names(hide_name_regexes=("Conv.*",)) == ["Const", "MatMul"]
    assert shown_names(show_name_regexes=("M.*",)) == ["MatMul"]


def test_a_start_without_a_match_shows_nothing_and_an_empty_start_everything() -> None:
    assert shown_names(start_name_regexes=("Nothing",)) == []
    assert shown_names(start_name_regexes=()) == ["Const", "Conv2D", "MatMul"]


def test_a_node_that_two_account_regexes_match_counts_twice_in_the_sums_and_once_as_a_node() -> None:
    (entry,) = op_view(NODES, Options(account_type_regexes=("Conv2D", "C.*2D"))).entries
    assert (entry.own.micros, len(entry.nodes)) == (140, 2)


def test_devices_are_op_types_too() -> None:
    view = op_view(NODES, Options(account_type_regexes=(".*cpu:0",)))
    assert [entry.name for entry in view.entries] == ["Conv2D", "MatMul"]


def test_totals_can_cover_shown_entries_only() -> None:
    view = op_view(NODES, Options(show_name_regexes=("M.*",), account_displayed_op_only=True))
    assert view.total.micros == 50
    assert op_view(NODES, Options(show_name_regexes=("M.*",))).total.micros == 120


def test_a_view_without_nodes_is_empty() -> None:
    view = op_view([], Options())
    assert (view.entries, view.total, view.op_types) == ((), Stats(), 0)
