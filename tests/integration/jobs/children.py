"""Starts children, ten at a time: python children.py METHOD exit|kill COUNT STEPS.

METHOD is a start method of multiprocessing, or `preloaded-forkserver`: the fork server then imports
TensorFlow before it forks. Each of COUNT children runs STEPS steps, and then ends or kills itself.
"""

import multiprocessing
import os
import signal
import sys

import tensorflow as tf

v1 = tf.compat.v1
METHOD, END, COUNT, STEPS = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])


def work():
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, ())
        result = x + 1.0
        for _ in range(STEPS):
            session.run(result, {x: 1.0})
        if END == "kill":
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    preloaded, _, method = METHOD.rpartition("-")
    context = multiprocessing.get_context(method)
    if preloaded:
        context.set_forkserver_preload(["tensorflow"])
    codes = []
    while len(codes) < COUNT:
        children = [context.Process(target=work) for _ in range(min(10, COUNT - len(codes)))]
        for child in children:
            child.start()
        for child in children:
            child.join()
        codes += [child.exitcode for child in children]
    assert set(codes) == {-signal.SIGKILL if END == "kill" else 0}, codes
    print(len(codes), "children")
