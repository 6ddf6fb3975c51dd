"""Collectors with real sockets in the process of the test, which runs them turn by turn."""

import json
import time

from fakes import node_keys
from fakes.wire_agent import WireAgent
from tfprof.collector.decoders.decode import decoder
from tfprof.collector.ingest.ingest import make_ingest
from tfprof.collector.ingest.receiver import Receiver
from tfprof.collector.ingest.sockets import Listen
from tfprof.collector.selfstats import CollectorStats
from tfprof.collector.store.writer import LocalStoreWriter
from tfprof.formats import wire
from tfprof.formats.addresses import local_endpoint, remote_endpoint
from tfprof.formats.wire import Head

UID = 0xABC


class TurnedCollector:
    """A collector that the test runs turn by turn, and the agents that send to it."""

    def __init__(self, folder, host="testhost", listen=None):
        self.folder = folder
        self.stats = CollectorStats()
        self.store = LocalStoreWriter(folder / "store", host)
        self.ingest = make_ingest(self.store, decoder(), self.stats.count_failure)
        self.jobs = self.ingest.jobs
        self.receiver = Receiver(local_endpoint(str(folder)), self.ingest, self.stats, {"collector": "c1"}, listen)
        self.agents = []

    def connect(self, **options):
        """Return a new agent."""
        self.agents.append(WireAgent(self.folder, **options))
        return self.agents[-1]

    def close(self):
        for agent in self.agents:
            agent.close()
        self.receiver.close()
        self.store.close()


class ListeningCollector(TurnedCollector):
    """A collector that listens, and nodes that send to it, with real keys."""

    def __init__(self, folder, *, is_encrypted=True):
        self.pair = node_keys.make_collector()
        self.url = f"tcp://127.0.0.1:{node_keys.free_port()}"
        listen = Listen(remote_endpoint(self.url), self.pair if is_encrypted else None)
        super().__init__(folder, "head", listen)

    def add(self, node):
        return node_keys.add(node, self.pair)

    def node(self, key, **kwargs):
        return self.connect(url=self.url, key=key, **kwargs)

    def ask(self, agent, head, body=b"{}", turns=40):
        """Send a message, and return the first answer that is no WELCOME, None without one."""
        agent.send(head, body)
        for _ in range(turns):
            self.receiver.turn(10)
            while answer := agent.receive(0.002):
                if answer[0].type != wire.WELCOME:
                    return answer
        return None

    def next_message(self, peer, kind, timeout_s=20):
        """Run turns until ``peer`` gets a message of type ``kind``; return it."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            self.receiver.turn(5)
            while message := peer.receive(0.002):
                if message[0].type == kind:
                    return message
        raise AssertionError(f"no message of type {kind}")

    def greet(self, agent, versions=wire.SUPPORTED_VERSIONS):
        """Greet as an agent that speaks the wire ``versions``."""
        agent.send(Head(wire.GREETING), json.dumps({"host": "elsewhere", "wire": list(versions)}).encode())
        return self.next_message(agent, wire.WELCOME)

    def open(self, agent, uid=UID, **identity):
        return self.ask(agent, Head(wire.OPEN, uid, 0, 0, 1), json.dumps(identity).encode())

    def identity(self, uid=UID):
        return self.jobs.open[uid].writer.info.identity
