"""A Keras job with every kind of Keras step: python keras_steps.py PACKAGE eager|session.

It has a fixed seed, prints losses, and ends with an error.
"""

import importlib
import sys

import numpy as np
import tensorflow as tf

package, mode = sys.argv[1:3]
keras = tf.keras if package == "tf" else importlib.import_module(package)
if mode == "session":
    tf.compat.v1.disable_eager_execution()
tf.compat.v1.set_random_seed(7)
rng = np.random.RandomState(0)
x = rng.rand(320, 8).astype("float32")
y = x.sum(1, keepdims=True)


def dense_model(**options):
    initializer = keras.initializers.Constant(0.1)
    layers = [
        keras.layers.Dense(16, activation="relu", kernel_initializer=initializer),
        keras.layers.Dense(1, kernel_initializer=initializer),
    ]
    model = keras.Sequential(layers)
    model.compile("sgd", "mse", **options)
    return model


class Interrupts(keras.callbacks.Callback):
    """Ends a fit like Ctrl-C."""

    def on_train_batch_end(self, batch, logs=None):
        if batch == 3:
            raise KeyboardInterrupt


class Fails(keras.callbacks.Callback):
    """Ends a fit with the user's own error."""

    def on_epoch_end(self, epoch, logs=None):
        raise RuntimeError("the user's own error")


model = dense_model()
history = model.fit(x, y, epochs=3, shuffle=False, verbose=0, validation_data=(x[:64], y[:64]))
print([float(value).hex() for value in history.history["loss"]])
print(float(model.evaluate(x, y, verbose=0)).hex(), float(model.predict(x, verbose=0).sum()).hex())
for _ in range(7):
    loss = model.train_on_batch(x[:32], y[:32])
print(float(loss).hex(), [type(model.history).__name__])
try:
    model.fit(x, y, shuffle=False, verbose=0, callbacks=[Interrupts()])
except KeyboardInterrupt:
    print("interrupted")
if mode == "eager":
    multi_step_model = dense_model(steps_per_execution=4)
    multi_step_model.fit(x, y, epochs=2, shuffle=False, verbose=0)

    @tf.function
    def product(matrix):
        return tf.reduce_sum(tf.matmul(matrix, matrix))

    for number in range(12):
        print(float(product(tf.fill((8, 8), float(number)))))
print("ready", flush=True)
sys.stdin.readline()
model.fit(x, y, shuffle=False, verbose=0, callbacks=[Fails()])
