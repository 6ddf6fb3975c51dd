"""Python stacks of the nodes of a stored job.

The nodes are those of a graph, and those that run in the body of a loop.
"""

from pathlib import Path

import pytest
from fakes.made_store import rows, trace_tables, write_job
from fakes.profiles import profile
from fakes.run_metadata import run_metadata
from tfprof.collector.decoders.proto import graph_pb2
from tfprof.collector.query.facts import ALL_FACTS, GRAPH, STACKS
from tfprof.collector.store.reader import LocalJob, LocalStore
from tfprof.collector.tfviews.nodes import Frame
from tfprof.collector.tfviews.parity import DEFAULT, Parity

HERE, THERE = Frame("a.py", 3, "f", 1, "x = y"), Frame("b.py", 5, "g")
IN_BODY = "while/body/_1/while/MatMul"


@pytest.fixture
def job(tmp_path: Path) -> LocalJob:
    """A job with the stacks of two graphs.

    Node a has a stack in both graphs, the node in the body of a loop has one in the second. These
    two nodes and a node without a stack were traced.
    """
    node = graph_pb2.NodeDef
    graph = graph_pb2.GraphDef(node=[node(name="a", op="Add"), node(name="while/MatMul", op="MatMul")])
    frames = [
        {"graph": number, "stack": 0, "position": 0, **frame._asdict()} for number, frame in enumerate((HERE, THERE))
    ]
    stacks = [{"graph": 0, "name": "a"}, {"graph": 1, "name": "while/MatMul"}, {"graph": 1, "name": "a"}]
    tables = trace_tables(graph.SerializeToString(), [run_metadata([b"a", IN_BODY.encode(), b"while/body/_1/b"])])
    write_job(tmp_path / "store", 1, tables | {"frames": rows("frames", frames), "stacks": rows("stacks", stacks)})
    return LocalStore(tmp_path / "store").job("last")


def stacks_of(job: LocalJob, *required_facts: str, parity: Parity = DEFAULT) -> dict[str, tuple[Frame, ...] | None]:
    """Return the stacks of the nodes of ``job``."""
    job_profile = profile(job, required_facts=required_facts, parity=parity)
    assert job_profile is not None
    return {node.name: node.facts.stack for node in job_profile.nodes}


@pytest.mark.parametrize("required_facts", [[STACKS], [STACKS, GRAPH], ALL_FACTS])
def test_a_node_has_the_first_stack_of_its_name_and_a_node_of_a_loop_that_of_its_original_name(
    job: LocalJob, required_facts: list[str]
) -> None:
    assert stacks_of(job, *required_facts) == {
        "a": (HERE,),
        "while/MatMul": (THERE,),
        IN_BODY: (THERE,),
        "while/body/_1/b": None,
    }


def test_with_exact_parity_stacks_are_found_only_by_the_exact_name(job: LocalJob) -> None:
    assert stacks_of(job, STACKS, parity=Parity(exact=True))[IN_BODY] is None


def test_stacks_are_read_only_where_they_are_needed(job: LocalJob) -> None:
    assert set(stacks_of(job, GRAPH).values()) == {None}
