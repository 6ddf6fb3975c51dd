"""Trains in the way that its argument names; prints its own count of steps of each kind (JSON)."""

import json
import os
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.logging.set_verbosity(v1.logging.ERROR)


def loss_of(x):
    weights = v1.get_variable("weights", [16, 16])
    loss = tf.reduce_mean(tf.square(tf.matmul(x, weights)))
    v1.summary.scalar("loss", loss)
    return loss


def graph_input():
    """Switch to graph mode; return a placeholder and its value."""
    if hasattr(v1, "disable_eager_execution"):
        v1.disable_eager_execution()
    return v1.placeholder(tf.float32, [None, 16], "x"), np.ones([8, 16], np.float32)


def monitored():
    x, data = graph_input()
    step = v1.train.get_or_create_global_step()
    train = v1.train.GradientDescentOptimizer(0.01).minimize(loss_of(x), global_step=step)
    intervals, steps = {"save_checkpoint_steps": 10, "save_summaries_steps": 5}, 0
    hooks, folder = [v1.train.StopAtStepHook(40)], tempfile.mkdtemp()
    with v1.train.MonitoredTrainingSession(checkpoint_dir=folder, hooks=hooks, **intervals) as session:
        while not session.should_stop():
            session.run(train, {x: data})
            steps += 1
    return {"train": steps}


def estimator():
    def model(features, labels, mode):
        loss = loss_of(features["x"])
        if mode == v1.estimator.ModeKeys.EVAL:
            return v1.estimator.EstimatorSpec(mode, loss=loss)
        train = v1.train.AdamOptimizer().minimize(loss, global_step=v1.train.get_global_step())
        return v1.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    def data():
        return v1.data.Dataset.from_tensors(({"x": np.ones([8, 16], np.float32)}, 0.0)).repeat()

    config = v1.estimator.RunConfig(save_checkpoints_steps=10, save_summary_steps=5, log_step_count_steps=7)
    net = v1.estimator.Estimator(model, tempfile.mkdtemp(), config=config)
    net.train(data, steps=35)
    result = net.evaluate(data, steps=9)
    return {"train": int(result["global_step"])}


def benchmark():
    x, data = graph_input()
    loss = loss_of(x)
    gradients = v1.train.MomentumOptimizer(0.01, 0.9).compute_gradients(loss)
    train = tf.group(v1.train.MomentumOptimizer(0.01, 0.9, name="momentum").apply_gradients(gradients))
    saver, summaries = v1.train.Saver(), v1.summary.merge_all()
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        for number in range(120):
            fetches = {"train": train, "loss": loss, **({"summaries": summaries} if number % 30 == 29 else {})}
            session.run(fetches, {x: data})
        for _ in range(7):
            session.run(loss, {x: data})
        session.run(summaries, {x: data})
        path = saver.save(session, os.path.join(tempfile.mkdtemp(), "model"))
        saver.restore(session, path)
    return {"init": 1, "train": 120, "run": 7, "summary": 1, "checkpoint": 2}


def by_hand():
    x, data = graph_input()
    loss = loss_of(x)
    (weights,) = v1.trainable_variables()
    (gradient,) = tf.gradients(loss, weights) if hasattr(tf, "gradients") else v1.gradients(loss, weights)
    subtract, assign = v1.assign_sub(weights, 0.01 * gradient), v1.assign(weights, weights - 0.01 * gradient)
    with v1.Session() as session:
        call = session.make_callable(subtract, [x])
        session.run(v1.global_variables_initializer())
        for _ in range(20):
            call(data)
            session.run(assign, {x: data})
    return {"init": 1, "train": 40}


def fit():
    keras = tf.keras if tf.__version__.startswith("1.") else __import__("keras")
    if sys.argv[2:] == ["session"]:
        keras = tf.keras if tf.__version__.startswith("1.") else __import__("tf_keras")
        if hasattr(v1, "disable_eager_execution"):
            v1.disable_eager_execution()
    model = keras.Sequential([keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    data, validation = np.ones([40 * 16, 32], np.float32), np.ones([160 * 16, 32], np.float32)
    model.fit(data, data[:, :1], batch_size=16, epochs=4, validation_data=(validation, validation[:, :1]), verbose=0)
    return {"batch": 4 * 40, "test_batch": 4 * 160}


print(json.dumps(globals()[sys.argv[1]]()))
print("ready", flush=True)
sys.stdin.readline()
