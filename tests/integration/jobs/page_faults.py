"""Runs 80 steps, with 3000 page faults before each step from FIRST to LAST.

python page_faults.py function|session FIRST LAST
"""

import mmap
import sys

import tensorflow as tf

mode, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def function_step():
    """Return a function that runs a step as a call of a tf.function."""
    call, matrix = tf.function(lambda x: tf.reduce_sum(tf.matmul(x, x))), tf.ones([64, 64])
    return lambda: call(matrix)


def session_step():
    """Return a function that runs a step in a session."""
    v1 = tf.compat.v1
    with tf.Graph().as_default():
        matrix = v1.placeholder(tf.float32, [64, 64])
        result, session = tf.reduce_sum(tf.matmul(matrix, matrix)), v1.Session()
    return lambda: session.run(result, {matrix: [[1.0] * 64] * 64})


step = {"function": function_step, "session": session_step}[mode]()
for number in range(1, 81):
    if first <= number <= last:
        with mmap.mmap(-1, 3000 * mmap.PAGESIZE) as memory:
            memory[:: mmap.PAGESIZE] = bytes(3000)
    step()
print("ready", flush=True)
input()
