"""Matching of calls with the graphs that they call."""

from fakes.graphs import definitions_of, node
from tfprof.collector.flops.call_graph import CallGraph


def body(scope: str) -> list[object]:
    """Return the placeholders of a loop's body, named as TensorFlow 2 names them."""
    return [node(f"{scope}/{name}", "Placeholder", (), (2, 3)) for name in ("loop_counter", "state")]


def test_a_loop_calls_the_bodies_in_its_scope_if_shapes_are_equal() -> None:
    loops = [
        *(node(name, "Const", (), (2, 3)) for name in ("counter", "state")),
        *(node(f"model/{name}/while", "While", ["counter", "state"], (2, 3), (2, 3)) for name in ("lstm", "lstm_1")),
    ]
    bodies = [body(f"model/{name}/while/model/{name}/while") for name in ("lstm_1", "lstm_1", "lstm", "lstm")]
    call_graph = CallGraph(
        {(definition.graph, definition.name): definition for definition in definitions_of(loops, *bodies)}
    )
    for name in ("lstm", "lstm_1"):
        placeholders = {placeholder[1] for _, placeholder in call_graph.passed_arguments((0, f"model/{name}/while"))}
        assert placeholders == {f"model/{name}/while/model/{name}/while/{part}" for part in ("loop_counter", "state")}
