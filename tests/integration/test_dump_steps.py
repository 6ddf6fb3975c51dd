"""`tfprof-run --dump-steps` writes profiles that the TF profiler reads."""

import subprocess
import sys
from pathlib import Path

import pytest
from tfprof.collector.proto.tfprof_log_pb2 import ProfileProto

pytestmark = pytest.mark.tf

JOB = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
batch = tf.placeholder(tf.float32, [None, 64])
weights = tf.get_variable("weights", [64, 64])
train = tf.train.AdamOptimizer().minimize(tf.reduce_sum(tf.matmul(batch, weights, name="product")))
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for step in range(8):
        session.run(train, {batch: np.ones((8, 64))})
"""

READ_PROFILE = """
import os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
try:
    from tensorflow.python.util import _pywrap_tfprof as native
except ImportError:
    from tensorflow.python import pywrap_tensorflow as native
from tensorflow.core.profiler import tfprof_options_pb2, tfprof_output_pb2
path = sys.argv[1]
native.ProfilerFromFile(path.encode() if sys.version_info < (3, 8) else path)
options = tfprof_options_pb2.OptionsProto(max_depth=1000, step=-1, order_by="name", output="none")
for name in ("account_type_regexes", "start_name_regexes", "show_name_regexes"):
    getattr(options, name).append(".*")
root = tfprof_output_pb2.GraphNodeProto.FromString(native.Profile(b"scope", options.SerializeToString()))
print(root.total_run_count, root.total_parameters, root.total_float_ops)
code = tfprof_output_pb2.MultiGraphNodeProto.FromString(native.Profile(b"code", options.SerializeToString()))
print(code.children[0].name)
"""


@pytest.mark.parametrize("version", ["tf1", "tf2"])
def test_a_profile_is_written_for_each_dump_step_that_has_traced_steps(
    version: str, request: pytest.FixtureRequest, private_store: Path, tmp_path: Path
) -> None:
    python: Path = request.getfixturevalue(f"{version}_python")
    (tmp_path / "train.py").write_text(JOB)
    options = ["--trace", "steps=3-4,7", "--dump-steps", "2,4,100", "--dump-dir", "out"]
    command = [sys.executable, "-m", "tfprof.agent.launcher.run", *options, str(python), "train.py"]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, cwd=tmp_path)
    assert completed.returncode == 0, completed.stderr
    out = tmp_path / "out"
    messages = [line for line in completed.stderr.splitlines() if "profile_" in line]
    assert messages == [
        f"tfprof: no {out}/profile_2: no step up to 2 was traced (--trace selects the steps)",
        f"tfprof: wrote {out}/profile_4: 2 traced steps",
        f"tfprof: wrote {out}/profile_100: 3 traced steps, the last is step 7; the job ended after step 8",
    ]
    assert sorted(path.name for path in out.iterdir()) == ["profile_100", "profile_4"]
    for name, steps in (("profile_4", [3, 4]), ("profile_100", [3, 4, 7])):
        profile = ProfileProto.FromString((out / name).read_bytes())
        assert list(profile.steps) == steps
        nodes = {node.name: node for node in profile.nodes.values()}
        assert sorted(nodes[b"product"].execs) == steps
        answer = subprocess.run(
            [python, "-c", READ_PROFILE, out / name], capture_output=True, text=True, check=False, timeout=120
        )
        totals, frame = answer.stdout.splitlines()
        assert min(map(int, totals.split())) > 0, answer.stderr
        assert frame.startswith("train.py:")
