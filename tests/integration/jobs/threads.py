"""Runs one session from four threads at once: python threads.py RUNS|FILE.

Each thread makes RUNS runs, or runs until FILE exists, for two minutes at most. Prints the number
of errors, whether a counter in the graph counted every run, and the number of runs.
"""

import os
import sys
import threading
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
counter = tf.get_variable("counter", [], tf.int64, tf.zeros_initializer(), use_resource=True)
step = tf.assign_add(counter, 1, use_locking=True)
errors, runs = [], []


def iterations():
    if sys.argv[1].isdigit():
        return range(int(sys.argv[1]))
    end = time.monotonic() + 120
    return iter(lambda: os.path.exists(sys.argv[1]) or time.monotonic() > end, True)


def work(session):
    for _ in iterations():
        runs.append(1)
        try:
            session.run(step)
        except Exception as error:
            errors.append(repr(error))


with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    threads = [threading.Thread(target=work, args=(session,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(len(errors), session.run(counter) == len(runs), len(runs))
