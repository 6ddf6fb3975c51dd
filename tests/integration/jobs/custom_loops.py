"""A hand-written training loop: python custom_loops.py PACKAGE FORM.

It prints the model's numbers of parameters as Keras counts them: [all, trainable]. FORM is the way
in which the training function gets the model: `global`, `method` (of an object with the model),
`closure` or `argument`.
"""

import importlib
import json
import math
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf

keras = importlib.import_module(sys.argv[1])
form = sys.argv[2]


def build_model():
    """Return a model with moving statistics and a frozen layer."""
    layers = keras.layers
    frozen = layers.Dense(7, activation="relu")
    frozen.trainable = False
    stack = [layers.Dense(5), layers.BatchNormalization(), frozen, layers.Dropout(0.1), layers.Dense(3)]
    return keras.Sequential([layers.InputLayer((4,)), *stack])


model = build_model()
optimizer = keras.optimizers.Adam()


def apply(model, x):
    """Take one training step."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True)))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))
    return loss


class Trainer:
    """An object with a model."""

    def __init__(self, model):
        self.model = model

    @tf.function
    def step(self, x):
        return apply(self.model, x)


def step_of(model):
    """Return a function that closes over its model."""

    def step(x):
        return apply(model, x)

    return tf.function(step)


@tf.function
def on_global(x):
    return apply(model, x)


@tf.function
def on_argument(model, x):
    return apply(model, x)


trainer, closure = Trainer(model), step_of(model)
forms = {
    "global": on_global,
    "method": trainer.step,
    "closure": closure,
    "argument": lambda x: on_argument(model, x),
}
for _ in range(6):
    forms[form](tf.ones([8, 4]))
trainable = sum(math.prod(map(int, weight.shape)) for weight in model.trainable_weights)
print(json.dumps([model.count_params(), trainable]))
