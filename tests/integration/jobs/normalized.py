"""A Keras net with padding, normalizations and frozen layers: python normalized.py PACKAGE.

It fits batches of 16, 16 and 4 images of 8x8 pixels for two epochs, and prints the net's numbers of
parameters as Keras counts them: [all, trainable].
"""

import importlib
import json
import math
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np

keras = importlib.import_module(sys.argv[1])
layers = keras.layers
model = keras.Sequential(
    [
        layers.InputLayer((8, 8, 3)),
        layers.ZeroPadding2D(1),
        layers.Conv2D(4, 3, use_bias=False),
        layers.BatchNormalization(),
        layers.ReLU(),
        layers.ZeroPadding2D(1),
        layers.Conv2D(5, 3, activation="relu"),
        layers.BatchNormalization(),
        layers.Conv2D(6, 3, activation="relu", padding="same", trainable=False),
        layers.Dropout(0.1, seed=1),
        layers.Flatten(),
        layers.Dense(10),
    ]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
random = np.random.RandomState(0)
images, labels = random.rand(36, 8, 8, 3).astype("float32"), random.randint(0, 10, 36)
model.fit(images, labels, batch_size=16, epochs=2, shuffle=False, verbose=0)
trainable = sum(math.prod(map(int, weight.shape)) for weight in model.trainable_weights)
print(json.dumps([model.count_params(), trainable]))
