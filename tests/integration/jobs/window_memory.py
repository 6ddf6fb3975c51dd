"""Calls a function, forks within a traced call, and traces the same ops in a session run.

Prints a line of JSON: {"switch": [before, within a window, in a child forked there, after], "ops":
{op type: bytes}, "large": {op type: bytes in allocations of at least 256 KiB}}. The switch turns
the allocator's statistics on.
"""

import ctypes
import json
import os

import numpy as np
import tensorflow as tf

IMAGES = np.random.RandomState(0).rand(32, 28, 28, 1).astype("f")
KERNEL, WEIGHTS = np.full([3, 3, 1, 4], 0.1, "f"), np.full([26 * 26 * 4, 10], 0.01, "f")
library = ctypes.CDLL(os.path.join(os.path.dirname(tf.__file__), "libtensorflow_framework.so.2"))
switch = library._ZN3tsl24CPUAllocatorStatsEnabledEv
switch.restype = ctypes.c_bool


def net(images):
    """Ops that allocate outputs or temporary memory, and an op that works in place."""
    hidden = tf.nn.relu(tf.nn.conv2d(images, KERNEL, 1, "VALID"))
    return tf.nn.softmax(tf.matmul(tf.reshape(hidden, [-1, 26 * 26 * 4]), WEIGHTS)), tf.nn.top_k(hidden, 2)


def state_in_child():
    """Return the state of the switch in a forked child, which also allocates."""
    pid = os.fork()
    if pid == 0:
        state = switch()
        tf.constant(IMAGES) + 1.0
        os._exit(state)
    return bool(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def record_switch():
    """Record the state of the switch within the third call, and in a child forked there."""
    calls.append(0)
    if len(calls) == 3:
        states.extend([switch(), state_in_child()])
    return True


call, images, calls = tf.function(net), tf.constant(IMAGES), []
forking_call = tf.function(lambda: tf.py_function(record_switch, [], tf.bool))
states = [switch()]
for _ in range(7):
    call(images)
for _ in range(4):
    forking_call()
states.append(switch())

v1 = tf.compat.v1
with tf.Graph().as_default(), v1.Session() as session:
    placeholder = v1.placeholder(tf.float32, [32, 28, 28, 1])
    results = net(placeholder)
    for _ in range(3):
        metadata = v1.RunMetadata()
        session.run(results, {placeholder: IMAGES}, v1.RunOptions(trace_level=v1.RunOptions.SOFTWARE_TRACE), metadata)
ops, large = {}, {}
for device in metadata.step_stats.dev_stats:
    for node in device.node_stats:
        kind = node.timeline_label.partition(" = ")[2].partition("(")[0]
        ops[kind] = ops.get(kind, 0) + sum(memory.total_bytes for memory in node.memory)
        sizes = [record.alloc_bytes for memory in node.memory for record in memory.allocation_records]
        large[kind] = large.get(kind, 0) + sum(size for size in sizes if size >= 256 << 10)
print(json.dumps({"switch": states, "ops": ops, "large": large}))
print("ready", flush=True)
input()
