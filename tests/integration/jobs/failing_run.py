"""Prints tracebacks of all kinds of errors of a session.

    python failing_run.py RUNS

The errors come after RUNS successful runs. The tracebacks look like those of uncaught errors.
"""

import sys

import numpy as np
import tensorflow  # noqa: ICN001 - tf is its compat.v1 here
from tensorflow.core.protobuf import config_pb2

tf = tensorflow.compat.v1
if hasattr(tf, "disable_eager_execution"):
    tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.ERROR)

x = tf.placeholder(tf.float32, [None, 8], name="x")
loss = tf.reduce_sum(x * x)
failing_op = tf.check_numerics(x / 0.0, "not a number")
data = np.ones((4, 8), np.float32)


def callable_of(session, fetch):
    options = config_pb2.CallableOptions()
    options.feed.append(x.name)
    options.fetch.append(fetch)
    return session._make_callable_from_options(options)


FAILURES = (
    lambda session: session.run(loss),
    lambda session: session.run(failing_op, {x: data}),
    lambda session: callable_of(session, failing_op.name)(data),
    lambda session: callable_of(session, "nothing:0"),
)

with tf.Session() as session:
    call = callable_of(session, loss.name)
    for _ in range(int(sys.argv[1])):
        session.run(loss, {x: data})
        call(data)
    for failure in FAILURES:
        try:
            failure(session)
        except tensorflow.errors.OpError:
            sys.excepthook(*sys.exc_info())
