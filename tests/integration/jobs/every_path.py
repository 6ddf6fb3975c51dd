"""Takes steps on each path of TensorFlow that tfprof patches, and prints their results.

With the argument `wait` it then waits for a line.
"""

import sys

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1


def sessions():
    with tf1.Graph().as_default():
        x = tf1.placeholder(tf.float32, [2], name="x")
        w = tf1.get_variable("w", [2], initializer=tf1.ones_initializer())
        y = x * w
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            call = session.make_callable(y, feed_list=[x])
            options, metadata = tf1.RunOptions(trace_level=tf1.RunOptions.SOFTWARE_TRACE), tf1.RunMetadata()
            for _ in range(4):
                result = session.run(y, {x: [1, 2]}) + call([3, 4])
            session.run(y, {x: [1, 2]}, options=options, run_metadata=metadata)
            print("session", result, bool(metadata.step_stats.dev_stats))


def functions():
    w = tf.Variable(tf.ones([2]))

    @tf.function
    def step(x):
        w.assign_add(x)
        return tf.reduce_sum(w)

    for _ in range(4):
        result = step(tf.ones([2]))
    concrete = step.get_concrete_function(tf.TensorSpec([2]))
    for _ in range(4):
        result = concrete(tf.ones([2]))
    print("function", float(result))


def eager_steps():
    w = tf.Variable(3.0)
    for _ in range(4):
        with tf.GradientTape() as tape:
            loss = w * w
        w.assign_sub(0.1 * tape.gradient(loss, w))
    print("eager", float(w))


def keras():
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Dense(1, kernel_initializer="ones", input_shape=(2,))])
    model.compile("sgd", "mse")
    x, y = np.ones((8, 2), "f4"), np.ones((8, 1), "f4")
    history = model.fit(x, y, epochs=2, batch_size=4, verbose=0, validation_data=(x, y), shuffle=False)
    print("fit", history.history["loss"])
    print("evaluate", model.evaluate(x, y, batch_size=4, verbose=0))
    print("predict", model.predict(x, batch_size=4, verbose=0).sum(), model.train_on_batch(x, y))


sessions()
if tf.executing_eagerly():
    functions()
    eager_steps()
keras()
if "wait" in sys.argv:
    print("ready", flush=True)
    sys.stdin.readline()
