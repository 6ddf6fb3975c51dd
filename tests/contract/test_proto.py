"""Our message definitions and TensorFlow's can live in one process."""

import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PROTO = HERE.parents[1] / "collector" / "ingest" / "proto"

SCRIPT = """
import sys
from tensorflow.core.framework import graph_pb2 as their_graph
from tensorflow.core.protobuf import config_pb2 as their_config
from tensorflow.tsl.profiler.protobuf import xplane_pb2 as their_xplane
sys.path.insert(0, sys.argv[1])
import graph_pb2, run_metadata_pb2, xplane_pb2

def read(path):
    return open(sys.argv[2] + "/data/" + path, "rb").read()

theirs, ours = their_config.RunMetadata.FromString(read("tf2_full.run_metadata")), run_metadata_pb2.RunMetadata.FromString
assert ours(theirs.SerializeToString()) == ours(read("tf2_full.run_metadata"))
assert len(their_graph.GraphDef.FromString(read("tf2.graph")).node) == len(graph_pb2.GraphDef.FromString(read("tf2.graph")).node)
assert len(their_xplane.XSpace.FromString(read("keras3.xspace")).planes) == len(xplane_pb2.XSpace.FromString(read("keras3.xspace")).planes)
print("both")
"""


@pytest.mark.tf
def test_tensorflow_and_we_may_define_messages_in_one_process(tf2_python: Path) -> None:
    command = [str(tf2_python), "-c", SCRIPT, str(PROTO), str(HERE)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.stdout.endswith("both\n"), ran.stderr
