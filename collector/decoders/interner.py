"""Interns the names of a job: maps them to dense ids, in the order of their first appearance."""

import os
from itertools import islice
from typing import Final, NamedTuple, Protocol

import pyarrow as pa

from ..errors import FormatError
from ..loader import load_extension
from ..store.schema import ALLOCATOR, DEVICE, LABEL, NAMES, NODE, NONE_ID, OUTPUTS
from .columns import from_rows

KINDS: Final = (NODE, DEVICE, LABEL, ALLOCATOR, OUTPUTS)
#: Maximum number of names of one kind, and bytes of all names, in a job; data with more is refused.
NAMES_MAX: Final = 1 << 20
TEXT_MAX: Final = 32 << 20
_BATCH_ROWS: Final = 16_384
#: The C decoder.
walker: Final = load_extension("decoders._walker")

Counts = tuple[int, ...]


class NameTable(Protocol):
    """Table of the names of each kind; names.h is the table of the C decoder."""

    def add(self, kind: int, text: bytes, /) -> int:
        """Return the id of a name, adding it if it is new; NONE_ID if the table is full."""

    def get(self, kind: int, number: int, /) -> bytes:
        """Return the name with id ``number``; IndexError if there is none."""

    def counts(self) -> Counts:
        """Return the number of names of each kind."""

    def cut(self, counts: Counts, /) -> None:
        """Keep only the first ``counts`` names of each kind."""


class PythonNames:
    """The name table of a build without the C decoder."""

    def __init__(self, names_max: int, text_max: int) -> None:
        self._ids: list[dict[bytes, int]] = [{} for _ in KINDS]
        self._texts: list[list[bytes]] = [[] for _ in KINDS]
        self._names_max = names_max
        self._text_room = text_max

    def add(self, kind: int, text: bytes, /) -> int:
        """Return the id of a name, adding it if it is new; NONE_ID if the table is full."""
        ids, texts = self._ids[kind], self._texts[kind]
        number = ids.get(text)
        if number is not None:
            return number
        if len(texts) >= self._names_max or self._text_room < len(text):
            return NONE_ID
        self._text_room -= len(text)
        ids[text] = len(texts)
        texts.append(text)
        return ids[text]

    def get(self, kind: int, number: int, /) -> bytes:
        """Return the name with id ``number``; IndexError if there is none."""
        return self._texts[kind][number]

    def counts(self) -> Counts:
        """Return the number of names of each kind."""
        return tuple(len(texts) for texts in self._texts)

    def cut(self, counts: Counts, /) -> None:
        """Keep only the first ``counts`` names of each kind."""
        for ids, texts, count in zip(self._ids, self._texts, counts, strict=True):
            for text in texts[count:]:
                del ids[text]
                self._text_room += len(text)
            del texts[count:]


class Mark(NamedTuple):
    """A state of an interner, to which it can be rolled back."""

    counts: Counts
    stored_counts: Counts


class NamesFullError(FormatError):
    """A job has more distinct names than NAMES_MAX or TEXT_MAX allow."""

    slug = "too-many-names"


class Interner:
    """The interned names of one job, and the number of names that are stored."""

    def __init__(self, table: NameTable | None = None) -> None:
        self.table = table or name_table()
        self._stored = self.table.counts()

    @classmethod
    def from_names(cls, names: pa.Table | pa.RecordBatch, table: NameTable | None = None) -> "Interner":
        """Return an interner with the names in ``names``, a stored NAMES table.

        FormatError if ids are missing.
        """
        interner = cls(table)
        interner.restore(names)
        return interner

    def restore(self, names: pa.Table | pa.RecordBatch) -> None:
        """Add the rows of a stored NAMES table.

        FormatError if their ids do not continue the present ones.
        """
        columns = (names.column(name).to_pylist() for name in ("kind", "id", "text"))
        for kind, number, text in sorted(zip(*columns, strict=True)):
            if kind not in KINDS or self.table.add(kind, text) != number:
                raise FormatError(f"name {number} of kind {kind} does not follow the names before it")
        self._stored = self.table.counts()

    def id(self, kind: int, text: bytes) -> int:
        """Return the id of a name, adding it if it is new; NamesFullError if the table is full."""
        number = self.table.add(kind, text)
        if number == NONE_ID:
            raise NamesFullError("more distinct names than a job may have")
        return number

    def new_names(self) -> pa.Table:
        """Return the NAMES rows interned since the last call."""
        counts = self.table.counts()
        new_ids = ((kind, number) for kind in KINDS for number in range(self._stored[kind], counts[kind]))
        batches = []
        # Names are converted in batches, since Python objects take ten times the memory.
        while batch := list(islice(new_ids, _BATCH_ROWS)):
            batches.append(from_rows([(kind, number, self.table.get(kind, number)) for kind, number in batch], "names"))
        self._stored = counts
        return pa.Table.from_batches(batches, NAMES)

    def mark(self) -> Mark:
        """Return the current state for ``rollback``."""
        return Mark(self.table.counts(), self._stored)

    def rollback(self, mark: Mark) -> None:
        """Remove the names that were added after ``mark``."""
        self.table.cut(mark.counts)
        self._stored = mark.stored_counts


def name_table(names_max: int = NAMES_MAX, text_max: int = TEXT_MAX) -> NameTable:
    """Return an empty table, that of the C decoder if it was built."""
    if walker is None:
        return PythonNames(names_max, text_max)
    table: NameTable = walker.Names(int.from_bytes(os.urandom(8), "little"), names_max, text_max)
    return table
