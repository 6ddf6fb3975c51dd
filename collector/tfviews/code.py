"""The code view: a tree of the Python calls that created the nodes.

Gradients stand beside the calls of their forward ops.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import lt
from typing import Final

from .encoding import octets
from .matcher import Matcher, match_counts
from .nodes import NO_STATS, Frame, Node, name_bytes
from .options import Options
from .parity import DEFAULT, Parity
from .places import basename, forward_name, original_name
from .tree import AccountedNode, TreeView, root_of, sum_of, tree_view

#: Ending of the name of a gradient's call.
GRADIENT: Final = " (gradient)"
#: Length in bytes from which a function's name is truncated, and the length that remains.
_TRUNCATED_FROM, _TRUNCATED_LENGTH = 20, 17


class CallSite:
    """A call in the tree, with its nodes.

    `frame`: the first frame below the caller that has this text. `call`: the accounted call, if
    there is one.
    """

    __slots__ = ("call", "callees", "frame", "is_gradient", "nodes", "text")

    def __init__(self, text: str = "", frame: Frame | None = None, *, is_gradient: bool = False) -> None:
        self.text = text
        self.frame = frame
        self.is_gradient = is_gradient
        self.callees: dict[str, CallSite] = {}
        self.nodes: list[Node] = []
        self.call: Call | None = None

    def accounted_callees(self) -> list["Call"]:
        """Return the accounted callees, in order of first use."""
        return [site.call for site in self.callees.values() if site.call is not None]


@dataclass(frozen=True, slots=True)
class CallTree:
    """All calls, and the gradient nodes whose forward op has no stack.

    `sites`: the calls, callers first; `gradients_without_forward`: the gradient nodes, by forward
    op.
    """

    sites: list[CallSite]  # the first one is the root
    gradients_without_forward: dict[str, list[Node]]


class Call(AccountedNode):
    """A call with picked nodes, or with such a call below it; the nodes are in name order.

    A node is picked if -account_type_regexes matches it.
    """

    __slots__ = ("site",)

    def __init__(
        self,
        site: CallSite,
        weighted_nodes: Sequence[tuple[Node, int]],
        callees: Sequence[AccountedNode],
        *,
        accounts_all: bool,
    ) -> None:
        """Count each picked node with its weight.

        ``accounts_all``: account calls without picked nodes, too.
        """
        stats = [node.stats for node, weight in weighted_nodes for _ in range(weight)]
        own = NO_STATS if not stats else stats[0] if len(stats) == 1 else sum_of(stats)
        nodes = (
            sorted([node for node, _ in weighted_nodes], key=name_bytes)
            if len(weighted_nodes) > 1
            else [node for node, _ in weighted_nodes]
        )
        super().__init__(site.text, own, tuple(nodes), callees, accounted=accounts_all or bool(weighted_nodes))
        self.site = site


def frame_text(frame: Frame) -> str:
    """Return the text of a call: file, line and function.

    A long function name is truncated, even within a character.
    """
    function = frame.function
    if len(raw := octets(function)) >= _TRUNCATED_FROM:
        function = raw[:_TRUNCATED_LENGTH].decode("utf-8", "surrogateescape") + "..."
    return f"{basename(frame.file)}:{frame.line}:{function}"


class _Builder:
    """A call tree under construction; each distinct stack is looked up once."""

    def __init__(self) -> None:
        self.sites = [CallSite()]
        self._texts: dict[int, str] = {}  # by identity, which is faster: nodes share their stacks and keep them alive
        self._sites_by_stack: dict[tuple[int, bool], CallSite] = {}

    def site_of(self, stack: tuple[Frame, ...], *, is_gradient: bool = False) -> CallSite:
        """Return the innermost call of ``stack``, creating missing calls."""
        key = id(stack), is_gradient
        if key not in self._sites_by_stack:
            site = self.sites[0]
            for frame in stack:
                text = self._text(frame) + GRADIENT if is_gradient else self._text(frame)
                if text not in site.callees:
                    site.callees[text] = CallSite(text, frame, is_gradient=is_gradient)
                    self.sites.append(site.callees[text])
                site = site.callees[text]
            self._sites_by_stack[key] = site
        return self._sites_by_stack[key]

    def _text(self, frame: Frame) -> str:
        if id(frame) not in self._texts:
            self._texts[id(frame)] = frame_text(frame)
        return self._texts[id(frame)]


def call_tree(nodes: Iterable[Node], parity: Parity = DEFAULT) -> CallTree:
    """Build the tree from nodes in name order; nodes without a stack are left out."""
    builder = _Builder()
    forward_stacks: dict[str, tuple[Frame, ...]] = {}
    gradients: dict[str, list[Node]] = {}
    follows_inlining = parity.follows_inlining
    for node in nodes:
        stack = node.facts.stack
        if not stack:
            continue
        forward_op = node.facts.forward or forward_name(original_name(node.name) if follows_inlining else node.name)
        if forward_op is None:
            forward_stacks[node.name] = stack
            builder.site_of(stack).nodes.append(node)
        else:
            gradients.setdefault(forward_op, []).append(node)
    gradients_without_forward = {}
    for forward_op in sorted(gradients, key=octets):
        if forward_op in forward_stacks:
            builder.site_of(forward_stacks[forward_op], is_gradient=True).nodes += gradients[forward_op]
        else:
            gradients_without_forward[forward_op] = gradients[forward_op]
    return CallTree(builder.sites, gradients_without_forward)


def _account(sites: Sequence[CallSite], patterns: tuple[str, ...]) -> AccountedNode:
    """Return the root above the calls with picked nodes and their callers.

    ``patterns`` decide which nodes are picked. A caller that has no picked nodes itself is
    accounted only if the patterns match everything.
    """
    accounts_all, weight_of = Matcher(patterns).accepts_all, match_counts(patterns)
    for site in reversed(sites[1:]):  # callees before callers
        weighted_nodes = [(node, weight) for node in site.nodes if (weight := weight_of(node))]
        callees = site.accounted_callees()
        # Always true if `accounts_all`: all nodes are picked, and every innermost call has nodes.
        if weighted_nodes or callees:
            site.call = Call(site, weighted_nodes, callees, accounts_all=accounts_all)
    return root_of(sites[0].accounted_callees())


def _entry_filter(options: Options) -> Callable[[AccountedNode], bool]:
    """Return the filter: minima apply to totals, and -min_occurrence has no effect."""
    matches_show, matches_hide = Matcher(options.show_name_regexes), Matcher(options.hide_name_regexes, shortcut=False)
    minima = dict(options.minima)
    lower_bounds = tuple(minima[counter] for counter in NO_STATS._fields[1:])

    def is_shown(entry: AccountedNode) -> bool:
        if any(map(lt, entry.total[1:], lower_bounds)):
            return False
        return matches_show(entry.name) and not matches_hide(entry.name)

    return is_shown


def code_view(nodes: Sequence[Node], options: Options, parity: Parity = DEFAULT) -> TreeView:
    """Fold nodes in name order into the code view.

    The view's `nodes` is the number of nodes with a stack, 0 if no stack was recorded. `unreached`
    counts gradient nodes whose forward ops have no stack. As in the TF profiler, -trim_name_regexes
    removes matching calls together with their callees. Totals always include hidden entries, and
    -min_occurrence has no effect.
    """
    nodes_with_stack = [node for node in nodes if node.facts.stack]
    tree, weight_of = call_tree(nodes_with_stack, parity), match_counts(options.account_type_regexes)
    return tree_view(
        _account(tree.sites, options.account_type_regexes),
        options,
        parity,
        nodes=len(nodes_with_stack),
        accounted=frozenset(node.name for node in nodes_with_stack if weight_of(node)),
        unreached=sum(map(len, tree.gradients_without_forward.values())),
        is_shown=_entry_filter(options),
        sorts_by_occurrence=True,
        displayed_only=False,
        prunes=True,
    )
