"""Short calls of a concrete function, and steps of a tape: most are only counted, and some fail."""

from contextlib import suppress

import tensorflow as tf

STEPS = 1200


@tf.function
def positive(value):
    """Return twice ``value``; fail if ``value`` is not above 0."""
    tf.debugging.assert_positive(value)
    return value * 2.0


CONCRETE_FUNCTION = positive.get_concrete_function(tf.TensorSpec([], tf.float32))
for number in range(STEPS):
    with suppress(tf.errors.InvalidArgumentError):
        CONCRETE_FUNCTION(tf.constant(-1.0 if number % 4 == 3 else 1.0))
variable = tf.Variable(1.0)
for number in range(STEPS):
    with suppress(ZeroDivisionError):
        with tf.GradientTape() as tape:
            loss = variable * 2.0
            1 / (number % 5)
        tape.gradient(loss, variable)
print("ready", flush=True)
input()
