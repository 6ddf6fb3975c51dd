"""Runs a Keras fit on random images for each line of the input.

A line contains the number of batches. With `bare` as its second word, the fit runs without the
profiler's hooks. The answer to each line is a line of JSON: total seconds, page faults, and an
empty list, since the steps are not measured separately.
"""

import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
import keras
import numpy as np
from _hooks import block

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
model = keras.Sequential(
    [
        keras.layers.Input((28, 28, 1)),
        *[keras.layers.Conv2D(16, 3, padding="same", activation="relu") for _ in range(6)],
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(10),
    ]
)
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
for line in iter(sys.stdin.readline, ""):
    with block(line) as current_block:
        images = rng.random((32 * current_block.steps, 28, 28, 1), dtype=np.float32)
        labels = rng.integers(0, 10, 32 * current_block.steps)
        begin = time.perf_counter()
        model.fit(images, labels, batch_size=32, verbose=0)
        elapsed_s = time.perf_counter() - begin
    print(json.dumps({"s": elapsed_s, "steps_s": [], "page_faults": current_block.page_faults}), flush=True)
