"""Eager loops, calls of functions and of models; prints the expected count of each kind as JSON."""

import json
import threading
from collections import Counter
from contextlib import suppress

import tensorflow as tf

if tf.__version__.startswith("1."):
    tf.compat.v1.enable_v2_behavior()
keras = tf.keras
X = tf.ones([8, 16])


def model_and_optimizer():
    model = keras.Sequential([keras.layers.Dense(4, input_shape=(16,)), keras.layers.Dense(1)])
    return model, keras.optimizers.SGD(1e-3)


def apply(optimizer, gradients, variables):
    optimizer.apply_gradients(zip(gradients, variables))  # noqa: B905 - Python 3.7 knows no strict


def loss_of(model):
    return tf.reduce_mean(model(X) ** 2)


def tape_loop():
    """A training loop of eager ops, with calls of the model as evaluations."""
    model, optimizer = model_and_optimizer()
    for number in range(12):
        with tf.GradientTape() as tape:
            loss = loss_of(model)
        apply(optimizer, tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        if number % 4 == 3:
            model(X)
    return {"eager": 12, "call": 3}


def functions_within():
    """Functions within and between training steps, and gradients from a function."""
    model, optimizer = model_and_optimizer()
    forward = tf.function(lambda: loss_of(model))

    @tf.function
    def gradients():
        with tf.GradientTape() as tape:
            loss = loss_of(model)
        return tape.gradient(loss, model.trainable_variables)

    for _ in range(5):
        with tf.GradientTape() as tape:
            loss = forward()
        grads = tape.gradient(loss, model.trainable_variables)
        apply(optimizer, grads, model.trainable_variables)
        forward()
    for _ in range(7):
        apply(optimizer, gradients(), model.trainable_variables)
    return {"eager": 5, "function": 12}


def two_optimizers():
    """Steps with two optimizers, which end when the first is applied; then none without a tape."""
    model, first = model_and_optimizer()
    second = keras.optimizers.SGD(1e-3)
    halves = [model.trainable_variables[:2], model.trainable_variables[2:]]
    for _ in range(6):
        with tf.GradientTape() as first_tape, tf.GradientTape() as second_tape:
            loss = loss_of(model)
            doubled = loss * 2.0
        apply(first, first_tape.gradient(loss, halves[0]), halves[0])
        apply(second, second_tape.gradient(doubled, halves[1]), halves[1])
    for _ in range(4):
        second.apply_gradients([(tf.zeros_like(variable), variable) for variable in halves[1]])
    return {"eager": 6}


def without_optimizer():
    """Steps without an optimizer, calls of a function, and a step that fails within a tape."""
    w = tf.Variable(tf.ones([16, 4]))
    function = tf.function(lambda: tf.reduce_sum(tf.matmul(X, w)))
    for _ in range(5):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.matmul(X, w) ** 2)
        w.assign_sub(0.01 * tape.gradient(loss, w))
    for _ in range(4):
        function()
    with suppress(ZeroDivisionError), tf.GradientTape():
        1 / 0  # noqa: B018 - it fails
    return {"eager": 6, "function": 4}


def concrete_function():
    """Direct calls of a concrete function; the last one fails."""
    w = tf.Variable(tf.ones([16, 4]))
    function = tf.function(lambda x: tf.matmul(x, w)).get_concrete_function(tf.TensorSpec([None, 16], tf.float32))
    for _ in range(9):
        function(X)
    with suppress(tf.errors.InvalidArgumentError, ValueError):
        function(tf.ones([8, 3]))
    return {"function": 10}


def nested_models():
    """A model in a model; the construction is no step."""
    inner, _ = model_and_optimizer()
    inputs = keras.Input([16])
    outer = keras.Model(inputs, keras.layers.Dense(2)(inner(inputs)))
    for _ in range(6):
        outer(X)
    keras.layers.Dense(3)(X)
    return {"call": 6}


def threads():
    """Training loops in three threads."""
    pairs = [model_and_optimizer() for _ in range(3)]

    def work(model, optimizer):
        for _ in range(8):
            with tf.GradientTape() as tape:
                loss = loss_of(model)
            gradients = tape.gradient(loss, model.trainable_variables)
            apply(optimizer, gradients, model.trainable_variables)

    workers = [threading.Thread(target=work, args=arguments) for arguments in pairs]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return {"eager": 24}


def short_calls():
    """Two hundred short calls of a function."""
    w = tf.Variable(tf.ones([16, 16]))
    function = tf.function(lambda x: tf.reduce_sum(tf.sin(tf.matmul(x, w))))
    for _ in range(200):
        function(X)
    return {"function": 200}


counts = Counter()
for run_steps in (
    short_calls,
    tape_loop,
    functions_within,
    two_optimizers,
    without_optimizer,
    concrete_function,
    nested_models,
    threads,
):
    counts.update(run_steps())
print(json.dumps(counts, sort_keys=True))
print("ready", flush=True)
input()
