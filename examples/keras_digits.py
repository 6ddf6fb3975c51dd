"""Trains a small convolutional network on handwritten digits with Keras, without tfprof."""

import argparse

import keras
import numpy as np
from sklearn.datasets import load_digits


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()

    keras.utils.set_random_seed(0)
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[..., None]
    model = keras.Sequential(
        [
            keras.layers.Input((8, 8, 1)),
            keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
            keras.layers.Conv2D(64, 3, padding="same", activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(128, activation="relu"),
            keras.layers.Dense(10),
        ]
    )
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    model.fit(images[:1500], digits.target[:1500], batch_size=args.batch_size, epochs=args.epochs, verbose=2)
    _, accuracy = model.evaluate(images[1500:], digits.target[1500:], verbose=0)
    print(f"accuracy on unseen digits: {accuracy:.3f}")


if __name__ == "__main__":
    main()
