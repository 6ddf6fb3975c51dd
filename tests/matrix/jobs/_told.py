"""What the jobs of the matrix share: how they tell what they did, counted without tfprof."""

import json
import socket
import sys


def told(spans=None, **steps):
    """Print how many steps and spans of each kind this process ran, as a line; None: at least one.

    ``runs`` are all of a session's runs, of whatever kinds: those that TensorFlow makes for itself are of several.
    """
    print(json.dumps({"steps": steps, "spans": spans or {}}, sort_keys=True), flush=True)


def counted_runs():
    """Return a list that grows with each run of a session: also with those that TensorFlow makes for itself."""
    from tensorflow.python.client import session

    runs, original = [], session.BaseSession.run

    def run(*arguments, **more):
        runs.append(1)
        return original(*arguments, **more)

    session.BaseSession.run = run
    return runs


def free_ports(count):
    """Return ports of the loopback that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def keras_of(tf):
    """Return the Keras that the job is asked for: TensorFlow's own, or the package that its first argument names."""
    return __import__(sys.argv[1]) if len(sys.argv) > 1 else tf.keras
