"""A parameter server, a worker, and a coordinator that schedules ten steps."""

import sys

from _processes import finish, start, tf_config
from _shared import free_ports, report


def serve():
    import tensorflow as tf

    cluster = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    tf.distribute.Server(
        cluster.cluster_spec(), job_name=cluster.task_type, task_index=cluster.task_id, protocol="grpc"
    ).join()


def coordinate():
    import tensorflow as tf

    distribute = tf.distribute
    cluster = distribute.cluster_resolver.TFConfigClusterResolver()
    strategy_class = (
        getattr(distribute, "ParameterServerStrategy", None) or distribute.experimental.ParameterServerStrategy
    )
    coordinator = getattr(distribute, "coordinator", None) or distribute.experimental.coordinator
    strategy = strategy_class(cluster)
    with strategy.scope():
        w = tf.Variable(tf.ones([64, 64]))

    @tf.function
    def step():
        def replica():
            w.assign_sub(tf.fill([64, 64], 1e-5 * tf.reduce_sum(tf.matmul(tf.ones([8, 64]), w))))

        strategy.run(replica)

    scheduler = coordinator.ClusterCoordinator(strategy)
    for _ in range(10):
        scheduler.schedule(step)
    scheduler.join()
    print(float(tf.reduce_sum(w)))
    report(function=10)


roles = {"serve": serve, "coordinate": coordinate}
if sys.argv[1:]:
    roles[sys.argv[1]]()
else:
    server, worker, chief = (f"127.0.0.1:{port}" for port in free_ports(3))
    cluster = {"ps": [server], "worker": [worker], "chief": [chief]}
    servers = [start("serve", TF_CONFIG=tf_config(cluster, kind, 0)) for kind in ("ps", "worker")]
    finish([start("coordinate", TF_CONFIG=tf_config(cluster, "chief", 0))], servers)
