"""Runs a function before and after the limit of file sizes falls to LIMIT bytes.

SIGXFSZ has its default action: it ends the process. usage: file_size_limit.py LIMIT
"""

import resource
import signal
import sys

import tensorflow as tf

CALLS = 12  # before the limit, and again after it


@tf.function
def step(value):
    """Run enough operations for a record of some 100 kB."""
    for _ in range(900):
        value = tf.matmul(value, value)
    return value


signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
argument = tf.constant([[0.5, 0.5], [0.5, 0.5]])
for _ in range(CALLS):
    step(argument)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
for _ in range(CALLS):
    step(argument)
print(signal.pthread_sigmask(signal.SIG_BLOCK, ()), signal.sigpending())
print("ready", flush=True)
sys.stdin.readline()
