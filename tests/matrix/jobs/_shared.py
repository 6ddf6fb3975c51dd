"""Functions for the jobs of the matrix: reports of counts, free ports, the choice of Keras."""

import json
import socket
import sys


def report(spans=None, **steps):
    """Print the numbers of steps and spans of each kind as JSON; None stands for at least one.

    ``runs`` are all session runs, of any kind, including TensorFlow's own.
    """
    print(json.dumps({"steps": steps, "spans": spans or {}}, sort_keys=True), flush=True)


def counted_runs():
    """Return a list that grows by one with each session run, including TensorFlow's own runs."""
    from tensorflow.python.client import session

    runs, original = [], session.BaseSession.run

    def run(*arguments, **options):
        runs.append(1)
        return original(*arguments, **options)

    session.BaseSession.run = run
    return runs


def free_ports(count):
    """Return free ports of the loopback interface."""
    sockets = [socket.socket() for _ in range(count)]
    for free_socket in sockets:
        free_socket.bind(("127.0.0.1", 0))
    ports = [free_socket.getsockname()[1] for free_socket in sockets]
    for free_socket in sockets:
        free_socket.close()
    return ports


def keras_of(tf):
    """Return the package that the first argument names, by default TensorFlow's own Keras."""
    return __import__(sys.argv[1]) if len(sys.argv) > 1 else tf.keras
