"""Uses every way to run a session, and prints what the job sees: results, metadata and errors."""

import hashlib
import sys

import numpy as np
import tensorflow  # noqa: ICN001 - tf is its compat.v1 here
from tensorflow.core.protobuf import config_pb2

tf = tensorflow.compat.v1
if hasattr(tf, "disable_eager_execution"):
    tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.ERROR)

x = tf.placeholder(tf.float32, [None, 8], name="x")
w = tf.get_variable("w", [8, 8], initializer=tf.ones_initializer())
loss = tf.reduce_sum(tf.square(tf.matmul(x, w)), name="loss")
train = tf.train.GradientDescentOptimizer(1e-4).minimize(loss)
bad = tf.check_numerics(x / 0.0, "not a number", name="bad")
data = np.arange(32, dtype=np.float32).reshape(4, 8) / 32


def summary(metadata):
    """Return (has statistics, number of graphs, hash of the sorted bytes) of a RunMetadata.

    The bytes are sorted because maps have no order.
    """
    raw = bytes(sorted(metadata.SerializeToString()))
    return len(metadata.step_stats.dev_stats) > 0, len(metadata.partition_graphs), hashlib.md5(raw).hexdigest()


def training_runs(session):
    run = session.run
    for _ in range(8):
        session.run([train, loss], {x: data})
    print("trained", repr(float(run(loss, {x: data}))))


def runs_with_metadata(session):
    graphs = tf.RunOptions(output_partition_graphs=True)
    for _ in range(4):
        for options in (None, tf.RunOptions(timeout_in_ms=60000), graphs):
            metadata = tf.RunMetadata()
            session.run(loss, {x: data}, options=options, run_metadata=metadata)
            print("metadata", summary(metadata))
    metadata = tf.RunMetadata()
    session.run(loss, {x: data}, options=tf.RunOptions(trace_level=tf.RunOptions.SOFTWARE_TRACE), run_metadata=metadata)
    print("asked", summary(metadata)[0], len(metadata.step_stats.dev_stats[0].node_stats) > 3)
    session.run(loss, {x: data}, options=tf.RunOptions(trace_level=tf.RunOptions.SOFTWARE_TRACE))


def made_callables(session):
    call = session.make_callable(loss, [x])
    print("make_callable", [repr(float(call(data))) for _ in range(4)])
    call = session.make_callable(train, [x], accept_options=True)
    for _ in range(3):
        metadata = tf.RunMetadata()
        call(data, run_metadata=metadata)
        print("make_callable metadata", summary(metadata))


def callables(session):
    options = config_pb2.CallableOptions()
    options.feed.append(x.name)
    options.fetch.append(loss.name)
    call = session._make_callable_from_options(options)
    print("callable", [repr(float(call(data)[0])) for _ in range(6)])
    options.run_options.output_partition_graphs = True
    call = session._make_callable_from_options(options)
    for _ in range(3):
        metadata = tf.RunMetadata()
        call(data, run_metadata=metadata)
        print("callable metadata", summary(metadata))
    options.run_options.trace_level = config_pb2.RunOptions.SOFTWARE_TRACE
    call = session._make_callable_from_options(options)
    metadata = tf.RunMetadata()
    call(data, run_metadata=metadata)
    print("callable asked", summary(metadata)[0])


def errors(session):
    options = config_pb2.CallableOptions()
    options.feed.append(x.name)
    options.fetch.append(bad.name)
    call = session._make_callable_from_options(options)
    for attempt in (lambda: session.run(loss), lambda: session.run(bad, {x: data}), lambda: call(data)):
        try:
            attempt()
        except tensorflow.errors.InvalidArgumentError as error:
            print("error", type(error).__name__, error.message.splitlines()[0])


def partial_run(session):
    handle = session.partial_run_setup([loss], [x])
    print("partial", repr(float(session.partial_run(handle, loss, {x: data}))))


with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for check in (training_runs, runs_with_metadata, made_callables, callables, errors, partial_run):
        check(session)
    print("ready", flush=True)
    sys.stdin.readline()
