"""A session that trains with two sets of fetches: each fourth step takes longer."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
tf.set_random_seed(7)
images = tf.placeholder(tf.float32, [16, 24, 24, 3], name="images")
with tf.variable_scope("net"):
    kernel = tf.get_variable("kernel", [3, 3, 3, 8])
    features = tf.nn.relu(tf.nn.conv2d(images, kernel, [1, 1, 1, 1], "SAME", name="conv"))
loss = tf.reduce_mean(tf.square(features), name="loss")
train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, tf.train.get_or_create_global_step())
with tf.name_scope("report"):
    report = tf.reduce_sum(tf.linalg.matmul(*[tf.reshape(features, [192, 384])] * 2, transpose_b=True))
    for _ in range(40):
        report = tf.reduce_sum(tf.linalg.matmul(*[tf.fill([192, 384], report)] * 2, transpose_b=True))
batch = np.random.RandomState(0).rand(16, 24, 24, 3)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for step in range(120):
        session.run([train, report] if step % 4 == 3 else [train, loss], {images: batch})
