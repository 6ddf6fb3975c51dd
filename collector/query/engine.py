"""Questions to the views: reads the nodes of jobs and folds them."""

from dataclasses import dataclass, field
from typing import Any, Final

from ..loader import load
from ..store.catalog import RUNNING
from ..store.reader import Job
from ..tfviews.op import OpView
from ..tfviews.options import ALL, Options
from ..tfviews.parity import DEFAULT, Parity
from ..tfviews.tree import TreeView
from .profile import Profile, profile
from .required_facts import FLOAT_OPS, GRAPH, SHAPES, STACKS

#: What a view folds nodes into.
Folded = OpView | TreeView
#: Columns, orders and minima that need more than the rollup.
_OF_GRAPH: Final = frozenset({"params", "input_shapes", "op_types"})
_OF_FLOPS: Final = frozenset({"float_ops"})
_OF_SHAPES: Final = frozenset({"input_shapes"})
#: Of `-select`: no column, a text below the row.
TENSOR_VALUE: Final = "tensor_value"
#: Answers whose nodes are kept for the next question.
_KEPT: Final = 4


@dataclass(frozen=True, slots=True)
class View:
    """One of tfprof's views: the function that folds nodes, by name, and the facts about nodes that it requires.

    ``fold`` is imported when the view is asked for.
    """

    name: str
    fold: str
    needs: frozenset[str] = frozenset()
    has_values: bool = False  # of variables


VIEWS: Final = {
    view.name: view
    for view in (
        View("scope", "tfprof.collector.tfviews.scope:scope_view", has_values=True),
        View("graph", "tfprof.collector.tfviews.graph:graph_view", frozenset({GRAPH}), has_values=True),
        View("op", "tfprof.collector.tfviews.op:op_view"),
        View("code", "tfprof.collector.tfviews.code:code_view", frozenset({STACKS})),
    )
}


@dataclass(frozen=True, slots=True)
class About:
    """What questions are about: jobs, which of their traced steps (first, last), which device, and whose numbers count.

    ``kinds``: of which kinds the steps are, None for the one that the jobs are about.
    """

    jobs: tuple[Job, ...]
    steps: tuple[int, int] | None = None
    device: str | None = None
    parity: Parity = DEFAULT
    kinds: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a view says; ``profile`` is what it was folded from, None where nothing was traced yet."""

    about: About
    view: View
    options: Options
    profile: Profile | None
    folded: Folded

    @property
    def is_known(self) -> bool:
        """Whether there is anything to fold: a traced step, and for the code view a stack."""
        return self.profile is not None and (self.view.name != "code" or self.tree.nodes > 0)

    @property
    def tree(self) -> TreeView:
        """What the scope, the graph and the code view fold into."""
        assert isinstance(self.folded, TreeView)
        return self.folded

    @property
    def shows_something(self) -> bool:
        """Whether there is more to show than that there is nothing."""
        folded = self.folded
        return bool(folded.entries if isinstance(folded, OpView) else folded.kept)

    def values(self) -> dict[str, Any]:
        """Return what looks up values of variables, for views that show them, where they are asked for."""
        if TENSOR_VALUE not in self.options.select or not self.view.has_values:
            return {}
        from .tensors import tensors  # noqa: PLC0415  # few questions ask for them

        return {"values": tensors(self.about.jobs)}


def needs(view: View, options: Options, *, whole: bool) -> frozenset[str]:
    """Return which facts of nodes a question looks at; ``whole``: all that the message has."""
    words = options.select | {options.order_by}
    wanted = set(view.needs)
    if whole or words & _OF_GRAPH or options.min_params > 0 or options.account_type_regexes != ALL:
        wanted.add(GRAPH)
    if whole or words & _OF_FLOPS or options.min_float_ops > 0:
        wanted.add(FLOAT_OPS)
    if whole or words & _OF_SHAPES:
        wanted.add(SHAPES)
    return frozenset(wanted)


@dataclass(slots=True)
class Desk:
    """Answers questions; what it read of jobs that have ended it keeps for the next ones, a running job is read anew."""

    _kept: dict[Any, tuple[frozenset[str], Profile | None]] = field(default_factory=dict)

    def ask(self, about: About, view: str, options: Options, *, whole: bool = False) -> Answer:
        """Return what ``view`` says; ``whole``: with all that the message has, not only what the text shows.

        Raises NoSuchStepError, and UsageError ``no-such-kind``, ``no-such-device``.
        """
        chosen = VIEWS[view]
        found = self.profile(about, options.step, needs(chosen, options, whole=whole))
        folded = load(chosen.fold)(found.nodes if found else [], options, about.parity)
        return Answer(about, chosen, options, found, folded)

    def profile(self, about: About, step: int, wanted: frozenset[str], *, averaged: bool = True) -> Profile | None:
        """Return the nodes that are asked about, with the facts ``wanted``; ``averaged`` over the steps that each ran in, or sums."""
        ended = all(job.info.state != RUNNING for job in about.jobs)
        key = (
            tuple((job.info.uid, job.info.total) for job in about.jobs),
            step,
            about.steps,
            about.device,
            about.parity,
            averaged,
            about.kinds,
        )
        known, found = self._kept.get(key, (frozenset(), None)) if ended else (frozenset(), None)
        if found is None or not wanted <= known:
            wanted |= known  # so that questions which take turns are read once
            found = profile(
                about.jobs,
                step,
                steps=about.steps,
                kinds=about.kinds,
                device=about.device,
                averaged=averaged,
                needs=wanted,
                parity=about.parity,
            )
            self._kept.pop(key, None)
            if ended:
                self._kept[key] = wanted, found
                if len(self._kept) > _KEPT:
                    del self._kept[next(iter(self._kept))]
        return found
