"""The tree of a job's spans."""

from fakes.made_store import MS, rows, span
from tfprof.collector.summaries.spans import SpanNode, span_tree
from tfprof.formats import layout


def lines(tree: list[SpanNode]) -> list[tuple[int, str, str, int, int]]:
    """Return depth, kind, label, number of spans and total time (ms) of each line of the tree."""
    return [(node.depth, node.kind, node.label, node.count, node.total_ns // MS) for node in tree]


def fit(ordinal: int, start: float, epochs: int) -> list[dict[str, int]]:
    """Return a fit with epochs of 100 ms, each with four batches of 20 ms."""
    spans = [span(layout.FIT, ordinal, start, 100 * epochs)]
    for epoch in range(epochs):
        number, at = 10 * ordinal + epoch, start + 100 * epoch
        spans.append(span(layout.EPOCH, number, at, 100))
        spans += [span(layout.BATCH, 4 * number + n, at + 20 * n, 20, parent=number) for n in range(4)]
    return spans


def test_batches_are_below_epochs_and_epochs_below_fits() -> None:
    tree = span_tree(rows("spans", [*fit(1, 0, 2), *fit(2, 500, 1)]), live=False)
    assert lines(tree) == [
        (0, "fit", "1", 1, 200),
        (1, "epoch", "10", 1, 100),
        (2, "batch", "", 4, 80),
        (1, "epoch", "11", 1, 100),
        (2, "batch", "", 4, 80),
        (0, "fit", "2", 1, 100),
        (1, "epoch", "20", 1, 100),
        (2, "batch", "", 4, 80),
    ]
    assert tree[2].mean_ns == 20 * MS


def test_running_spans_enclose_ended_ones() -> None:
    spans = [row for row in fit(1, 0, 2) if row["kind"] != layout.FIT and row["ordinal"] != 11]
    tree = span_tree(rows("spans", spans), live=True)
    assert [(node.kind, node.label, node.running) for node in tree] == [
        ("fit", "", True),
        ("epoch", "10", False),
        ("batch", "", False),
        ("epoch", "11", True),
        ("batch", "", False),
    ]
    assert span_tree(rows("spans", spans), live=False)[0].label == "unfinished"
    assert tree[0].mean_ns is None


def test_batches_outside_of_an_epoch_are_separate() -> None:
    tree = span_tree(rows("spans", [span(layout.BATCH, 1, 0, 5)]), live=False)
    assert lines(tree) == [(0, "batch", "outside of an epoch", 1, 5)]


def test_session_runs_have_one_line_per_key_the_longest_first() -> None:
    spans = [span(layout.RUN, 1, 0, 1, key=1 << 20), span(layout.RUN, 2, 1, 9, key=1 << 24, count=3)]
    assert lines(span_tree(rows("spans", spans), live=False)) == [
        (0, "run", "1 fetch", 3, 9),
        (0, "run", "1 target", 1, 1),
    ]


def test_steps_of_an_evaluation_are_below_it() -> None:
    spans = [span(layout.EVALUATE, 1, 0, 10), span(layout.TEST_BATCH, 1, 0, 4), span(layout.TEST_BATCH, 2, 4, 4)]
    assert lines(span_tree(rows("spans", spans), live=False)) == [
        (0, "evaluate", "", 1, 10),
        (1, "test_batch", "", 2, 8),
    ]


def test_without_spans_there_are_no_lines() -> None:
    assert span_tree(rows("spans", []), live=True) == []
