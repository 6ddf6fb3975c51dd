"""Keys of a collector and its nodes, in the folder of settings of a test."""

import socket

import zmq
from tfprof.commands import key_files
from tfprof.commands.key_files import KeyPair, NodeKey


def new_pair():
    public, secret = zmq.curve_keypair()
    return KeyPair(public.decode(), secret.decode())


def make_collector():
    """Write the keys of a collector, and return them."""
    pair = new_pair()
    key_files.write_collector(pair)
    return pair


def add(node, collector):
    """Let ``node`` send to ``collector``, a pair; return the key of the node."""
    key = NodeKey(node, new_pair(), collector.public)
    key_files.change_nodes(node, key.pair.public)
    return key


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
