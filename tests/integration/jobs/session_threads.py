"""Runs one session from many threads at once, including those of a queue; prints the errors."""

import sys
import threading

import numpy as np
import tensorflow  # noqa: ICN001 - tf is its compat.v1 here

tf = tensorflow.compat.v1
if hasattr(tf, "disable_eager_execution"):
    tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.ERROR)
THREADS, RUNS = 6, 60

x = tf.placeholder(tf.float32, [None, 8], name="x")
counter = tf.get_variable("counter", (), tf.int64, tf.zeros_initializer(), use_resource=True)
with tf.control_dependencies([tf.assign_add(counter, 1, use_locking=True)]):
    y = tf.reduce_sum(tf.matmul(x, x, transpose_b=True))
queue = tf.FIFOQueue(8, [tf.float32])
runner = tf.train.QueueRunner(queue, [queue.enqueue(tf.random_uniform(()))] * 2)
dequeued = queue.dequeue()
data = np.ones((4, 8), np.float32)
errors = []


def work(session, call):
    try:
        for number in range(RUNS):
            result = call(data) if number % 2 else session.run(y, {x: data})
            assert result == 128.0, result
            session.run(dequeued)
    except Exception as error:  # the test must see every error
        errors.append(repr(error))


with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    coordinator = tf.train.Coordinator()
    feeders = runner.create_threads(session, coordinator, start=True)
    callable_ = session.make_callable(y, [x])
    workers = [threading.Thread(target=work, args=(session, callable_)) for _ in range(THREADS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(errors, session.run(counter) == THREADS * RUNS)
    coordinator.request_stop()
    session.run(queue.close(cancel_pending_enqueues=True))
    coordinator.join(feeders)
    print("ready", flush=True)
    sys.stdin.readline()
