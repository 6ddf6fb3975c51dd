"""Shapes, parameters and inputs of nodes."""

from dataclasses import replace

import pytest
from fakes.nodes import node
from tfprof.collector.ingest.proto import graph_pb2
from tfprof.collector.views.attributes import Attributes, Shapes, attributes, parameters
from tfprof.collector.views.nodes import Node


def shape(*dims: int) -> graph_pb2.TensorShapeProto:
    """Return a shape of known rank."""
    return graph_pb2.TensorShapeProto(dim=[graph_pb2.TensorShapeProto.Dim(size=dim) for dim in dims])


def defined(definition: graph_pb2.NodeDef) -> Node:
    """Return a node with its definition."""
    return replace(node(definition.name, definition.op), node_def=definition.SerializeToString())


def variable(name: str, *dims: int) -> graph_pb2.NodeDef:
    """Return a variable whose output has the shape of the variable."""
    definition = graph_pb2.NodeDef(name=name, op="VariableV2")
    definition.attr["shape"].shape.CopyFrom(shape(*dims))
    definition.attr["_output_shapes"].list.shape.append(shape(*dims))
    return definition


@pytest.mark.parametrize(("dims", "number"), [((2, 3), 6), ((1,), 1), ((), 0), ((4, -1), 0), ((4, 0), 0)])
def test_parameters_are_the_elements_of_a_shape_that_is_known(dims: tuple[int, ...], number: int) -> None:
    assert parameters(dims) == number


def test_a_scalar_is_one_parameter_and_an_unknown_rank_none() -> None:
    assert attributes(variable("v").SerializeToString()).parameter_shape == (1,)
    unknown = variable("v")
    unknown.attr["shape"].shape.unknown_rank = True
    assert attributes(unknown.SerializeToString()).parameter_shape == ()


def test_a_shape_attribute_that_is_no_shape_gives_no_parameters() -> None:
    definition = graph_pb2.NodeDef(name="reshape", op="Reshape")
    definition.attr["shape"].i = 3
    assert attributes(definition.SerializeToString()).parameter_shape == ()


def test_a_definition_that_does_not_parse_has_no_attributes() -> None:
    assert attributes(b"\xff\xff\xff") == Attributes()


def test_inputs_are_shown_by_the_first_output_of_their_source_control_inputs_too() -> None:
    user = graph_pb2.NodeDef(name="user", op="Add", input=["v:1", "^w", "missing"])
    nodes = [defined(variable("v", 2, 3)), defined(variable("w")), defined(user)]
    assert Shapes.of(nodes).inputs(nodes[2]) == [(2, 3), (1,), ()]


def test_parameters_are_added_to_the_nodes() -> None:
    nodes = [defined(variable("v", 2, 3))]
    assert [one.stats.params for one in Shapes.of(nodes).counted(nodes)] == [6]
