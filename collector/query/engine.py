"""Answers queries: reads the nodes of jobs and folds them into a view."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ..loader import load
from ..store.catalog import MAY_CONTINUE
from ..store.columns import column_list
from ..store.protocols import JobReader
from ..tfviews.matcher import ALL
from ..tfviews.nodes import total_of
from ..tfviews.op import OpView
from ..tfviews.options import TIME_MINIMA, Options, multiplied, without_shares
from ..tfviews.parity import Parity
from ..tfviews.tensors import Tensor, ValueLookup
from ..tfviews.tree import TreeView
from .facts import FLOAT_OPS, GRAPH, SHAPES, STACKS
from .job_selection import Selection
from .profile import Profile, profile

#: Result of a view's fold function.
Folded = OpView | TreeView
#: The columns that require a fact when they are shown or sorted by, by fact.
_GRAPH_COLUMNS: Final = frozenset({"params", "input_shapes", "op_types"})
_FLOAT_OPS_COLUMNS: Final = frozenset({"float_ops"})
_SHAPES_COLUMNS: Final = frozenset({"input_shapes"})
#: Value of `-select` that adds text below a row instead of a column.
TENSOR_VALUE: Final = "tensor_value"
#: Maximum number of cached profiles.
_CACHED_MAX: Final = 4


@dataclass(frozen=True, slots=True)
class View:
    """A view: its fold function, by name, and the facts about nodes that it requires.

    ``fold`` is imported on first use. ``has_values``: whether the view can show the values of
    variables.
    """

    name: str
    fold: str
    required_facts: frozenset[str] = frozenset()
    has_values: bool = False


VIEWS: Final = {
    view.name: view
    for view in (
        View("scope", "tfprof.collector.tfviews.tree:scope_view", has_values=True),
        View("graph", "tfprof.collector.tfviews.tree:graph_view", frozenset({GRAPH}), has_values=True),
        View("op", "tfprof.collector.tfviews.op:op_view"),
        View("code", "tfprof.collector.tfviews.code:code_view", frozenset({STACKS})),
    )
}


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a query.

    ``profile`` has the nodes that the view folded. It is None if nothing was traced yet.
    """

    selection: Selection
    view: View
    options: Options
    profile: Profile | None
    folded: Folded

    @property
    def has_data(self) -> bool:
        """Whether there is data to fold: a traced step, and for the code view a stack."""
        return self.profile is not None and (self.view.name != "code" or self.tree.nodes > 0)

    @property
    def tree(self) -> TreeView:
        """The result of the scope, graph or code view."""
        assert isinstance(self.folded, TreeView)
        return self.folded

    @property
    def has_entries(self) -> bool:
        """Whether the view has any entry."""
        folded = self.folded
        return bool(folded.entries if isinstance(folded, OpView) else folded.accounted_entries)

    @property
    def time_unit(self) -> int:
        """How many units of a time in `folded` are a µs."""
        return self.selection.parity.time_unit

    def values(self) -> dict[str, Any]:
        """Return the keyword arguments for the functions that print a view or make its message.

        The argument `values` is a function that looks up the values of variables. It is left out
        unless the view can show them and the options select them.
        """
        if TENSOR_VALUE not in self.options.select or not self.view.has_values:
            return {}
        return {"values": tensors(self.selection.jobs)}


def in_time_units(options: Options, parity: Parity) -> Options:
    """Return ``options`` with minima of times in the unit of the times of nodes."""
    return multiplied(options, dict.fromkeys(TIME_MINIMA, parity.time_unit))


def required_facts(view: View, options: Options, *, for_message: bool) -> frozenset[str]:
    """Return the facts about nodes that a query requires.

    ``for_message``: require all facts that the view's message contains.
    """
    columns = options.select | {options.order_by}
    facts = set(view.required_facts)
    if for_message or columns & _GRAPH_COLUMNS or options.min_params > 0 or options.account_type_regexes != ALL:
        facts.add(GRAPH)
    if for_message or columns & _FLOAT_OPS_COLUMNS or options.min_float_ops > 0:
        facts.add(FLOAT_OPS)
    if for_message or columns & _SHAPES_COLUMNS:
        facts.add(SHAPES)
    return frozenset(facts)


@dataclass(slots=True)
class QueryEngine:
    """The engine that answers queries, with a cache of nodes.

    Nodes are cached only if all their jobs have ended. Nodes of running jobs are read each time.
    """

    _cache: dict[Any, tuple[frozenset[str], Profile | None]] = field(default_factory=dict)

    def ask(self, selection: Selection, view: str, options: Options, *, for_message: bool = False) -> Answer:
        """Return the answer of ``view``.

        ``for_message``: read every fact in the message, not only those in the text. Raises
        NoSuchStepError, and UsageError ``no-such-kind``, ``no-such-device``.
        """
        view_type = VIEWS[view]
        job_profile = self.profile(selection, options.step, required_facts(view_type, options, for_message=for_message))
        nodes = job_profile.nodes if job_profile else []
        fold_options = without_shares(in_time_units(options, selection.parity), total_of(nodes))
        folded = load(view_type.fold)(nodes, fold_options, selection.parity)
        return Answer(selection, view_type, options, job_profile, folded)

    def profile(
        self, selection: Selection, step: int, facts: frozenset[str], *, averaged: bool = True
    ) -> Profile | None:
        """Return the selected nodes with ``facts``, None if nothing was traced yet.

        ``averaged``: averages over each node's steps, else sums.
        """
        is_cacheable = all(job.info.state not in MAY_CONTINUE for job in selection.jobs)
        key = (
            tuple((job.info.uid, job.info.total) for job in selection.jobs),
            replace(selection, jobs=()),
            step,
            averaged,
        )
        cached_facts, result = self._cache.get(key, (frozenset(), None)) if is_cacheable else (frozenset(), None)
        if result is None or not facts <= cached_facts:
            facts |= cached_facts  # so that alternating queries share one cached profile
            result = profile(selection, step, facts, averaged=averaged)
            self._cache.pop(key, None)
            if is_cacheable:
                self._cache[key] = facts, result
                if len(self._cache) > _CACHED_MAX:
                    del self._cache[next(iter(self._cache))]
        return result


def tensors(jobs: Iterable[JobReader]) -> ValueLookup:
    """Return a function that looks up a node's value by name.

    If several jobs have a value, that of the first is used.
    """
    values: dict[str, Tensor] = {}
    for job in jobs:
        table = job.table("tensors")
        columns = (column_list(table, name) for name in ("name", "dtype", "shape", "data"))
        for name, dtype, shape, data in zip(*columns, strict=True):
            values.setdefault(name, Tensor(dtype, tuple(shape), data))
    return values.get
