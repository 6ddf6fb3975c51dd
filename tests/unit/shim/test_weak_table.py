"""Tables with weak keys: an entry is removed with its key, and no Python code runs then."""

import gc
import sys
import weakref
from typing import Any

import pytest
from tfprof.shim.weak_table import WeakTable


class Thing:
    """A key or value that is equal to all others and not hashable."""

    def __eq__(self, _other):
        return True

    __hash__: Any = None
    itself: Any = None


@pytest.fixture
def things():
    return [Thing(), Thing()]


def test_values_are_found_by_identity(things):
    table = WeakTable()
    table.set(things[0], "a")
    assert (table.get(things[0]), table.get(things[1])) == ("a", None)
    assert things[0] in table
    assert things[1] not in table
    table.set(things[1])
    assert (len(table), [id(key) for key in table.existing()]) == (2, [id(key) for key in things])
    table.set(things[0], "b")
    assert (len(table), table.get(things[0])) == (2, "b")
    table.clear()
    assert (len(table), table.existing()) == (0, [])


def test_an_entry_is_removed_with_its_key(things):
    table = WeakTable()
    value = Thing()
    table.set(things[0], value)
    table.set(things[0], value)  # replaces the entry
    table.set(things[1], things)  # a cycle: the key is in its value
    reference = weakref.ref(value)
    del value, things[0]
    assert (len(table), reference()) == (1, None)


def test_an_entry_is_removed_with_a_key_in_a_cycle():
    table = WeakTable()
    key = Thing()
    key.itself = key
    table.set(key)
    del key
    gc.collect()
    assert (len(table), table.existing()) == (0, [])


def test_no_python_code_runs_when_a_key_is_deleted(things):
    table, called_names = WeakTable(), []
    for key in things:
        table.set(key)
    del key
    sys.setprofile(lambda frame, event, _arg: called_names.append(frame.f_code.co_name) if event == "call" else None)
    things.clear()
    sys.setprofile(None)
    assert (len(table), called_names) == (0, [])
