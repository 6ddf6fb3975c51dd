"""Jobs with one planted cause each, and healthy ones, without output: planted.py MODE.

MODE is the name of a function below. Each runs for some seconds.
"""

import contextlib
import gc
import os
import sys
import tempfile
import threading
import time

import numpy as np
import tensorflow as tf

ROUNDS_MIN = 40  # also on a busy host
SECONDS = float(os.environ.get("PLANTED_SECONDS", "4"))


def while_running():
    end, number = time.monotonic() + SECONDS, 0
    while time.monotonic() < end or number < ROUNDS_MIN:
        number += 1
        yield


class Stop(tf.keras.callbacks.Callback):
    """Ends a fit after SECONDS."""

    def __init__(self):
        super().__init__()
        self.end = time.monotonic() + SECONDS

    def on_train_batch_end(self, batch, logs=None):
        if time.monotonic() > self.end:
            self.model.stop_training = True
            raise StopIteration


def fit(data, model=None, callbacks=(), **options):
    model = model or tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse", **options)
    with contextlib.suppress(StopIteration):
        model.fit(data, epochs=1000, verbose=0, callbacks=[*callbacks, Stop()])


def large_model(width=700, depth=4):
    return tf.keras.Sequential(
        [tf.keras.layers.Dense(width, "relu") for _ in range(depth)] + [tf.keras.layers.Dense(1)]
    )


def batches(size=16, features=8, number=2000):
    x = np.random.default_rng(0).random((size, features)).astype("float32")
    return tf.data.Dataset.from_tensors((x, x[:, :1])).repeat(number)


def trainer(dtype="float32", width=600, size=256):
    weights = tf.Variable(np.random.default_rng(0).random((width, width)) / width, dtype=dtype)
    x = tf.constant(np.random.default_rng(1).random((size, width)), dtype)

    @tf.function
    def train():
        with tf.GradientTape() as tape:
            h = x
            for _ in range(4):
                h = tf.tanh(h @ weights)  # the line of float64
            loss = tf.reduce_mean(tf.square(h - 1))
        weights.assign_sub(0.01 * tape.gradient(loss, weights))
        return loss

    return train, weights


# -- healthy ---------------------------------------------------------------------------------------


def healthy_fit():
    fit(batches(256, 256).prefetch(2), large_model())


def healthy_loop():
    train, _ = trainer()
    for _ in while_running():
        train()


def healthy_pipeline():
    def double(x, y):
        return x * 2.0, y

    data = batches(256, 256).map(double, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
    fit(data, large_model())


# -- input -----------------------------------------------------------------------------------------


def generator():
    # It ends by itself: TensorFlow waits for ever for a generator that runs as the process ends.
    def samples():  # the line of generator
        for _ in while_running():
            time.sleep(0.01)
            yield np.ones((16, 8), "float32"), np.ones((16, 1), "float32")

    signature = (tf.TensorSpec((16, 8)), tf.TensorSpec((16, 1)))
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(tf.data.Dataset.from_generator(samples, output_signature=signature).prefetch(1), verbose=0)


def python_map():
    def decode(x):  # the line of python_map
        time.sleep(0.008)
        return x

    def load(x, y):
        return tf.ensure_shape(tf.numpy_function(decode, [x], tf.float32), [16, 8]), y

    fit(batches().map(load))


def serial_map():
    kernel = tf.constant(np.random.default_rng(0).random((400, 400)) / 400, tf.float32)

    def prepare(x, y):
        h = tf.ones([400, 400])
        for _ in range(8):
            h = tf.tanh(h @ kernel)
        return x + tf.reduce_sum(h) * 0.0, y

    fit(batches().map(prepare).prefetch(1))


def hand_loop():
    def samples():  # the line of hand_loop
        for _ in while_running():
            time.sleep(0.01)
            yield np.ones((64, 64), "float32")

    data = tf.data.Dataset.from_generator(samples, output_signature=tf.TensorSpec((64, 64)))
    weights = tf.Variable(tf.ones([64, 64]))

    @tf.function
    def train(x):
        weights.assign_sub(0.001 * tf.linalg.matmul(x, x @ weights, transpose_a=True))

    for x in data:
        train(x)


# -- the loop --------------------------------------------------------------------------------------


def run_eagerly():
    fit(batches(), large_model(16, 3), run_eagerly=True)


def eager_loop():
    model = tf.keras.Sequential([tf.keras.layers.Dense(16, "relu") for _ in range(4)])
    optimizer = tf.keras.optimizers.Adam()
    x = tf.ones([16, 16])
    for _ in while_running():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x) - 1.0))
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))


def single_predict():
    model = tf.keras.Sequential([tf.keras.layers.Dense(8, "relu"), tf.keras.layers.Dense(1)])
    sample = np.ones((1, 8), "float32")
    for _ in while_running():
        model.predict(sample, verbose=0)


def retraced():
    @tf.function
    def scaled(x, factor):
        for _ in range(10):
            x = tf.tanh(x) * factor  # the line of retraced
        return x

    for number, _ in enumerate(while_running()):
        scaled(tf.ones([8]), 0.001 * number)


def garbage():
    objects = [[number] for number in range(400_000)]
    train, _ = trainer(width=64, size=16)
    for _ in while_running():
        train()
        gc.collect()
    del objects


def checkpoint_loop():
    train, weights = trainer(width=800, size=16)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(weights=weights), tempfile.mkdtemp(), 1)
    for _ in while_running():
        train()
        manager.save()


def summary_loop():
    train, weights = trainer(width=300, size=16)
    writer = tf.summary.create_file_writer(tempfile.mkdtemp())
    with writer.as_default():
        for step, _ in enumerate(while_running()):
            train()
            tf.summary.write("weights", weights, step)
            writer.flush()


class SlowCallback(tf.keras.callbacks.Callback):
    """Takes its time after each batch."""

    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.01)


def slow_callback():
    fit(batches(), callbacks=[SlowCallback()])


def small_batch():
    fit(batches(1, 8), tf.keras.Sequential([tf.keras.layers.Dense(8, "relu"), tf.keras.layers.Dense(1)]))


def busy_thread():
    def count():  # the line of busy_thread
        while True:
            sum(number * number for number in range(1000))

    threading.Thread(target=count, daemon=True).start()
    train, _ = trainer(width=100, size=16)
    for _ in while_running():
        float(train())


def conversion():
    batch = np.random.default_rng(0).random((1000, 1000))
    weights = tf.Variable(tf.ones([1000, 4]))

    @tf.function
    def train(x):
        weights.assign_sub(0.001 * weights * tf.reduce_mean(x @ weights))

    for _ in while_running():
        train(tf.constant(batch, tf.float32))  # the line of conversion


def asleep():
    train, _ = trainer(width=64, size=16)
    for _ in while_running():
        train()
        time.sleep(0.01)


def python_between():
    train, _ = trainer(width=64, size=16)
    for _ in while_running():
        train()
        sum(number * number for number in range(60_000))


def float64():
    train, _ = trainer("float64")
    for _ in while_running():
        train()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
