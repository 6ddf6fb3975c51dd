"""Names the layers that nodes belong to, from the scopes in the names of nodes."""

import re
from collections import Counter
from collections.abc import Callable, Collection
from typing import Final

from .added import is_added
from .inlined import original_name
from .nodes import Node
from .own_files import forward_of

#: The scopes of gradients, in front of the name of the forward op.
_GRADIENT_SCOPE: Final = re.compile(r"(?:.*/)?gradient(?:s|_tape)(?:_\d+)?/")
#: The number at the end of a repeated name.
_NUMBER: Final = re.compile(r"_\d+$")


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
