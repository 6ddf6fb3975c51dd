"""The code view as a pprof file.

A sample is a node that one of the innermost shown calls created.
"""

import gzip
from collections.abc import Iterator
from operator import attrgetter
from typing import Any, Final, NamedTuple

from ..errors import ViewOptionError
from ..proto.pprof_pb2 import Function, Location, Profile, Sample
from ..tfviews.code import GRADIENT, Call, CallSite
from ..tfviews.encoding import octets
from ..tfviews.nodes import TIMES, Frame, Node, rounded_quotient
from ..tfviews.places import basename
from ..tfviews.tree import Branch, TreeView

_US: Final = "microseconds"
_BYTES: Final = "bytes"
_COUNT: Final = "count"
_LABEL: Final = "graph node:"
#: In the order of functions and locations, lines count as unsigned numbers of 64 bits.
_UINT64_SIZE: Final = 1 << 64


class Value(NamedTuple):
    """The second value of a sample: its unit, and the TF profiler's description of it."""

    unit: str
    comment: str


#: Attributes that -select accepts, with the TF profiler's descriptions.
VALUES: Final = {
    "bytes": Value(_BYTES, "Sum of operation total memory requests, excluding deallocations."),
    "micros": Value(_US, "Sum of accelerator execution time and cpu execution time."),
    "params": Value(_COUNT, "Model parameters."),
    "float_ops": Value(_COUNT, "Model float operations (Only available if defined)."),
    "accelerator_micros": Value(_US, "Accelerator execution time."),
    "cpu_micros": Value(_US, "CPU execution time."),
    "peak_bytes": Value(_BYTES, "Sum of operation peak memory usage."),
    "residual_bytes": Value(_BYTES, "Sum of operation allocated memory after finish."),
    "output_bytes": Value(_BYTES, "Sum of operation output size."),
}

#: Linked list of location numbers, from a call to the outermost one; None is the end of the list.
_Chain = tuple[int, Any] | None


class _Tables:
    """The strings, functions, locations and samples of a profile.

    Strings, functions and locations are numbered in the order of their first use.
    """

    def __init__(self, select: str, time_unit: int) -> None:
        self.strings: dict[bytes, int] = {b"": 0}
        self.functions: dict[tuple[bytes, bytes, int], Any] = {}
        self.locations: dict[tuple[bytes, bytes, int], Any] = {}
        self.samples: dict[bytes, Any] = {}
        self._value = attrgetter(select)
        self._unit = time_unit if select in TIMES else 1

    def string_number(self, text: bytes) -> int:
        """Return the number of ``text``."""
        return self.strings.setdefault(text, len(self.strings))

    def location_number(self, caller: CallSite, called: CallSite) -> int:
        """Return the location number of the line in ``caller`` that calls ``called``."""
        calling_frame, frame = _frame(caller), _frame(called)
        function = octets(frame.function + GRADIENT if called.is_gradient else frame.function)
        key = octets(calling_frame.file), function, calling_frame.line % _UINT64_SIZE
        if key not in self.locations:
            self.locations[key] = location = Location(id=len(self.locations) + 1)
            function_id = self._function_number(frame.file, function, frame.start_line)
            location.line.add(line=calling_frame.line, function_id=function_id)
        return int(self.locations[key].id)

    def _function_number(self, file: str, name: bytes, start_line: int) -> int:
        key = octets(file), name, start_line % _UINT64_SIZE
        if key not in self.functions:
            number = len(self.functions) + 1
            base = basename(file)
            module = base.rpartition(".")[0] if "." in base else base
            text = self.string_number(b"%b:%b" % (octets(module), name))
            path = self.string_number(octets(file))
            self.functions[key] = Function(id=number, name=text, filename=path, start_line=start_line)
        return int(self.functions[key].id)

    def add_sample(self, node: Node, chain: _Chain) -> None:
        """Add a sample for ``node``, created by the innermost call of ``chain``."""
        name = key = octets(node.name)
        while key in self.samples:
            key += b"@"
        self.samples[key] = sample = Sample(value=[1, rounded_quotient(self._value(node.stats), self._unit)])
        while chain is not None:
            number, chain = chain
            sample.location_id.append(number)
        sample.label.add(key=self.string_number(_LABEL.encode()), str=self.string_number(name))


def _frame(site: CallSite) -> Frame:
    assert site.frame is not None, "the root is not a call"
    return site.frame


def _created_nodes(branch: Branch) -> Iterator[Node]:
    """Yield the accounted nodes of the innermost calls below a shown call.

    If there are no calls below it, they are the nodes of the call itself. The innermost calls may
    be hidden.
    """
    pending: list[Any] = [branch.entry]
    while pending:
        call: Call = pending.pop()
        if not call.site.callees:
            yield from call.nodes
        pending.extend(reversed(call.children))


def _add_samples(root: Branch, tables: _Tables) -> None:
    chain: _Chain = None
    pending: list[tuple[Branch, CallSite | None, _Chain]] = [(child, None, chain) for child in reversed(root.children)]
    while pending:
        branch, caller, chain = pending.pop()
        call: Any = branch.entry
        if caller is not None:
            chain = tables.location_number(caller, call.site), chain
        if not branch.children:
            for node in _created_nodes(branch):
                tables.add_sample(node, chain)
        pending.extend((child, call.site, chain) for child in reversed(branch.children))


def message(view: TreeView, select: frozenset[str], time_unit: int = 1) -> Any:
    """Return the code view as pprof's Profile; ViewOptionError unless ``select`` is one counter.

    ``time_unit``: how many units of a time are a µs.
    """
    if len(select) != 1:
        raise ViewOptionError(
            "-output pprof has one column: select one, such as -select micros",
            "Can only select 1 attribute for pprof output.",
        )
    (counter,) = select
    if counter not in VALUES:
        raise ViewOptionError(f"pprof doesn't support -select={counter} (one of {' '.join(VALUES)})")
    tables, value = _Tables(counter, time_unit), VALUES[counter]
    _add_samples(view.root, tables)
    profile = Profile()
    for kind, unit in ((_COUNT, _COUNT), (counter, value.unit)):
        profile.sample_type.add(type=tables.string_number(kind.encode()), unit=tables.string_number(unit.encode()))
    profile.comment.append(tables.string_number(value.comment.encode()))
    for field in ("sample", "function", "location"):
        table = getattr(tables, field + "s")
        getattr(profile, field).extend(table[key] for key in sorted(table))
    profile.string_table.extend(tables.strings)
    return profile


def pprof(view: TreeView, select: frozenset[str], time_unit: int = 1) -> bytes:
    """Return the content of the file: the compressed ``message``."""
    return gzip.compress(message(view, select, time_unit).SerializeToString(), mtime=0)
