"""Groups the nodes that TensorFlow added to a user's graph, by op type.

The groups are in a separate scope.
"""

import re
from collections.abc import Sequence
from typing import Final

from .nodes import Node, NodeFacts, Stats, name_bytes
from .tree import sum_of

#: The scope of the groups.
ADDED: Final = "(added by TensorFlow)"
#: Names of nodes that Grappler, the placer and the executor add: their beginnings, their endings,
#: and the names of copies between devices.
_NAMES: Final = re.compile(
    r"""(?:
      (?:ConstantFolding|ConstantFoldingCtrl|\w+Optimizer|Func|recompute|RecomputeTrigger)/.*
    | .*(?:LayoutOptimizer|AutoMixedPrecision)
    | (?:swap_in|swap_out|scoped_allocator)_.*
    | .*/_\d+ | .*__cf__\d+ | \^.* | edge_\d+_.*
    | _SOURCE | _SINK | _(?:arg|retval)_.* | .*_(?:SEND|RECV) | \[?(?:CPU|GPU|MEMCPY|memcpy).*
    )""",
    re.DOTALL | re.VERBOSE,
)


def is_added(node: Node) -> bool:
    """Return whether TensorFlow added ``node``.

    TensorFlow added it if no graph of the job has the node, and its name or op type has a form that
    TensorFlow uses for such nodes.
    """
    return not node.in_graph and (_NAMES.fullmatch(node.name) is not None or node.op.startswith("_"))


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
