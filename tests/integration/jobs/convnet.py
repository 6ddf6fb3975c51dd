"""A small convolutional net in Keras: python convnet.py PACKAGE.

In each of two epochs it fits batches of 32, 32 and 6 examples. Then it evaluates batches of 50 and
20.
"""

import importlib
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np

keras = importlib.import_module(sys.argv[1])
layers = keras.layers
model = keras.Sequential(
    [
        layers.InputLayer((28, 28, 1)),
        layers.Conv2D(8, 3, activation="relu"),
        layers.MaxPooling2D(2),
        layers.Conv2D(16, 3, activation="relu", padding="same"),
        layers.Flatten(),
        layers.Dense(10),
    ]
)
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
random = np.random.RandomState(0)
images, labels = random.rand(70, 28, 28, 1).astype("float32"), random.randint(0, 10, 70)
model.fit(images, labels, batch_size=32, epochs=2, shuffle=False, verbose=0)
model.evaluate(images, labels, batch_size=50, verbose=0)
