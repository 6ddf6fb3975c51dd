"""Makes the samples in data/.

    python make_samples.py tf1|tf2

Run it with TensorFlow 1.15 for tf1, and with TensorFlow 2 for tf2. `NAME_software.run_metadata`
and `NAME_full.run_metadata` are one step each of a small session job. `NAME.graph` is its graph
with shapes. `NAME_….json` has sums and sets of the values that TensorFlow's own protobuf classes
read from each step. TensorFlow 2 also makes `keras3.xspace` and `keras2.xspace`, each with three
batches of a small fit, and the spans of the batches.
"""

import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import tensorflow as tf

DATA = Path(__file__).parent / "data"


def session_samples(name):
    v1 = tf.compat.v1
    v1.disable_eager_execution()
    with v1.Graph().as_default() as graph:
        images = hidden = v1.placeholder(tf.float32, [None, 16, 16, 3], name="images")
        for depth in range(2):
            with v1.variable_scope(f"conv{depth}"):
                kernel = v1.get_variable("kernel", [3, 3, int(hidden.shape[-1]), 8])
                bias = v1.get_variable("bias", [8])
                hidden = tf.nn.relu(tf.nn.conv2d(hidden, kernel, strides=[1, 1, 1, 1], padding="SAME") + bias)
        large = tf.constant(np.arange(4096, dtype="f4"), name="large")
        loop = v1.while_loop(
            lambda i, _: i < 3, lambda i, x: (i + 1, x * 1.5), [tf.constant(0), tf.reduce_mean(hidden)]
        )
        loss = tf.reduce_mean(tf.square(hidden)) + loop[1] + tf.reduce_sum(large)
        train = v1.train.MomentumOptimizer(0.01, 0.9).minimize(loss)
        initialize = v1.global_variables_initializer()
    (DATA / (name + ".graph")).write_bytes(graph.as_graph_def(add_shapes=True).SerializeToString())
    with v1.Session(graph=graph) as session:
        session.run(initialize)
        feed = {images: np.zeros([4, 16, 16, 3], "f4")}
        session.run([train, loss], feed)
        for level in ("SOFTWARE", "FULL"):
            options = v1.RunOptions(trace_level=getattr(v1.RunOptions, level + "_TRACE"))
            metadata = v1.RunMetadata()
            session.run([train, loss], feed, options=options, run_metadata=metadata)
            path = DATA / (f"{name}_{level.lower()}.run_metadata")
            path.write_bytes(metadata.SerializeToString())
            path.with_suffix(".json").write_text(json.dumps(totals(metadata), indent=1, sort_keys=True) + "\n")


def totals(metadata):
    """Return sums and sets of the values in a step's rows."""
    nodes = [node for device in metadata.step_stats.dev_stats for node in device.node_stats]
    uses = [use for node in nodes for use in node.memory]
    outputs = [output.tensor_description.allocation_description for node in nodes for output in node.output]
    return {
        "devices": {device.device: len(device.node_stats) for device in metadata.step_stats.dev_stats},
        "names": sorted({node.node_name.split(":")[0] for node in nodes}),
        "base_ns": min(node.all_start_nanos or node.all_start_micros * 1000 for node in nodes),
        "all_start_micros": sum(node.all_start_micros for node in nodes),
        "op_end_rel_micros": sum(node.op_end_rel_micros for node in nodes),
        "op_end_rel_nanos": sum(node.op_end_rel_nanos or node.op_end_rel_micros * 1000 for node in nodes),
        "total_bytes": sum(use.total_bytes for use in uses),
        "peak_bytes": sum(use.peak_bytes for use in uses),
        "live_bytes": sum(use.live_bytes for use in uses),
        "allocators": sorted({node.memory[0].allocator_name for node in nodes if node.memory}),
        "outputs": sum(len(node.output) for node in nodes),
        "output_bytes": sum(max(output.allocated_bytes, output.requested_bytes) for output in outputs),
        "temp_bytes": sum(node.memory_stats.temp_memory_size for node in nodes),
        "persistent_bytes": sum(node.memory_stats.persistent_memory_size for node in nodes),
        "dtypes": sum(node.output[0].tensor_description.dtype for node in nodes if node.output),
        "labels": sorted({node.timeline_label for node in nodes if node.timeline_label}),
    }


def fit_sample(name):
    keras = tf.keras
    profiler = importlib.import_module("tensorflow.python.profiler.internal._pywrap_profiler")
    folder = tempfile.mkdtemp()
    spans = []

    class Recorder(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            if batch == 3:
                self.session = profiler.ProfilerSession()
                levels = {"host_tracer_level": 2, "device_tracer_level": 1, "python_tracer_level": 0}
                self.session.start(folder, levels)
            self.start = time.time_ns()

        def on_train_batch_end(self, batch, logs=None):
            if 3 <= batch < 6:
                spans.append([self.start, time.time_ns() - self.start])
            if batch == 5:
                self.session.export_to_tb()

    model = keras.Sequential(
        [
            keras.layers.Input((8, 8, 1)),
            keras.layers.Conv2D(4, 3, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(10),
        ]
    )
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    data = tf.data.Dataset.from_tensor_slices((np.ones([64, 8, 8, 1], "f4"), np.zeros(64, "i8")))
    model.fit(data.map(lambda x, y: (x * 2.0, y)).batch(8), epochs=1, verbose=0, callbacks=[Recorder()])
    (path,) = Path(folder).glob("**/*.xplane.pb")
    (DATA / (name + ".xspace")).write_bytes(path.read_bytes())
    (DATA / (name + ".spans.json")).write_text(json.dumps(spans) + "\n")
    shutil.rmtree(folder)


if __name__ == "__main__":
    DATA.mkdir(exist_ok=True)
    if sys.argv[1] in ("keras2", "keras3"):
        fit_sample(sys.argv[1])
    else:
        session_samples(sys.argv[1])
        if sys.argv[1] == "tf2":
            for legacy, name in (("", "keras3"), ("1", "keras2")):
                environment = dict(os.environ, TF_USE_LEGACY_KERAS=legacy) if legacy else None
                subprocess.run([sys.executable, __file__, name], env=environment, check=True)
