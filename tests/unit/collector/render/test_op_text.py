"""The op view's text in cases that the comparison with TensorFlow's own text does not cover."""

from fakes.nodes import GPU, node
from tfprof.collector.render.legends import COLUMN_TEXTS, columns
from tfprof.collector.render.op_text import lines
from tfprof.collector.tfviews.op import op_view
from tfprof.collector.tfviews.option_values import SELECTS
from tfprof.collector.tfviews.options import Options


def rows(*nodes: object, select: set[str]) -> list[str]:
    """Return the text after the legend."""
    options = Options(select=frozenset(select))
    text = list(lines(op_view(nodes, options), options.select))  # type: ignore[arg-type]
    return text[text.index("Profile:") + 2 :]


def test_every_selectable_column_has_a_heading_in_the_order_of_the_legend() -> None:
    assert set(COLUMN_TEXTS) == set(SELECTS) - {"tensor_value"}  # no column, as in the TF profiler
    assert columns(frozenset({"occurrence", "bytes", "device"})) == ["bytes", "device", "occurrence"]


def test_selecting_micros_also_selects_its_two_parts() -> None:
    assert columns(frozenset({"micros"})) == ["micros", "accelerator_micros", "cpu_micros"]


def test_shares_are_0_if_the_own_bytes_or_the_running_total_of_a_time_is_not_positive() -> None:
    text = rows(
        node("a", "Add", bytes=-5, cpu_micros=0),
        node("b", "Mul", bytes=10, cpu_micros=4),
        select={"bytes", "cpu_micros"},
    )
    assert text[0].split() == ["Add", "-5B", "(0.00%,", "0.00%),", "0us", "(100.00%,", "0.00%)"]


def test_nodes_that_never_ran_leave_an_empty_first_device() -> None:
    text = rows(node("a", "Add", ""), node("b", "Add", GPU.lower()), select={"device"})
    assert text == [f"{'Add':<25}|{GPU.lower()}"]
