"""A Keras fit on random images; prints the seconds of its epochs after the first."""

import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
import keras
import numpy as np

steps = int(sys.argv[1])
keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
images = rng.random((32 * steps, 28, 28, 1), dtype=np.float32)
labels = rng.integers(0, 10, 32 * steps)
model = keras.Sequential(
    [
        keras.layers.Input((28, 28, 1)),
        *[keras.layers.Conv2D(16, 3, padding="same", activation="relu") for _ in range(6)],
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(10),
    ]
)
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(images[:640], labels[:640], batch_size=32, verbose=0)
begin = time.perf_counter()
model.fit(images, labels, batch_size=32, verbose=0)
total = time.perf_counter() - begin
print(json.dumps({"loop_s": total, "cpu_s": time.process_time(), "steps_s": []}))
