"""Short calls, session runs and steps of a tape: most are only counted, and some fail.

usage: counted_failures.py callable|concrete|function|session|tape
"""

import sys
from contextlib import suppress

import tensorflow as tf

v1 = tf.compat.v1
STEPS = 1200


@tf.function
def positive(value):
    """Return twice ``value``; fail if ``value`` is not above 0."""
    tf.debugging.assert_positive(value)
    return value * 2.0


def calls(function):
    """Call ``function``; each fourth call fails."""
    for number in range(STEPS):
        with suppress(tf.errors.InvalidArgumentError):
            function(tf.constant(-1.0 if number % 4 == 3 else 1.0))


def concrete():
    """Call a concrete function."""
    calls(positive.get_concrete_function(tf.TensorSpec([], tf.float32)))


def function():
    """Call a tf.function."""
    calls(positive)


def session():
    """Run one tensor, and another in each tenth run; each fourth run fails."""
    with tf.Graph().as_default():
        value = v1.placeholder(tf.float32, [])
        with tf.control_dependencies([v1.assert_positive(value)]):
            tensors = [value * 2.0, value * 3.0]
        tf_session = v1.Session()
        for number in range(STEPS):
            with suppress(tf.errors.InvalidArgumentError):
                tf_session.run(tensors[number % 10 == 0], {value: -1.0 if number % 4 == 3 else 1.0})


def callable_():
    """Call a callable that checks what it is fed; each fourth call fails."""
    with tf.Graph().as_default():
        value = v1.placeholder(tf.float32, [])
        with tf.control_dependencies([v1.assert_positive(value)]):
            doubled = value * 2.0
        run = v1.Session().make_callable(doubled, [value])
        for number in range(STEPS):
            with suppress(tf.errors.InvalidArgumentError):
                run(-1.0 if number % 4 == 3 else 1.0)


def tape():
    """Take gradients; each fifth step fails within its tape."""
    variable = tf.Variable(1.0)
    for number in range(STEPS):
        with suppress(ZeroDivisionError):
            with tf.GradientTape() as gradient_tape:
                loss = variable * 2.0
                1 / (number % 5)
            gradient_tape.gradient(loss, variable)


PATHS = {"callable": callable_, "concrete": concrete, "function": function, "session": session, "tape": tape}
PATHS[sys.argv[1]]()
print("ready", flush=True)
input()
