"""MultiWorkerMirroredStrategy: two workers on the loopback, ten steps each."""

import sys

from _processes import finish, start, tf_config
from _shared import free_ports, report


def work():
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        w = tf.Variable(tf.ones([64, 64]))

    def replica():
        loss = tf.reduce_sum(tf.matmul(tf.ones([8, 64]), w))
        total = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, loss)
        w.assign_sub(tf.fill([64, 64], total * 1e-7))
        return total

    @tf.function
    def step():
        return strategy.run(replica)

    print([float(step()) for _ in range(10)])
    report(function=10)


if sys.argv[1:] == ["work"]:
    work()
else:
    workers = [f"127.0.0.1:{port}" for port in free_ports(2)]
    finish([start("work", TF_CONFIG=tf_config({"worker": workers}, "worker", index)) for index in range(2)])
