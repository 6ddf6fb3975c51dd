"""Stacks of nodes from rows of the store."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest
from fakes.made_store import rows
from tfprof.collector.decoders.frames import frames
from tfprof.collector.store.schema import FRAMES, STACKS
from tfprof.collector.tfviews.nodes import Frame
from tfprof.collector.tfviews.stacks import FRAME_COLUMNS, stacks

A, B, C = Frame("a.py", 1, "f", 1, "call()"), Frame("a.py", 2, "f"), Frame("b.py", 1, "é", -1, "x = 1")


def frame_rows(graph: int, *graph_stacks: Iterable[Frame]) -> list[dict[str, Any]]:
    """Return the rows of the stacks of one graph."""
    return [
        {"graph": graph, "stack": stack, "position": position, **frame._asdict()}
        for stack, all_frames in enumerate(graph_stacks)
        for position, frame in enumerate(all_frames)
    ]


def stack_rows(graph: int, **numbers: int) -> list[dict[str, Any]]:
    return [{"graph": graph, "name": name, "stack": stack} for name, stack in numbers.items()]


def test_nodes_share_frames_which_are_outermost_first() -> None:
    result = stacks(rows("frames", frame_rows(0, [A, B, C], [A, C])), rows("stacks", stack_rows(0, x=0, y=1, z=0)))
    assert result == {"x": (A, B, C), "y": (A, C), "z": (A, B, C)}
    assert result["x"] is result["z"]
    assert result["x"][0] is result["y"][0]


def test_if_two_graphs_have_a_node_of_one_name_the_first_graph_counts() -> None:
    frame_table = rows("frames", [*frame_rows(1, [A]), *frame_rows(4, [B], [C])])
    assert stacks(frame_table, rows("stacks", [*stack_rows(1, x=0), *stack_rows(4, x=0, y=1)])) == {
        "x": (A,),
        "y": (C,),
    }


def test_frames_that_differ_in_any_field_are_not_shared() -> None:
    variants = [A, *(A._replace(**{name: value}) for name, value in C._asdict().items() if value != getattr(A, name))]
    assert len(variants) == 5
    assert stacks(rows("frames", frame_rows(0, variants)), rows("stacks", stack_rows(0, x=0))) == {"x": tuple(variants)}


def test_many_files_lines_and_functions_are_distinguished(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfprof.collector.tfviews.stacks._PACKED_MAX", 4)
    distinct_frames = [Frame(f"{n % 2}.py", n % 3, f"f{n % 5}") for n in range(30)]
    assert stacks(
        rows("frames", frame_rows(0, distinct_frames, distinct_frames[::-1])), rows("stacks", stack_rows(0, x=0, y=1))
    ) == {
        "x": tuple(distinct_frames),
        "y": tuple(distinct_frames[::-1]),
    }


def test_an_empty_and_a_missing_stack_are_empty() -> None:
    assert stacks(FRAMES.empty_table(), rows("stacks", stack_rows(0, x=0))) == {"x": ()}
    assert stacks(rows("frames", frame_rows(0, [], [A])), rows("stacks", stack_rows(0, x=0, y=1, z=7))) == {
        "x": (),
        "y": (A,),
        "z": (),
    }
    assert stacks(FRAMES.empty_table(), STACKS.empty_table()) == {}


def test_tables_may_be_chunked_and_lack_columns() -> None:
    frame_tables = [rows("frames", frame_rows(graph, [A, B], [C])).select(FRAME_COLUMNS) for graph in (0, 1)]
    stack_table = pa.concat_tables([rows("stacks", stack_rows(0, x=1)), rows("stacks", stack_rows(1, y=0))])
    assert stacks(pa.concat_tables(frame_tables), stack_table) == {"x": (C,), "y": (A, B)}


def test_a_sent_stack_is_read_back_unchanged() -> None:
    record = b"""{"files": ["t.py"], "functions": ["f", "g"], "frames": [[0, 3, 0], [0, 4, 1]],
        "stacks": [[0, 1], [1]], "nodes": {"x": 0, "y": 1, "z": 0}}"""
    decoded = frames(record, 2)
    result = stacks(pa.Table.from_batches([decoded.frames]), pa.Table.from_batches([decoded.stacks]))
    outer, inner = Frame("t.py", 3, "f"), Frame("t.py", 4, "g")
    assert result == {"x": (outer, inner), "y": (inner,), "z": (outer, inner)}


def test_nodes_that_a_graph_gets_later_have_their_own_stacks() -> None:
    texts = [
        b'{"files": ["t.py"], "functions": ["f"], "frames": [[0, %d, 0]], "stacks": [[0]], "nodes": {"%b": 0}%b}' % row
        for row in ((3, b"x", b""), (9, b"y", b', "first_stack": 1'))
    ]
    records = [frames(text, 2) for text in texts]
    frame_table, stack_table = (pa.Table.from_batches([r[at] for r in records]) for at in (0, 1))
    assert stacks(frame_table, stack_table) == {"x": (Frame("t.py", 3, "f"),), "y": (Frame("t.py", 9, "f"),)}


def test_the_largest_numbers_of_graphs_and_stacks_are_found() -> None:
    last = (1 << 32) - 1
    frame_dicts = [{"graph": last, "stack": last, "position": 0, **A._asdict()}]
    assert stacks(rows("frames", frame_dicts), rows("stacks", stack_rows(last, x=last))) == {"x": (A,)}
