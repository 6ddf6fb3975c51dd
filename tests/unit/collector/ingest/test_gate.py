"""Nodes that send to a collector over the network, with real sockets and keys."""

import json
import socket

import pytest
from fakes import node_keys
from fakes.listening_collector import UID
from fakes.run_metadata import run_metadata
from tfprof.collector.ingest.receiver import Receiver
from tfprof.collector.ingest.sockets import Listen, ListenError
from tfprof.collector.store.reader import LocalStore
from tfprof.commands import key_files
from tfprof.commands.key_files import NodeKey
from tfprof.formats import layout, wire
from tfprof.formats.addresses import local_endpoint, remote_endpoint
from tfprof.formats.wire import Head

STEP = (layout.RUN_METADATA, run_metadata([b"a:Add"]))


def slug_of(answer):
    return answer and (answer[0].type, answer[1]["slug"])


def test_a_node_with_its_key_is_stored_under_its_verified_name(head):
    node = head.node(head.add("node1"))
    assert head.open(node, host="node2", node="node2", name="train.py")[0].type == wire.ACK
    assert {name: head.identity()[name] for name in ("host", "node", "name")} == {
        "host": "node1",
        "node": "node1",
        "name": "train.py",
    }
    node.records(UID, [STEP])
    assert head.ask(node, Head(wire.COUNTERS, UID, 0, 1, 1))[0].type == wire.ACK


@pytest.mark.parametrize("case", ["unknown key", "no key", "wrong key of the collector", "revoked key"])
def test_a_peer_without_a_valid_key_gets_no_answer(head, case):
    known = head.add("node1")
    keys = {
        "unknown key": NodeKey("node1", node_keys.new_pair(), head.pair.public),
        "no key": None,
        "wrong key of the collector": known._replace(collector=node_keys.new_pair().public),
        "revoked key": known,
    }
    if case == "revoked key":
        key_files.change_nodes("node1", None)
    assert head.open(head.node(keys[case])) is None
    assert (head.stats.messages, head.jobs.open) == (0, {})
    if "key of" not in case and case != "no key":  # ZeroMQ itself refuses those
        assert "[key-refused]" in head.stats.snapshot(0, 0.0)["last_refusal"]


def test_a_key_revoked_in_the_middle_ends_what_its_node_sends(head):
    node, other = head.node(head.add("node1")), head.node(head.add("node2"))
    assert head.open(node)[0].type == wire.ACK
    assert head.open(other, uid=2)[0].type == wire.ACK
    key_files.change_nodes("node1", None)
    assert slug_of(head.ask(node, Head(wire.COUNTERS, UID, 0, 1, 1))) == (wire.REFUSE, "key-revoked")
    assert head.ask(other, Head(wire.COUNTERS, 2, 0, 1, 1))[0].type == wire.ACK
    head.add("node1")  # another key
    assert slug_of(head.ask(node, Head(wire.COUNTERS, UID, 0, 1, 1))) == (wire.REFUSE, "key-revoked")


def test_jobs_of_a_revoked_key_are_lost_until_their_node_sends_again(head):
    node, other, local = head.node(head.add("node1")), head.node(head.add("node2")), head.connect()
    for number, agent in enumerate((node, other, local), 1):
        assert head.open(agent, uid=number)[0].type == wire.ACK
    node.records(1, [STEP])
    head.next_message(node, wire.ACK)
    key_files.change_nodes("node1", None)

    def states():
        head.receiver.turn(0)
        head.receiver.retry()
        infos = [job.info for job in LocalStore(head.folder / "store").jobs()]
        return [info.state for info in sorted(infos, key=lambda info: info.uid)]

    assert states() == ["lost", "running", "running"]
    events = LocalStore(head.folder / "store").job(f"{1:016x}").table("events")
    assert events["text"].to_pylist() == ["the key of node1 was revoked"]
    renamed = head.node(head.add("node3"))
    assert slug_of(head.open(renamed, uid=1)) == (wire.REFUSE, "foreign-job")
    assert states() == ["lost", "running", "running"]
    again = head.node(head.add("node1"))
    assert head.open(again, uid=1)[0].type == wire.ACK
    assert states() == ["running"] * 3


def test_an_invalid_file_of_nodes_keeps_the_keys_as_they_were(head):
    node = head.node(head.add("node1"))
    head.receiver.turn(0)
    (head.folder / "config/tfprof/keys/nodes.json").write_text("{")
    assert head.open(node)[0].type == wire.ACK


@pytest.mark.parametrize("kind", [wire.OPEN, wire.RECORDS, wire.SPANS, wire.COUNTERS, wire.EVENT, wire.CLOSE])
def test_a_node_cannot_write_a_job_of_another(head, kind):
    owner, other = head.node(head.add("node1")), head.node(head.add("node2"))
    head.open(owner, name="mine")
    answer = head.ask(other, Head(kind, UID, 0, 1, 1), b'{"name": "yours", "state": "exited"}')
    assert slug_of(answer) == (wire.REFUSE, "foreign-job")
    assert head.identity()["name"] == "mine"
    assert head.ask(owner, Head(wire.COUNTERS, UID, 0, 1, 1))[0].type == wire.ACK


def test_a_node_cannot_write_a_job_of_the_collectors_own_host_nor_the_other_way(head):
    node, local = head.node(head.add("head")), head.connect()
    head.open(local, uid=1, host="head", node="head")
    head.open(node, uid=2)
    assert slug_of(head.open(node, uid=1)) == (wire.REFUSE, "foreign-job")
    assert slug_of(head.open(local, uid=2, host="head", node="head")) == (wire.REFUSE, "foreign-job")


def test_a_node_cannot_open_a_job_again_that_another_collector_stored_for_another_node(head):
    head.open(head.node(head.add("node1")), name="mine")
    head.store.release(UID)
    head.jobs.open.clear()
    assert slug_of(head.open(head.node(head.add("node2")))) == (wire.REFUSE, "foreign-job")
    assert UID not in head.jobs.open


def test_samples_are_of_the_verified_node_and_its_own_jobs(head):
    owner, other = head.node(head.add("node1")), head.node(head.add("node2"))
    greeting = json.dumps({"host": "node1", "wire": list(wire.SUPPORTED_VERSIONS)}).encode()
    for agent in (owner, other):
        head.ask(agent, Head(wire.GREETING), greeting, turns=5)
    head.open(owner)
    body = json.dumps({"t_ns": 1, "host": {"cpu": 1.0}, "jobs": {f"{UID:016x}": {"rss_bytes": 1}}}).encode()
    assert slug_of(head.ask(other, Head(wire.SAMPLES, 0, 0, 1, 1), body)) == (wire.REFUSE, "foreign-job")
    assert head.ask(other, Head(wire.SAMPLES, 0, 0, 2, 2), b'{"t_ns": 1, "host": {"cpu": 1.0}}')[0].type == wire.ACK
    assert [path.name for path in (head.folder / "store/hosts").iterdir() if path.name.startswith("node")] == ["node2"]


def test_a_job_that_its_node_has_given_up_is_ended_and_its_losses_counted(head):
    node, other = head.node(head.add("node1")), head.node(head.add("node2"))
    head.open(node, name="mine")
    body = json.dumps({"identity": {"name": "x"}, "end": {"state": "exited", "records": 7, "span_head": 3}}).encode()
    assert slug_of(head.ask(other, Head(wire.GIVEN_UP, UID, 0, 1, 1), body)) == (wire.REFUSE, "foreign-job")
    for _ in range(2):  # the answer may have been lost
        assert head.ask(node, Head(wire.GIVEN_UP, UID, 0, 1, 1), body)[0][:3] == (wire.ACK, UID, wire.GIVEN_UP)
    info = LocalStore(head.folder / "store").jobs()[0].info
    assert (info.identity["name"], info.identity["host"], info.state) == ("mine", "node1", "exited")
    assert info.counters["never_stored"] == 10


@pytest.mark.parametrize("body", [b"{}", b'{"identity": [], "end": {}}', b'{"identity": {}, "end": 1}'])
def test_a_job_given_up_needs_identity_and_end(head, body):
    assert slug_of(head.ask(head.node(head.add("node1")), Head(wire.GIVEN_UP, 5, 0, 1, 1), body))[0] == wire.REFUSE


def test_a_node_gives_no_orders(head):
    node = head.node(head.add("node1"))
    head.open(node)
    assert slug_of(head.ask(node, Head(wire.ORDER, UID, 0, 0, 7))) == (wire.REFUSE, "order-remote")


def test_garbage_at_the_port_disturbs_nobody(head):
    node = head.node(head.add("node1"))
    address = ("127.0.0.1", int(head.url.rpartition(":")[2]))
    strangers = [socket.create_connection(address) for _ in range(50)]
    for number, stranger in enumerate(strangers):
        stranger.sendall((b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 70_000, b"\xff\0\0\0\0\0\0\0\1\x7f\3")[number % 3])
    assert head.open(node)[0].type == wire.ACK
    assert head.stats.messages == 1
    for stranger in strangers:
        stranger.close()


def test_without_encryption_nodes_are_kept_apart_from_the_jobs_of_this_host(make_head):
    head = make_head(is_encrypted=False)
    local, peer = head.connect(), head.node(None)
    head.open(local, uid=1)
    assert head.open(peer, uid=2, host="node7")[0].type == wire.ACK
    assert (head.identity(2)["host"], head.identity(2)["node"]) == ("node7", "")
    assert slug_of(head.open(peer, uid=1)) == (wire.REFUSE, "foreign-job")


def test_an_address_in_use_is_an_error(head, tmp_path):
    listen = Listen(remote_endpoint(head.url), head.pair)
    (tmp_path / "2").mkdir()
    with pytest.raises(ListenError, match="in use"):
        Receiver(local_endpoint(str(tmp_path / "2")), head.jobs, head.stats, {}, listen)
