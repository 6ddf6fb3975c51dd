"""Jobs with activities that they measure themselves: python activities.py KIND FOLDER [PACKAGES].

The last line of the output has their true times, in seconds, as JSON. PACKAGES: a folder with
further packages.
"""

import json
import sys
import time

import numpy as np
import tensorflow as tf

KIND, FOLDER = sys.argv[1:3]
v1 = tf.compat.v1
true = {}


class Timed:
    """Adds the time of a `with` block to ``true``."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        self.start = time.perf_counter()

    def __exit__(self, *_error):
        true[self.name] = true.get(self.name, 0) + time.perf_counter() - self.start


def load(number):
    time.sleep(0.005)
    return np.full((16, 8), number, "f")


def dataset(count):
    numbers = tf.data.Dataset.range(count)
    elements = numbers.map(lambda number: tf.numpy_function(load, [number], tf.float32))
    return elements.map(lambda inputs: (tf.ensure_shape(inputs, (16, 8)), tf.ones((16, 1))))


def fit():
    keras = tf.keras
    model = keras.Sequential([keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile("sgd", "mse")

    class Slow(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            with Timed("Slow"):
                time.sleep(0.003)

    class Saving(keras.callbacks.ModelCheckpoint):
        def on_epoch_end(self, epoch, logs=None):
            with Timed("Saving"):
                super().on_epoch_end(epoch, logs)

    writer = tf.summary.create_file_writer(FOLDER + "/logs")

    class Logging(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            with Timed("Logging"), writer.as_default():
                for number in range(100):
                    tf.summary.write(f"x{number}", tf.constant(1.0), step=epoch)
                writer.flush()

    path = FOLDER + ("/saved.weights.h5" if hasattr(keras, "version") else "/saved")
    callbacks = [Slow(), Saving(path, save_weights_only=True), Logging()]
    model.fit(dataset(20), epochs=2, verbose=0, validation_data=dataset(5), callbacks=callbacks)
    with Timed("predict"):
        model.predict(dataset(20), verbose=0)


def hand():
    weights = tf.Variable(tf.ones((8, 1)))

    @tf.function
    def train_step(inputs):
        weights.assign_sub(0.01 * tf.reduce_mean(tf.matmul(inputs, weights)) * tf.ones((8, 1)))
        return tf.reduce_sum(weights)

    manager = tf.train.CheckpointManager(tf.train.Checkpoint(weights=weights), FOLDER, 2)
    iterator = iter(dataset(60))
    for number in range(60):
        with Timed("next"):
            inputs, _ = next(iterator)
        train_step(inputs)
        if number % 20 == 19:
            with Timed("save"):
                manager.save()
            train_step(tf.ones((17 + number, 8)))


def session():
    v1.disable_eager_execution()
    inputs = v1.placeholder(tf.float32, [None, 8])
    weights = v1.get_variable("weights", [8, 1])
    checked = v1.py_func(load, [v1.train.get_or_create_global_step()], tf.float32)
    loss = tf.reduce_mean(tf.matmul(inputs, weights) ** 2)
    train = v1.train.GradientDescentOptimizer(0.01).minimize(loss)
    summary, saver, writer = v1.summary.scalar("loss", loss), v1.train.Saver(), v1.summary.FileWriter(FOLDER)
    with v1.Session() as tf_session:
        tf_session.run(v1.global_variables_initializer())
        for number in range(40):
            feeds = {inputs: np.ones((16, 8))}
            tf_session.run([train, checked], feeds)
            writer.add_summary(tf_session.run(summary, feeds), number)
            if number % 20 == 19:
                with Timed("save"):
                    saver.save(tf_session, FOLDER + "/saved", number)
        saver.restore(tf_session, FOLDER + "/saved-39")
    writer.close()


def marks():
    sys.path.extend(sys.argv[3:])
    import nvtx
    from opentelemetry.sdk.trace import TracerProvider

    tracer = TracerProvider().get_tracer("job")
    weights = tf.Variable(tf.ones((8, 1)))

    @nvtx.annotate("decorated")
    def decorated():
        with Timed("decorated"):
            time.sleep(0.001)

    @tf.function
    def train_step():
        weights.assign_sub(0.01 * tf.ones((8, 1)))

    for number in range(50):
        with tf.profiler.experimental.Trace("step", step_num=number, _r=1), Timed("step"):
            with nvtx.annotate("decode"), Timed("decode"):
                time.sleep(0.001)
            nvtx.push_range("pushed")
            decorated()
            nvtx.pop_range()
            with tracer.start_as_current_span("log"), Timed("log"):
                time.sleep(0.001)
            train_step()
    with Timed("trace_on"):
        tf.summary.trace_on(profiler=True, profiler_outdir=FOLDER)
    for _ in range(3):
        train_step()
    with tf.summary.create_file_writer(FOLDER).as_default(), Timed("trace_export"):
        tf.summary.trace_export("three steps", step=0)


{"fit": fit, "hand": hand, "marks": marks, "session": session}[KIND]()
print(json.dumps(true))
