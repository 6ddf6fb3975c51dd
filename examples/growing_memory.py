"""Keeps the result of each step, as many scripts do with losses and images, without tfprof."""

import argparse
import time

import tensorflow as tf


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=700)
    args = parser.parse_args()

    weights = tf.Variable(tf.ones([256, 256]))
    kept = []

    @tf.function
    def train_step(batch):
        output = tf.nn.relu(tf.matmul(batch, weights))
        weights.assign_sub(1e-6 * tf.matmul(batch, output, transpose_a=True))
        return output

    for _ in range(args.steps):
        kept.append(train_step(tf.ones([1024, 256])))
        time.sleep(0.05)


if __name__ == "__main__":
    main()
