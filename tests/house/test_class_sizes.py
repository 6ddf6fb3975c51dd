"""A class has one responsibility: at most 200 lines and 15 public methods.

Properties do not count. A protocol may have more methods, and so may the classes that implement it.
"""

import ast

from house.tree import PARTS, sources, tree

LINES_MAX = 200
METHODS_MAX = 15
#: Class -> the protocol whose methods do not count.
IMPLEMENTATIONS = {"EngineJob": "JobReader", "LocalJob": "JobReader"}
#: Classes with the methods of TensorFlow's own API.
TENSORFLOWS = {"ProfileOptionBuilder"}


def _classes() -> list[ast.ClassDef]:
    paths = sources(*PARTS, "spans")
    return [node for path in paths for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)]


def _methods(node: ast.ClassDef) -> set[str]:
    """Return the names of the public methods of a class."""
    return {
        item.name
        for item in node.body
        if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))
        and not item.name.startswith("_")
        and not any("property" in ast.unparse(decorator) for decorator in item.decorator_list)
    }


def _is_protocol(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base) == "Protocol" for base in node.bases)


def test_classes_are_small() -> None:
    assert not {node.name for node in _classes() if (node.end_lineno or 0) - node.lineno >= LINES_MAX}


def test_classes_have_few_public_methods() -> None:
    methods_of_protocols = {node.name: _methods(node) for node in _classes() if _is_protocol(node)}
    many = set()
    for node in _classes():
        protocol = IMPLEMENTATIONS.get(node.name, node.name)
        if len(_methods(node) - methods_of_protocols.get(protocol, set())) > METHODS_MAX:
            many.add(node.name)
    assert many == TENSORFLOWS
