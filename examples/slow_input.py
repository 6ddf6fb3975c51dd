"""Trains on images that a Python function reads slowly, without tfprof."""

import argparse
import time

import keras
import numpy as np
import tensorflow as tf


def read(index):
    time.sleep(0.001)  # a file on a network disk
    return np.random.default_rng(index).random((28, 28, 1), dtype=np.float32), np.int64(index % 10)


def load(index):
    image, label = tf.numpy_function(read, [index], (tf.float32, tf.int64))
    return tf.ensure_shape(image, (28, 28, 1)), tf.ensure_shape(label, ())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()

    data = tf.data.Dataset.range(3200).map(load).batch(32)
    model = keras.Sequential(
        [
            keras.layers.Input((28, 28, 1)),
            keras.layers.Conv2D(16, 3, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(10),
        ]
    )
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(data, epochs=args.epochs, shuffle=False, verbose=2)


if __name__ == "__main__":
    main()
