"""MonitoredTrainingSession with a hook, a checkpoint and a last step."""

import tempfile

import tensorflow.compat.v1 as tf
from _shared import counted_runs, report

tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.ERROR)
runs = counted_runs()
w = tf.get_variable("w", [64, 64])
global_step = tf.train.get_or_create_global_step()
train = tf.train.GradientDescentOptimizer(0.01).minimize(tf.reduce_mean(tf.matmul(w, w) ** 2), global_step=global_step)
hooks, steps = [tf.train.StopAtStepHook(12)], 0
with tempfile.TemporaryDirectory() as folder:
    options = {"save_checkpoint_steps": 6, "log_step_count_steps": None}
    with tf.train.MonitoredTrainingSession(checkpoint_dir=folder, hooks=hooks, **options) as session:
        while not session.should_stop():
            session.run([train, global_step])
            steps += 1
print(steps, "steps")
report(train=steps, runs=len(runs))
