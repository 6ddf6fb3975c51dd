"""Each name of a job has one id, which never changes."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tfprof.collector.decoders import interner as interner_module
from tfprof.collector.decoders.interner import KINDS, Interner, NamesFullError, PythonNames, name_table
from tfprof.collector.errors import FormatError
from tfprof.collector.store.schema import DEVICE, LABEL, NAMES, NODE, NONE_ID, OUTPUTS

TABLES = {"walker": name_table, "python": PythonNames}
BOTH_TABLES = pytest.mark.parametrize("implementation", list(TABLES))


def _table(implementation: str, names_max: int = 1 << 20, text_max: int = 1 << 20):
    return TABLES[implementation](names_max, text_max)


def _rows(names: pa.RecordBatch) -> list[tuple[int, int, bytes]]:
    assert names.schema == NAMES
    return [(row["kind"], row["id"], row["text"]) for row in names.to_pylist()]


def test_the_tables_of_the_c_decoder_and_of_python_are_two_classes() -> None:
    assert type(_table("walker")) is not type(_table("python"))


@BOTH_TABLES
def test_ids_are_dense_for_each_kind(implementation: str) -> None:
    names = Interner(_table(implementation))
    assert [names.id(NODE, text) for text in (b"a", b"b", b"a", b"")] == [0, 1, 0, 2]
    assert [names.id(OUTPUTS, text) for text in (b"b", b"a")] == [0, 1]
    assert names.table.get(NODE, 2) == b""
    with pytest.raises(IndexError):
        names.table.get(NODE, 3)


@BOTH_TABLES
def test_new_names_are_returned_once(implementation: str) -> None:
    names = Interner(_table(implementation))
    names.id(LABEL, b"x")
    names.id(NODE, b"a")
    assert _rows(names.new_names()) == [(NODE, 0, b"a"), (LABEL, 0, b"x")]
    names.id(NODE, b"b")
    names.id(NODE, b"a")
    assert _rows(names.new_names()) == [(NODE, 1, b"b")]
    assert _rows(names.new_names()) == []


@BOTH_TABLES
def test_an_interner_continues_after_the_stored_names(implementation: str) -> None:
    names = Interner(_table(implementation))
    for number in range(100):
        names.id(NODE, b"%d" % number)
        names.id(DEVICE, b"%d" % (number % 3))
    restored = Interner.from_names(names.new_names(), _table(implementation))
    assert _rows(restored.new_names()) == []
    assert (restored.id(NODE, b"57"), restored.id(NODE, b"new"), restored.id(DEVICE, b"2")) == (57, 100, 2)
    assert _rows(restored.new_names()) == [(NODE, 100, b"new")]


@pytest.mark.parametrize("rows", [[(NODE, 1, b"a")], [(NODE, 0, b"a"), (NODE, 1, b"a")], [(9, 0, b"a")]])
def test_stored_names_with_a_gap_a_duplicate_or_an_unknown_kind_are_refused(rows: list[tuple[int, int, bytes]]) -> None:
    columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), NAMES, strict=True)]
    with pytest.raises(FormatError, match="does not follow"):
        Interner.from_names(pa.RecordBatch.from_arrays(columns, schema=NAMES))


@BOTH_TABLES
def test_a_rollback_removes_unstored_names(implementation: str) -> None:
    names = Interner(_table(implementation))
    names.id(NODE, b"a")
    names.new_names()
    mark = names.mark()
    names.id(NODE, b"b")
    names.id(LABEL, b"x")
    removed = _rows(names.new_names())
    names.rollback(mark)
    assert names.id(NODE, b"b") == 1
    assert names.id(LABEL, b"x") == 0
    assert _rows(names.new_names()) == removed


@BOTH_TABLES
def test_after_a_rollback_names_that_were_new_at_the_mark_are_new_again(implementation: str) -> None:
    names = Interner(_table(implementation))
    names.id(NODE, b"a")
    mark = names.mark()
    names.new_names()
    names.rollback(mark)
    assert _rows(names.new_names()) == [(NODE, 0, b"a")]


@BOTH_TABLES
def test_a_full_table_finds_its_names_and_refuses_new_ones(implementation: str) -> None:
    names = Interner(_table(implementation, names_max=2))
    assert [names.id(NODE, text) for text in (b"a", b"b", b"a")] == [0, 1, 0]
    with pytest.raises(NamesFullError) as caught:
        names.id(NODE, b"c")
    assert caught.value.slug == "too-many-names"
    assert names.id(LABEL, b"c") == 0
    assert names.table.add(NODE, b"c") == NONE_ID


@BOTH_TABLES
def test_text_is_bounded_and_a_cut_frees_room(implementation: str) -> None:
    table = _table(implementation, text_max=5)
    assert table.add(NODE, b"abc") == 0
    counts = table.counts()
    assert table.add(LABEL, b"de") == 0
    assert table.add(OUTPUTS, b"f") == NONE_ID
    table.cut(counts)
    assert table.add(OUTPUTS, b"fg") == 0


@settings(max_examples=100)
@given(
    st.lists(
        st.one_of(
            st.tuples(
                st.sampled_from(KINDS), st.one_of(st.binary(max_size=40), st.integers(0, 90).map(lambda n: b"%d" % n))
            ),
            st.just("mark"),
            st.just("cut"),
        ),
        max_size=200,
    )
)
def test_both_tables_give_the_same_ids(actions: list) -> None:
    walker, python = _table("walker", 60, 1500), _table("python", 60, 1500)
    marks = [walker.counts()]
    for action in actions:
        if action == "mark":
            marks.append(walker.counts())
        elif action == "cut":
            counts = tuple(map(min, marks.pop() if len(marks) > 1 else marks[0], walker.counts()))
            walker.cut(counts)
            python.cut(counts)
        else:
            assert walker.add(*action) == python.add(*action)
        assert walker.counts() == python.counts()
    for kind, count in zip(KINDS, walker.counts(), strict=True):
        assert [walker.get(kind, number) for number in range(count)] == [
            python.get(kind, number) for number in range(count)
        ]


def test_many_names_are_found_again() -> None:
    table = _table("walker")
    texts = [b"node/%d/with/a/longer/name" % number for number in range(20_000)]
    assert [table.add(NODE, text) for text in texts] == list(range(20_000))
    assert [table.add(NODE, text) for text in texts] == list(range(20_000))


@BOTH_TABLES
def test_unknown_kinds_are_refused(implementation: str) -> None:
    with pytest.raises(IndexError):
        _table(implementation).add(5, b"a")


def test_a_build_without_the_walker_keeps_names_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interner_module, "walker", None)
    assert isinstance(name_table(), PythonNames)
