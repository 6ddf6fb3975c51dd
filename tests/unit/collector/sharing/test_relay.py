"""A relay passes bytes in both directions, bounded, and closes both sides together."""

import os
import selectors
import socket

import pytest
from tfprof.collector.sharing.relay import Relay


class Ends:
    """A relay between `user` and `collector`, the outer ends of two pairs of sockets."""

    def __init__(self):
        self.selector = selectors.DefaultSelector()
        self.user, near = socket.socketpair()
        self.collector, far = socket.socketpair()
        for end in (self.user, near, self.collector, far):
            end.setblocking(False)
        self.closed = 0
        self.relay = Relay(self.selector, near, far, self._count)

    def _count(self):
        self.closed += 1

    def turn(self):
        """Handle what is ready, and return the number of events."""
        ready = self.selector.select(0)
        for key, events in ready:
            key.data.handle(key.fileobj, events)
        return len(ready)

    def settle(self):
        turns = 0
        while self.turn():
            turns += 1
            assert turns < 10_000, "it never comes to rest"

    def close(self):
        self.relay.close()
        self.user.close()
        self.collector.close()
        self.selector.close()


@pytest.fixture
def ends():
    ends = Ends()
    yield ends
    ends.close()


def test_bytes_pass_in_both_directions(ends):
    ends.user.send(b"hello")
    ends.collector.send(b"welcome")
    ends.settle()
    assert (ends.collector.recv(100), ends.user.recv(100)) == (b"hello", b"welcome")


def test_what_is_not_taken_waits_in_the_sender_and_arrives_whole(ends):
    data = os.urandom(8 << 20)
    sent, received = 0, b""
    stuck = False
    while sent < len(data):
        try:
            sent += ends.user.send(data[sent : sent + (64 << 10)])
        except BlockingIOError:
            ends.settle()
            if stuck:
                break
            stuck = True
        else:
            stuck = False
    assert sent < 2 << 20, "the relay has taken more than the kernel's buffers and its own hold"
    ends.collector.send(b"beside")
    ends.settle()
    assert ends.user.recv(100) == b"beside"
    while len(received) < len(data):
        try:
            received += ends.collector.recv(1 << 20)
        except BlockingIOError:
            ends.settle()
        try:
            sent += ends.user.send(data[sent : sent + (64 << 10)])
        except BlockingIOError:
            ends.settle()
    assert received == data


@pytest.mark.parametrize("leaver", ["user", "collector"])
def test_the_end_of_one_side_closes_the_other(ends, leaver):
    getattr(ends, leaver).close()
    ends.settle()
    other = ends.collector if leaver == "user" else ends.user
    assert other.recv(10) == b""
    assert ends.closed == 1
    assert not ends.selector.get_map()


def test_a_side_that_leaves_while_bytes_wait_for_it_is_noticed(ends):
    try:
        while ends.user.send(bytes(1 << 16)):
            ends.settle()
    except BlockingIOError:
        ends.settle()
    ends.collector.close()
    ends.settle()
    assert ends.closed == 1
