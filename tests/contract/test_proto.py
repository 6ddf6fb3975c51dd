"""The message definitions of tfprof and of TensorFlow load in one process."""

import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

SCRIPT = """
import sys
from tensorflow.core.framework import graph_pb2 as their_graph
from tensorflow.core.protobuf import config_pb2 as their_config
from tensorflow.tsl.profiler.protobuf import xplane_pb2 as their_xplane
from tensorflow.core.profiler import tfprof_log_pb2 as their_log, tfprof_options_pb2 as their_options
from tensorflow.core.profiler import tfprof_output_pb2 as their_output
sys.modules["tfprof"] = type(sys)("tfprof")
sys.modules["tfprof"].__path__ = [sys.argv[1]]
from tfprof.collector.decoders.proto import graph_pb2, run_metadata_pb2, xplane_pb2
from tfprof.collector.proto import tensorflow_pb2, tfprof_log_pb2, tfprof_output_pb2, tfprof_options_pb2, pprof_pb2

def read(path):
    return open(sys.argv[2] + "/data/" + path, "rb").read()

their_metadata = their_config.RunMetadata.FromString(read("tf2_full.run_metadata"))
parse = run_metadata_pb2.RunMetadata.FromString
assert parse(their_metadata.SerializeToString()) == parse(read("tf2_full.run_metadata"))
graph, xspace = read("tf2.graph"), read("keras3.xspace")
assert len(their_graph.GraphDef.FromString(graph).node) == len(graph_pb2.GraphDef.FromString(graph).node)
assert len(their_xplane.XSpace.FromString(xspace).planes) == len(xplane_pb2.XSpace.FromString(xspace).planes)
message = tensorflow_pb2.RunMetadata.FromString(read("tf2_full.run_metadata"))
assert their_config.RunMetadata.FromString(message.SerializeToString()) == their_metadata
message = tensorflow_pb2.GraphDef.FromString(graph)
assert their_graph.GraphDef.FromString(message.SerializeToString()) == their_graph.GraphDef.FromString(graph)

def fields_of(message):
    our_types = {9: 12, 14: 5}  # tfprof has bytes for strings and integers for enums
    return {(field.name, field.number, our_types.get(field.type, field.type)) for field in message.fields}

pairs = (their_log, tfprof_log_pb2), (their_output, tfprof_output_pb2), (their_options, tfprof_options_pb2)
for their_module, our_module in pairs:
    for name, message in their_module.DESCRIPTOR.message_types_by_name.items():
        assert fields_of(message) <= fields_of(our_module.DESCRIPTOR.message_types_by_name[name]), name
print("equal")
"""


@pytest.mark.tf
def test_both_message_definitions_load_in_one_process(tf2_python: Path) -> None:
    command = [str(tf2_python), "-c", SCRIPT, str(ROOT), str(HERE)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.stdout.endswith("equal\n"), result.stderr
