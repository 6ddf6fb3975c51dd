"""A parameter server and a worker with a MonitoredTrainingSession: ten steps."""

import sys

from _processes import finish, start
from _shared import counted_runs, free_ports, report


def serve(server, worker):
    import tensorflow.compat.v1 as tf

    tf.train.Server(tf.train.ClusterSpec({"ps": [server], "worker": [worker]}), "ps", 0).join()


def work(server, worker):
    import tensorflow.compat.v1 as tf

    tf.disable_eager_execution()
    tf.logging.set_verbosity(tf.logging.ERROR)
    runs = counted_runs()
    spec = tf.train.ClusterSpec({"ps": [server], "worker": [worker]})
    target = tf.train.Server(spec, "worker", 0).target
    with tf.device(tf.train.replica_device_setter(cluster=spec)):
        w = tf.get_variable("w", [64, 64])
        global_step = tf.train.get_or_create_global_step()
        loss = tf.reduce_mean(tf.matmul(w, w) ** 2)
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, global_step=global_step)
    with tf.train.MonitoredTrainingSession(master=target, hooks=[tf.train.StopAtStepHook(10)]) as session:
        steps = 0
        while not session.should_stop():
            session.run([train, global_step])
            steps += 1
    print(steps, "steps")
    report(train=steps, runs=len(runs))


if sys.argv[1:]:
    role, server, worker = sys.argv[1].split("/")
    {"serve": serve, "work": work}[role](server, worker)
else:
    tasks = "/".join(f"127.0.0.1:{port}" for port in free_ports(2))
    finish([start("work/" + tasks)], [start("serve/" + tasks)])
