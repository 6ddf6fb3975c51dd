"""Runs named ops that TensorFlow rewrites: python rewrites.py session|function."""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

kind = sys.argv[1]
random, nn = np.random.RandomState(0), tf.nn


def value(*shape):
    return tf.constant(random.rand(*shape).astype("float32"))


def normalized(x, training):
    scale, offset, mean, variance = value(6), value(6), value(6), value(6)
    moments = {} if training else {"mean": mean, "variance": variance}
    return tf.compat.v1.nn.fused_batch_norm(x, scale, offset, is_training=training, **moments)[0]


def outputs(x):
    """Return the ops' outputs; ``x`` is a batch of four images of 8x8x6."""
    kernel, bias, paddings = value(3, 3, 6, 4), value(4), [[0, 0], [1, 1], [2, 2], [0, 0]]
    flat, weights = tf.reshape(x, [32, 48]), value(48, 5)
    square = tf.reshape(x, [4, 1, 8, 48])
    return [
        nn.relu(nn.bias_add(nn.conv2d(x + 1.0, kernel, 1, "SAME"), bias), name="conv_bias_relu"),
        nn.conv2d(tf.pad(x + 2.0, paddings), kernel, 1, "VALID", name="pad_conv"),
        nn.relu(nn.bias_add(nn.conv2d(tf.pad(x + 3.0, paddings), kernel, 1, "VALID"), bias), name="pad_conv_relu"),
        nn.relu(normalized(x + 4.0, True), name="norm_relu"),
        nn.relu(normalized(x + 5.0, False), name="inference_norm_relu"),
        tf.tanh(nn.bias_add(tf.matmul(flat + 6.0, weights), value(5)), name="dense_tanh"),
        nn.gelu(nn.bias_add(tf.matmul(flat + 7.0, weights), value(5)), approximate=False, name="gelu"),
        tf.multiply(x + 8.0, tf.sigmoid(x + 8.0), name="swish"),
        tf.multiply(x + 9.0, tf.tanh(tf.math.softplus(x + 9.0)), name="mish"),
        tf.add(tf.matmul(square, square, transpose_b=True) * 0.125, value(4, 1, 8, 8), name="scores"),
        nn.bias_add(tf.squeeze(nn.conv2d(x[:, :1] + 10.0, value(1, 1, 6, 4), 1, "SAME"), [1]), bias, name="squeezed"),
        nn.relu6(nn.bias_add(nn.depthwise_conv2d(x, value(3, 3, 6, 1), [1] * 4, "SAME"), value(6)), name="depthwise"),
        tf.exp(tf.tanh(tf.sqrt(x + 11.0)), name="unary"),
    ]


def main():
    """Run three steps."""
    if kind == "session":
        tf.compat.v1.disable_eager_execution()
        x = tf.compat.v1.placeholder(tf.float32, [4, 8, 8, 6])
        results = outputs(x)
        with tf.compat.v1.Session() as session:
            for _ in range(3):
                session.run(results, {x: random.rand(4, 8, 8, 6)})
    else:
        step = tf.function(outputs)
        for _ in range(3):
            step(tf.constant(random.rand(4, 8, 8, 6).astype("float32")))


main()
