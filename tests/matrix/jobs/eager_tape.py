"""A training loop of eager ops around a Keras model: ten steps, then six calls of the model."""

import tensorflow as tf
from _shared import report

if tf.__version__.startswith("1."):
    tf.compat.v1.enable_v2_behavior()
keras = tf.keras
model = keras.Sequential([keras.layers.Dense(units, kernel_initializer="ones") for units in (32, 1)])
optimizer = keras.optimizers.SGD(1e-9)
x = tf.ones([8, 64])
for _ in range(10):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x) ** 2)
    weights = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
print([float(tf.reduce_sum(model(x))) for _ in range(6)])
report(eager=10, call=6)
