"""Shapes, parameters and inputs of nodes."""

import pytest
from tfprof.collector.decoders.proto import graph_pb2
from tfprof.collector.flops.attributes import Attributes, attributes, facts
from tfprof.collector.tfviews.nodes import parameters


def shape(*dims: int) -> graph_pb2.TensorShapeProto:
    """Return a shape of known rank."""
    return graph_pb2.TensorShapeProto(dim=[graph_pb2.TensorShapeProto.Dim(size=dim) for dim in dims])


def serialized(*definitions: graph_pb2.NodeDef) -> list[tuple[str, bytes]]:
    """Return (name, serialized NodeDef) of each node."""
    return [(definition.name, definition.SerializeToString()) for definition in definitions]


def variable(name: str, *dims: int) -> graph_pb2.NodeDef:
    """Return a variable of the shape ``dims``; its output has the same shape."""
    definition = graph_pb2.NodeDef(name=name, op="VariableV2")
    definition.attr["shape"].shape.CopyFrom(shape(*dims))
    definition.attr["_output_shapes"].list.shape.append(shape(*dims))
    return definition


@pytest.mark.parametrize(("dims", "number"), [((2, 3), 6), ((1,), 1), ((), 0), ((4, -1), 0), ((4, 0), 0)])
def test_parameters_are_counted_from_known_shapes(dims: tuple[int, ...], number: int) -> None:
    assert parameters(dims) == number


def test_a_scalar_has_one_parameter_and_a_variable_of_unknown_rank_has_none() -> None:
    assert attributes(variable("v").SerializeToString()).parameter_shape == (1,)
    unknown = variable("v")
    unknown.attr["shape"].shape.unknown_rank = True
    assert attributes(unknown.SerializeToString()).parameter_shape == ()


def test_a_shape_attribute_of_another_type_gives_no_parameters() -> None:
    definition = graph_pb2.NodeDef(name="reshape", op="Reshape")
    definition.attr["shape"].i = 3
    assert attributes(definition.SerializeToString()).parameter_shape == ()


def test_a_definition_that_does_not_parse_has_no_attributes() -> None:
    assert attributes(b"\xff\xff\xff") == Attributes()


def split(name: str) -> graph_pb2.NodeDef:
    """Return a node with two outputs of different shapes."""
    definition = graph_pb2.NodeDef(name=name, op="Split")
    definition.attr["_output_shapes"].list.shape.extend([shape(2, 3), shape(4)])
    return definition


def test_inputs_have_the_shape_of_the_first_output_of_their_source() -> None:
    user = graph_pb2.NodeDef(name="user", op="Add", input=["v:1", "^w", "missing"])
    facts_by_name = facts(serialized(split("v"), variable("w"), user))
    assert facts_by_name["user"].inputs == ("v", "w", "missing")
    assert facts_by_name["user"].input_shapes == ((2, 3), (1,), ())


def test_with_by_slot_all_inputs_from_one_source_have_the_slot_of_the_last_of_them() -> None:
    user = graph_pb2.NodeDef(name="user", op="Add", input=["v:1"])
    twice = graph_pb2.NodeDef(name="twice", op="Add", input=["v", "v:1"])
    beyond = graph_pb2.NodeDef(name="beyond", op="Add", input=["v:7"])
    facts_by_name = facts(serialized(split("v"), user, twice, beyond), by_slot=True)
    assert facts_by_name["user"].input_shapes == ((4,),)
    assert facts_by_name["twice"].input_shapes == ((4,), (4,))
    assert facts_by_name["beyond"].input_shapes == ((),)


def test_of_nodes_with_the_same_name_the_first_counts() -> None:
    assert facts(serialized(variable("v", 2), variable("v", 3)))["v"].parameter_shape == (2,)
