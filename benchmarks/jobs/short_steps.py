"""Runs steps of a given duration on one path, in turns, with and without hooks.

A path is a way of running a step, such as Session.run or a tf.function. The script prints the step
times of each turn as JSON.

usage: short_steps.py session|callable|function|concrete|tape|train|fit MICROSECONDS TURNS SECONDS.
A turn has three blocks of steps: one with hooks (`hooked`) and two without (`bare`, `bare_again`),
in changing order. The time of a block is the mean of the middle half of its step times.
"""

import json
import os
import sys
import time

os.sched_setaffinity(0, {(os.cpu_count() or 1) - 1})  # the launcher and the daemons are on the first core

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from _hooks import without_hooks  # noqa: E402

v1 = tf.compat.v1
STEPS = 50  # steps in a block
WARM_UP = 300
LENGTH_MAX = 4000  # maximum operations in a chain


def chain(value, length):
    """Return ``value`` after a chain of ``length`` small operations."""
    for _ in range(length):
        value = tf.sin(value)  # an op that TensorFlow does not fuse
    return value


def config():
    """Return a session's options without extra threads, whose scheduling would add noise."""
    return v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=-1)


def session(length):
    """Session.run with one feed and one fetch."""
    with tf.Graph().as_default() as graph:
        feed = v1.placeholder(tf.float32, [])
        result = chain(feed, length)
    tf_session = v1.Session(graph=graph, config=config())
    return lambda: tf_session.run(result, {feed: 1.0})


def callable_(length):
    """A callable of Session.make_callable."""
    with tf.Graph().as_default() as graph:
        variable = v1.get_variable("start", [], use_resource=True)
        result, initializer = chain(variable.read_value(), length), variable.initializer
    tf_session = v1.Session(graph=graph, config=config())
    tf_session.run(initializer)
    return tf_session.make_callable(result)


def function(length):
    """A call of a tf.function."""
    step = tf.function(lambda value: chain(value, length))
    argument = tf.constant(1.0)
    return lambda: step(argument)


def concrete(length):
    """A direct call of a concrete function."""
    step = tf.function(lambda value: chain(value, length))
    argument = tf.constant(1.0)
    concrete_function = step.get_concrete_function(argument)
    return lambda: concrete_function(argument)


def tape(length):
    """A training step of eager ops, in a gradient tape."""
    variable = tf.Variable(1.0)

    def step():
        with tf.GradientTape() as gradient_tape:
            loss = chain(variable * variable, length)
        variable.assign_sub(0.01 * gradient_tape.gradient(loss, variable))

    return step


def _model(length):
    keras = tf.keras
    layers = [keras.layers.Dense(4, input_shape=(4,))] + [keras.layers.Dense(4) for _ in range(length // 4)]
    model = keras.Sequential(layers)
    model.compile(keras.optimizers.SGD(0.01) if hasattr(keras.optimizers, "SGD") else "sgd", "mse")
    return model


def train(length):
    """Keras's train_on_batch."""
    model, data = _model(length), np.zeros((8, 4), "float32")
    return lambda: model.train_on_batch(data, data)


def fit(length):
    """A call of Keras's fit, with STEPS batches."""
    model, data = _model(length), np.zeros((8 * STEPS, 4), "float32")
    return lambda: model.fit(data, data, batch_size=8, epochs=1, verbose=0)


#: By path: a function that takes the length of a chain and returns a step with such a chain.
PATHS = {
    "session": session,
    "callable": callable_,
    "function": function,
    "concrete": concrete,
    "tape": tape,
    "train": train,
    "fit": fit,
}


def block_time(step, steps):
    """Return the mean of the middle half of the times of ``steps`` steps, in microseconds."""
    clock, times = time.perf_counter, []
    for _ in range(steps):
        start = clock()
        step()
        times.append(clock() - start)
    times.sort()
    middle = times[steps // 4 : steps - steps // 4] or times
    return 1e6 * sum(middle) / len(middle)


def batch_time(step, calls):
    """Return the microseconds a batch in ``calls`` calls of fit."""
    return block_time(step, calls) / STEPS


def chain_length(path, target_us):
    """Return the number of operations for a step of about ``target_us`` microseconds."""
    measure, steps = (batch_time, 3) if path == "fit" else (block_time, WARM_UP)
    without_chain_us, with_chain_us = (measure(PATHS[path](length), steps) for length in (0, 40))
    # If the fetched tensor is fed, Session.run runs no op, so a chain needs at least one operation.
    return min(LENGTH_MAX, max(1, int((target_us - without_chain_us) / max(with_chain_us - without_chain_us, 1) * 40)))


def main():
    """Run the turns."""
    path, target_us, turns, seconds = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    with without_hooks(True):
        step = PATHS[path](chain_length(path, target_us))
        block_time(step, 3 if path == "fit" else WARM_UP)
    measure, steps, warm_up_steps = (batch_time, 1, 1) if path == "fit" else (block_time, STEPS, STEPS // 5)
    block_time(step, 3 if path == "fit" else WARM_UP)
    times = {"hooked": [], "bare": [], "bare_again": []}
    names = list(times)
    end = time.monotonic() + seconds
    while len(times["bare"]) < turns and time.monotonic() < end:
        first = len(times["bare"]) % 3
        for name in names[first:] + names[:first]:
            with without_hooks(name != "hooked"):
                block_time(step, warm_up_steps)
                times[name].append(measure(step, steps))
    print(json.dumps(times), flush=True)


main()
