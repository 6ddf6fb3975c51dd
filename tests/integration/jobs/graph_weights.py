"""Trains a small net in TensorFlow's graph mode: python graph_weights.py FORM.

It prints the net's numbers of parameters: [all, trainable]. FORM is `session` for a hand-written
loop, `fit` or `batches` (`train_on_batch`) for Keras. Each net has Adam, a batch normalization, an
embedding, and frozen weights.
"""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["TF_USE_LEGACY_KERAS"] = "1"  # Keras 3 has no graph mode
import numpy as np
import tensorflow.compat.v1 as tf

FORM = sys.argv[1]
SIZE, STEPS = 32, 4
random = np.random.RandomState(0)
words, labels = random.randint(0, 9, (SIZE, 6)), random.randint(0, 3, SIZE)
tf.disable_eager_execution()


def element_count(variables):
    """Return the number of elements of all ``variables``."""
    return sum(int(np.prod(variable.shape.as_list())) for variable in variables)


def session():
    """Train in a session, with metrics, an average of the weights and a global step."""
    inputs, targets = tf.placeholder(tf.int32, [None, 6]), tf.placeholder(tf.int32, [None])
    table = tf.get_variable("table", [9, 4])
    frozen = tf.get_variable("frozen", [4, 5], trainable=False)
    inner = tf.reduce_mean(tf.nn.embedding_lookup(table, inputs), 1) @ frozen
    normalized = tf.layers.batch_normalization(tf.layers.dense(inner, 7), training=True)
    logits = tf.layers.dense(normalized, 3)
    model_variables = tf.global_variables()
    loss = tf.losses.sparse_softmax_cross_entropy(targets, logits)
    _, accuracy = tf.metrics.accuracy(targets, tf.argmax(logits, 1))
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = tf.train.AdamOptimizer().minimize(loss, tf.train.get_or_create_global_step())
    with tf.control_dependencies([train]):
        averaged = tf.train.ExponentialMovingAverage(0.9).apply(tf.trainable_variables())
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        for _ in range(STEPS):
            sess.run([averaged, accuracy], {inputs: words, targets: labels})
    return element_count(model_variables), element_count(tf.trainable_variables())


def keras():
    """Train a Keras model with frozen layers."""
    layers = tf.keras.layers
    bottom = tf.keras.Sequential([layers.Embedding(9, 4, input_length=6), layers.Flatten(), layers.Dense(8)])
    bottom.layers[2].trainable = False
    model = tf.keras.Sequential(
        [bottom, layers.BatchNormalization(), layers.Dense(5, trainable=False), layers.Dense(3)]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(), loss, metrics=["accuracy"])
    if FORM == "fit":
        model.fit(words, labels, batch_size=SIZE // STEPS, epochs=1, verbose=0)
    else:
        for _ in range(STEPS):
            model.train_on_batch(words, labels)
    return model.count_params(), element_count(model.trainable_weights)


print(json.dumps(session() if FORM == "session" else keras()))
