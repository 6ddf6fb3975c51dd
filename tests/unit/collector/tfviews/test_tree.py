"""The tree of scope, graph and code view: shown entries, order, totals."""

from tfprof.collector.tfviews.nodes import NO_STATS, Stats
from tfprof.collector.tfviews.options import Options
from tfprof.collector.tfviews.parity import Parity
from tfprof.collector.tfviews.tree import AccountedNode, Branch, TreeView, root_of, tree_view


def make_entry(name: str, *children: AccountedNode, **stats: int) -> AccountedNode:
    """Return an accounted entry."""
    return AccountedNode(name, Stats(**stats), (), children, accounted=True)


def tree() -> AccountedNode:
    """Return a root above a(b(d, e), c), whose micros are different powers of two."""
    inner = make_entry("b", make_entry("d", micros=8), make_entry("e", micros=16, bytes=5, params=3, runs=2), micros=2)
    return root_of([make_entry("a", inner, make_entry("c", micros=4), micros=1)])


def view(**options: object) -> TreeView:
    """Return the view of ``tree()``."""
    all_options = Options(**{"max_depth": 100, **options})  # type: ignore[arg-type]
    return tree_view(tree(), all_options, nodes=5, accounted=frozenset("abcde"))


def text(branch: Branch) -> str:
    """Return a tree as text: names, totals of micros, definitions."""
    children = " ".join(map(text, branch.children))
    suffix = f"({children})" if children else ""
    return f"{branch.name.replace('_TFProfRoot', 'root')}:{branch.total.micros}:{branch.definitions}" + suffix


def shown_text(**options: object) -> str:
    """Return the shown tree as text."""
    return text(view(**options).root)


WHOLE_TREE = "root:31:5(a:31:5(b:26:3(d:8:1 e:16:1) c:4:1))"


def test_a_total_includes_all_entries_below_and_the_root_is_no_definition() -> None:
    assert shown_text() == WHOLE_TREE


def test_depth_counts_from_the_root_which_is_always_shown() -> None:
    assert shown_text(max_depth=3) == "root:31:5(a:31:5(b:26:3 c:4:1))"
    assert shown_text(max_depth=1) == shown_text(max_depth=0) == shown_text(max_depth=-1) == "root:31:5"


def test_a_hidden_entry_counts_as_a_level_and_its_children_move_up() -> None:
    assert shown_text(hide_name_regexes=("b",)) == "root:31:5(a:31:5(c:4:1 d:8:1 e:16:1))"
    assert shown_text(hide_name_regexes=("a", "b"), max_depth=3) == "root:31:5(c:4:1)"


def test_minima_apply_to_totals_except_runs_parameters_and_float_ops() -> None:
    assert shown_text(min_micros=5) == "root:31:5(a:31:5(b:26:3(d:8:1 e:16:1)))"
    assert shown_text(min_bytes=5) == "root:31:5(a:31:5(b:26:3(e:16:1)))"
    assert shown_text(min_params=1) == shown_text(min_occurrence=2) == "root:31:5(e:16:1)"
    assert shown_text(min_occurrence=3) == shown_text(min_float_ops=1) == "root:31:5"


def test_a_trim_hides_what_is_below_a_match_not_the_match() -> None:
    assert shown_text(trim_name_regexes=("b",)) == "root:31:5(a:31:5(b:26:3 c:4:1))"
    assert shown_text(trim_name_regexes=("_TFProfRoot",)) == "root:31:5"


def test_a_start_replaces_the_entries_below_the_root_and_the_total_of_the_root_stays() -> None:
    assert shown_text(start_name_regexes=("b", "c", "d")) == "root:31:5(b:26:3(d:8:1 e:16:1) c:4:1)"
    assert shown_text(start_name_regexes=("x",)) == shown_text(start_name_regexes=()) == "root:31:5"


def test_totals_of_displayed_entries_include_the_root() -> None:
    assert (
        shown_text(account_displayed_op_only=True, hide_name_regexes=("b",)) == "root:29:5(a:29:4(c:4:1 d:8:1 e:16:1))"
    )


def test_children_are_sorted_by_totals_or_names_or_not_at_all() -> None:
    assert shown_text(order_by="micros") == "root:31:5(a:31:5(b:26:3(e:16:1 d:8:1) c:4:1))"
    assert shown_text(order_by="cpu_micros", hide_name_regexes=("b",)) == "root:31:5(a:31:5(d:8:1 e:16:1 c:4:1))"
    assert shown_text(order_by="occurrence", hide_name_regexes=("b",)) == "root:31:5(a:31:5(c:4:1 d:8:1 e:16:1))"
    assert shown_text(order_by="", hide_name_regexes=("b",)) == "root:31:5(a:31:5(d:8:1 e:16:1 c:4:1))"


def test_equal_children_are_in_the_order_of_the_selected_version() -> None:
    names = [f"n{at:02}" for at in range(20)]
    root = root_of([make_entry(name) for name in names])
    all_options = Options(order_by="micros")
    orders = {
        version: [
            child.name
            for child in tree_view(root, all_options, Parity(version), nodes=0, accounted=frozenset()).root.children
        ]
        for version in ("2.21", "1.15")
    }
    assert orders["2.21"] == names
    assert orders["1.15"][:4] == ["n10", "n19", "n18", "n17"]


def test_sums_wrap_in_64_bits_as_in_the_tf_profiler() -> None:
    root = root_of([make_entry("a", bytes=2**63 - 1), make_entry("b", bytes=1)])
    assert root.total.bytes == -(2**63)


def test_a_minimum_of_0_hides_a_negative_total() -> None:
    root = root_of([make_entry("a", residual_bytes=-1), make_entry("b")])
    names = [child.name for child in tree_view(root, Options(), nodes=2, accounted=frozenset("ab")).root.children]
    assert names == ["b"]


def test_the_view_counts_the_entries_that_are_not_shown() -> None:
    result = view(start_name_regexes=("b",), hide_name_regexes=("b",), max_depth=2)
    assert (result.nodes, result.accounted_entries) == (5, 5)
    assert (result.outside_start, result.cut_off, result.hidden, result.shown) == (2, 2, 1, 0)
    result = view(trim_name_regexes=("b",), min_micros=5)
    assert result.accounted_entries == 5
    assert (result.outside_start, result.cut_off, result.hidden, result.shown) == (0, 2, 1, 2)


def test_a_chain_of_a_hundred_thousand_entries_is_walked() -> None:
    entry = make_entry("n", micros=1)
    for _ in range(100_000 - 1):
        entry = make_entry("n", entry, micros=1)
    result = tree_view(root_of([entry]), Options(max_depth=10**6), nodes=0, accounted=frozenset())
    assert result.shown == result.root.total.micros == result.root.definitions == 100_000
    assert result.root.own == NO_STATS
