"""Says where nodes come from: the user's line, the layer of Keras, or TensorFlow itself."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from typing import Final

from .nodes import Frame, Node, NodeFacts, Stats, name_bytes
from .tree import sum_of

#: Name of a node that was inlined at a call, loop or branch; the group is the original name.
_INLINED_NAME: Final = re.compile(r".*/_\d+/(.+)")
Stack = tuple[Frame, ...]
_GRADIENT_PREFIX, _GRADIENT_SUFFIX = "gradients/", "_grad/"
_HOST_ONLY: Final = re.compile("[A-Za-z][A-Za-z0-9.]+://[^/]*", re.DOTALL)
#: The name that Python gives to the code of a file outside of functions.
_SCRIPT: Final = "<module>"
#: Paths of installed packages and of Python's library, and names that are not files.
_FOREIGN: Final = re.compile(
    r".*/(site-packages|dist-packages|lib/python[0-9.]+)/.*|.*/__autograph_generated_file[^/]*|<.*|", re.DOTALL
)
#: The scope of the groups.
ADDED: Final = "(added by TensorFlow)"
#: Names of nodes that Grappler, the placer and the executor add: their beginnings, their endings,
#: and the names of copies between devices.
_ADDED_NAMES: Final = re.compile(
    r"""(?:
      (?:ConstantFolding|ConstantFoldingCtrl|\w+Optimizer|Func|recompute|RecomputeTrigger)/.*
    | .*(?:LayoutOptimizer|AutoMixedPrecision)
    | (?:swap_in|swap_out|scoped_allocator)_.*
    | .*/_\d+ | .*__cf__\d+ | \^.* | edge_\d+_.*
    | _SOURCE | _SINK | _(?:arg|retval)_.* | .*_(?:SEND|RECV) | \[?(?:CPU|GPU|MEMCPY|memcpy).*
    )""",
    re.DOTALL | re.VERBOSE,
)
#: The scopes of gradients, in front of the name of the forward op.
_GRADIENT_SCOPE: Final = re.compile(r"(?:.*/)?gradient(?:s|_tape)(?:_\d+)?/")
#: The number at the end of a repeated name.
_NUMBER: Final = re.compile(r"_\d+$")
#: Paths of files of Keras, in all its packages.
_KERAS: Final = re.compile(r".*/(?:tf_)?keras/.*", re.DOTALL)


def original_name(name: str) -> str:
    """Return the name of a node in the function's body; ``name`` itself if it was not inlined."""
    match = _INLINED_NAME.fullmatch(name) if "/_" in name else None
    return match[1] if match else name


def basename(file: str) -> str:
    """Return the part after the last `/`, as in the TF profiler.

    It is empty for a URL without a path (`gs://bucket`).
    """
    return "" if _HOST_ONLY.fullmatch(file) else file.rpartition("/")[2]


def forward_name(name: str) -> str | None:
    """Return the forward op of the gradient node ``name``, None if it is not a gradient."""
    prefix_at, suffix_at = name.find(_GRADIENT_PREFIX), name.find(_GRADIENT_SUFFIX)
    start = prefix_at + len(_GRADIENT_PREFIX)
    if prefix_at < 0 or suffix_at < 0 or suffix_at == start:
        return None
    return name[start:suffix_at] if suffix_at > start else name[start:]  # in the TF profiler, the length underflows


def own_files(nodes: Iterable[Node]) -> list[str]:
    """Return the base names of the user's files, outermost callers first."""
    stacks = {id(node.facts.stack): node.facts.stack for node in nodes if node.facts.stack}
    files = dict.fromkeys(frame.file for stack in stacks.values() for frame in stack)
    return list(dict.fromkeys(name for file in files if _is_own_file(file) and (name := basename(file))))


def stack_lookup(nodes: Iterable[Node]) -> Callable[[Node], Stack | None]:
    """Return a function that looks up the stack of one of ``nodes``.

    A gradient gets the stack of its forward op, since its own stack only shows the line that
    requested all gradients.
    """
    stacks = {node.name: node.facts.stack for node in nodes if node.facts.stack}
    return lambda node: stacks.get(forward_of(node)) or node.facts.stack


def forward_of(node: Node) -> str:
    """Return the name of the forward op of a gradient, '' for another node."""
    return node.facts.forward or forward_name(original_name(node.name)) or ""


def is_own(frame: Frame) -> bool:
    """Return whether a call is in one of the user's files."""
    return _is_own_file(frame.file)


@lru_cache(1 << 14)  # there are few files and many frames
def _is_own_file(file: str) -> bool:
    return _FOREIGN.fullmatch(file) is None


def own_frame(stack: tuple[Frame, ...] | None) -> Frame | None:
    """Return the innermost of the user's calls in ``stack``.

    If there is none, return the outermost call at the top level of a script, or None.
    """
    own = next(filter(is_own, reversed(stack or ())), None)
    return own or next((frame for frame in stack or () if frame.function == _SCRIPT and frame.file[:1] != "<"), None)


def own_line(stack: tuple[Frame, ...] | None) -> str:
    """Return the innermost of the user's lines in ``stack``, as `train.py:12`.

    Return '' if `own_frame` finds none.
    """
    frame = own_frame(stack)
    return _line(frame) if frame else ""


def own_location(stack: tuple[Frame, ...] | None) -> str:
    """Return the innermost of the user's lines with its function, as `train.py:12 (step)`.

    The top level of a script is shown without a function. Return '' if `own_frame` finds no line.
    """
    frame = own_frame(stack)
    if frame is None:
        return ""
    return _line(frame) if frame.function == _SCRIPT else f"{_line(frame)} ({frame.function})"


def _line(frame: Frame) -> str:
    return f"{basename(frame.file)}:{frame.line}"


def has_own_line(node: Node) -> bool:
    """Return whether the stack of ``node`` contains one of the user's lines."""
    return any(map(is_own, node.facts.stack or ()))


def is_added(node: Node) -> bool:
    """Return whether TensorFlow added ``node``.

    TensorFlow added it if no graph of the job has the node, and its name or op type has a form that
    TensorFlow uses for such nodes.
    """
    return not node.in_graph and (_ADDED_NAMES.fullmatch(node.name) is not None or node.op.startswith("_"))


def group_added(nodes: Sequence[Node], *, linked: bool = False) -> tuple[list[Node], dict[str, str]]:
    """Return ``nodes`` with the added ones merged by op type, and the new name of each merged node.

    ``linked``: make the merged nodes inputs of a node called ADDED, which the graph view needs.
    """
    user_nodes = [node for node in nodes if not is_added(node)]
    groups: dict[str, list[Node]] = {}
    for node in nodes:
        if is_added(node):
            groups.setdefault(f"{ADDED}/{node.op}", []).append(node)
    merged_nodes = [_merged_node(name, group) for name, group in groups.items()]
    if linked and merged_nodes:
        inputs = tuple(sorted(groups))
        merged_nodes.append(Node(ADDED, ADDED, (), Stats(), NodeFacts(inputs=inputs), in_graph=False))
    names = {node.name: name for name, group in groups.items() for node in group}
    return sorted([*user_nodes, *merged_nodes], key=name_bytes), names


def _merged_node(name: str, group: Sequence[Node]) -> Node:
    devices = tuple(sorted({device for node in group for device in node.devices}))
    return group[0]._replace(
        name=name, devices=devices, stats=sum_of([node.stats for node in group]), facts=NodeFacts()
    )


def layer_lookup(nodes: Collection[Node]) -> Callable[[Node], str]:
    """Return the function that names the layer of one of ``nodes``, '' without a layer.

    The name is the scope of its forward op, without scopes that contain a single op only.
    """
    names, types = {node.name for node in nodes}, {node.op for node in nodes}

    def layer(node: Node) -> str:
        if is_added(node):
            return ""
        forward = forward_of(node) or _GRADIENT_SCOPE.sub("", original_name(node.name), count=1)
        scope = forward.rpartition("/")[0]
        while scope and (scope in names or _NUMBER.sub("", scope.rpartition("/")[2]) in types):
            scope = scope.rpartition("/")[0]
        return scope

    return layer


def short_layer_lookup(nodes: Collection[Node]) -> Callable[[Node], str]:
    """Return a function that returns the layer of a node without the outermost scope, the model.

    If several models have a layer of the same name, these layers keep their whole names.
    """
    layer_of = layer_lookup(nodes)
    names = {layer: layer.partition("/")[2] or layer for layer in map(layer_of, nodes)}
    counts = Counter(names.values())

    def short_layer(node: Node) -> str:
        layer = layer_of(node)
        return names[layer] if counts[names[layer]] == 1 else layer

    return short_layer


class Places:
    """Looks up the places of ``nodes``.

    The place of a gradient is that of its forward op.
    """

    def __init__(self, nodes: Collection[Node]) -> None:
        self._nodes = nodes
        self._stack_of = stack_lookup(nodes)
        self._layer_of: Callable[[Node], str] | None = None
        #: By identity, since nodes share their stacks and keep them alive.
        self._texts: dict[int, tuple[str, str, bool]] = {}

    def stack(self, node: Node) -> Stack | None:
        """Return the Python stack that created a node, or its forward op."""
        return self._stack_of(node)

    def line(self, node: Node) -> str:
        """Return the innermost of the user's lines, as `train.py:12`, '' without one.

        A line that calls Keras makes many layers. The layer therefore stands beside such a line:
        `train.py:12 (dense_1)`.
        """
        line, _, calls_keras = self._text(node)
        return self._with_layer(line, node) or line if calls_keras else line

    def location(self, node: Node) -> str:
        """Return the line with its function, as `train.py:12 (step)`, or with the layer."""
        line, location, calls_keras = self._text(node)
        return self._with_layer(line, node) or location if calls_keras else location

    def _text(self, node: Node) -> tuple[str, str, bool]:
        stack = self._stack_of(node)
        if id(stack) not in self._texts:
            self._texts[id(stack)] = own_line(stack), own_location(stack), _calls_keras(stack)
        return self._texts[id(stack)]

    def _with_layer(self, line: str, node: Node) -> str:
        if self._layer_of is None:
            self._layer_of = short_layer_lookup(self._nodes)
        layer = self._layer_of(node)
        return f"{line} ({layer})" if layer else ""


def _calls_keras(stack: Stack | None) -> bool:
    """Return whether there are calls of Keras below the user's innermost call."""
    frame: Frame | None = own_frame(stack)
    if stack is None or frame is None:
        return False
    innermost = len(stack) - 1 - stack[::-1].index(frame)
    return any(_KERAS.fullmatch(below.file) for below in stack[innermost + 1 :])
