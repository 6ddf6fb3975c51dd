"""Runs under TensorFlow 1.15 or 2.x in an empty folder: writes a checkpoint and its values.

The files are `model-7.*`, `graph.pb` and `values.json`: {name: [dtype, shape, values]}, as
TensorFlow reads them.
"""

import json
from pathlib import Path

import numpy as np
import tensorflow.compat.v1 as tf


def values():
    """Return variables of many types and shapes by name."""
    rng = np.random.RandomState(0)
    variables = {
        "layer/float": rng.randn(2, 3, 4).astype(np.float32) * 1e4,
        "layer/double": rng.randn(5),
        "int": np.array([[1, -2], [3, 4]], np.int32),
        "long": np.int64(1) << 40,
        "text": np.array([b"x", b"\xc3\xb6'", b"long" * 100]),
        "half": np.array([1.5], np.float16),
        "large": rng.randn(100, 50).astype(np.float32),
        "empty": np.zeros((0, 3), np.float32),
        "odd": np.array([np.inf, -np.inf, 1e-30, 123456789, 0.1], np.float32),
    }
    return {**variables, **{f"many/{number:03d}": np.float32(number) for number in range(300)}}


def row(reader, name, shape):
    """Return [dtype, shape, values] of a variable, as TensorFlow reads them."""
    dtype, value = reader.get_variable_to_dtype_map()[name], reader.get_tensor(name).ravel()
    return [dtype.as_datatype_enum, shape, [text.decode() for text in value] if dtype == tf.string else value.tolist()]


def main():
    """Write all files."""
    tf.disable_v2_behavior()
    for name, value in values().items():
        tf.get_variable(name, initializer=tf.constant(value))
    tf.get_variable("parts", shape=[10, 4], partitioner=tf.fixed_size_partitioner(2))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        tf.train.Saver(sharded=True).save(session, "./model", global_step=7)
    Path("graph.pb").write_bytes(tf.get_default_graph().as_graph_def(add_shapes=True).SerializeToString())
    reader = tf.train.load_checkpoint("./model-7")
    rows = {name: row(reader, name, list(shape)) for name, shape in reader.get_variable_to_shape_map().items()}
    Path("values.json").write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
