"""Trains a small convolutional network on handwritten digits with GradientTape, without tfprof."""

import argparse

import keras
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=600)
    args = parser.parse_args()

    keras.utils.set_random_seed(0)
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[..., None]
    data = tf.data.Dataset.from_tensor_slices((images[:1500], digits.target[:1500])).repeat().shuffle(1500).batch(64)
    conv = keras.layers.Conv2D(64, 3, padding="same", activation="relu")
    dense = keras.layers.Dense(10)
    optimizer = keras.optimizers.Adam()
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train_step(batch, labels):
        with tf.GradientTape() as tape:
            hidden = conv(batch)
            logits = dense(tf.reshape(hidden, [-1, 8 * 8 * 64]))
            loss = loss_of(labels, logits)
        variables = conv.trainable_variables + dense.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    for step, (batch, labels) in enumerate(data.take(args.steps), 1):
        loss = train_step(batch, labels)
        if step % 200 == 0:
            print(f"step {step}: loss {loss:.3f}")


if __name__ == "__main__":
    main()
