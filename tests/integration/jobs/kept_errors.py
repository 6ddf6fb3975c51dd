"""Calls of models and functions. The job keeps exceptions that were raised and handled in them."""

import tensorflow as tf

errors = []


class Handling(tf.keras.layers.Layer):
    """A layer that handles an exception, and keeps it."""

    def call(self, inputs):
        """Return ``inputs``."""
        try:
            vars(self)["nothing"]
        except KeyError as error:
            errors.append(error)
        return inputs


model = tf.keras.Sequential([Handling()])
step = tf.function(lambda value: value * 2.0)
one = tf.constant([[1.0]])
for _ in range(20):
    model(one)
    step(one)
assert len(errors) >= 20
print("ready", flush=True)
input()
