"""Trains a small convolutional network on handwritten digits with Session.run, without tfprof."""

import argparse

import numpy as np
import tensorflow.compat.v1 as tf
from sklearn.datasets import load_digits


def network(images, labels):
    with tf.variable_scope("conv1"):
        kernel = tf.get_variable("kernel", [3, 3, 1, 32], initializer=tf.glorot_uniform_initializer(seed=1))
        hidden = tf.nn.relu(tf.nn.conv2d(images, kernel, strides=1, padding="SAME"))
    with tf.variable_scope("conv2"):
        kernel = tf.get_variable("kernel", [3, 3, 32, 64], initializer=tf.glorot_uniform_initializer(seed=2))
        hidden = tf.nn.relu(tf.nn.conv2d(hidden, kernel, strides=2, padding="SAME"))
    with tf.variable_scope("classify"):
        weights = tf.get_variable("weights", [4 * 4 * 64, 10], initializer=tf.glorot_uniform_initializer(seed=3))
        logits = tf.matmul(tf.reshape(hidden, [-1, 4 * 4 * 64]), weights)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    correct = tf.equal(tf.argmax(logits, 1), labels)
    return loss, tf.reduce_mean(tf.cast(correct, tf.float32))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--batch-size", type=int, default=64)
    args = parser.parse_args()

    tf.disable_eager_execution()
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[..., None]
    labels = digits.target.astype(np.int64)
    image_batch = tf.placeholder(tf.float32, [None, 8, 8, 1], "images")
    label_batch = tf.placeholder(tf.int64, [None], "labels")
    loss, accuracy = network(image_batch, label_batch)
    train = tf.train.AdamOptimizer(1e-3).minimize(loss)

    rng = np.random.default_rng(0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for step in range(1, args.steps + 1):
            indices = rng.integers(0, 1500, args.batch_size)
            _, value = session.run([train, loss], {image_batch: images[indices], label_batch: labels[indices]})
            if step % 200 == 0:
                print(f"step {step}: loss {value:.3f}")
        value = session.run(accuracy, {image_batch: images[1500:], label_batch: labels[1500:]})
        print(f"accuracy on unseen digits: {value:.3f}")


if __name__ == "__main__":
    main()
