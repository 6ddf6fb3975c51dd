"""Three profiles of TensorFlow's own profiler: python own_profiles.py FOLDER.

They are in FOLDER/marked, a loop with marked steps; FOLDER/loop, the same without marks; and
FOLDER/fit, a Keras fit.
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import tensorflow as tf

folder = sys.argv[1]
data = tf.data.Dataset.range(400).map(lambda _: (tf.ones((32, 64)), tf.ones((32, 10)))).repeat()
weights = tf.Variable(tf.ones((64, 10)))


@tf.function
def train_step(x, y):
    """Take one step."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ weights - y) ** 2)
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


iterator = iter(data)
train_step(*next(iterator))
tf.profiler.experimental.start(f"{folder}/marked")
for number in range(6):
    with tf.profiler.experimental.Trace("train", step_num=number + 100, _r=1):
        train_step(*next(iterator))
tf.profiler.experimental.stop()
tf.profiler.experimental.start(f"{folder}/loop")
for _ in range(5):
    train_step(*next(iterator))
tf.profiler.experimental.stop()
model = keras.Sequential([keras.layers.Dense(16), keras.layers.Dense(10)])
model.compile("adam", "mse")
model.fit(data, steps_per_epoch=4, verbose=0)
tf.profiler.experimental.start(f"{folder}/fit")
model.fit(data, steps_per_epoch=4, verbose=0)
tf.profiler.experimental.stop()
