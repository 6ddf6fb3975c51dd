"""An error in the work for one job is counted and reported, and does not affect other jobs.

Tests collector/ingest/waiting_records.py, collector/ingest/worker_process.py,
collector/selfstats.py.
"""

import json
import os
import time

import pytest
from fakes.run_metadata import run_metadata
from fakes.wire_agent import record
from tfprof.collector.decoders.decode import decoder
from tfprof.collector.errors import DecodeError, FormatError
from tfprof.collector.ingest import jobs, rows, worker_process
from tfprof.collector.ingest.failures import QuarantinedError
from tfprof.collector.ingest.ingest import make_ingest
from tfprof.collector.ingest.jobs import MessageError
from tfprof.collector.ingest.waiting_records import LARGE_BYTES, BusyError
from tfprof.collector.selfstats import CollectorStats
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.store.writer import LocalJobWriter, LocalStoreWriter
from tfprof.formats import layout, wire
from tfprof.formats.wire import Head

UID, OTHER = 0xBAD, 0x600D
STEP = (layout.RUN_METADATA, run_metadata([b"a:Add"]))
GRAPH = b"\x0a\x04\x0a\x02n1" * (LARGE_BYTES // 48)


class CollectorHarness:
    def __init__(self, path):
        self.path = path
        self.stats = CollectorStats()
        self.store = LocalStoreWriter(path, "testhost")
        self.ingest = make_ingest(self.store, decoder(), self.stats.count_failure)
        self.jobs = self.ingest.jobs
        for uid in (UID, OTHER):
            self.send(uid, wire.OPEN)

    def send(self, uid, kind, number=1, **values):
        return self.jobs.take(Head(kind, uid, 0, number, number), memoryview(json.dumps(values).encode()))

    def records(self, uid, first, *records):
        body = b"".join(record(seq, *fields) for seq, fields in enumerate(records, first))
        return self.jobs.take(Head(wire.RECORDS, uid, 0, first, first + len(records) - 1), memoryview(body))

    def finish_work(self, timeout_s=60):
        """Work until no work is left; return all answers."""
        deadline = time.monotonic() + timeout_s
        answers = []
        while self.ingest.slices.is_waiting:
            assert time.monotonic() < deadline
            answers += [answer for _, job_answers in self.ingest.slices.work(1.0) for answer in job_answers]
        return answers

    def table(self, uid, name):
        return LocalStore(self.path).job(f"{uid:016x}").table(name).to_pylist()


@pytest.fixture
def collector(tmp_path, capsys):
    collector = CollectorHarness(tmp_path / "store")
    yield collector
    collector.ingest.slices.close()
    collector.store.close()
    capsys.readouterr()


def raise_error(*_args, **_kwargs):
    raise ZeroDivisionError("by accident")


def test_a_record_with_an_internal_error_is_reported_and_its_neighbors_are_stored(collector, monkeypatch):
    monkeypatch.setattr(rows, "graph_nodes", raise_error)
    graph = (layout.GRAPH, b"")
    assert collector.records(UID, 1, STEP, graph, STEP)[-1] == Head(wire.ACK, UID, wire.RECORDS, 0, 3)
    assert [row["trace"] for row in collector.table(UID, "traces")] == [0, 1]
    (event,) = collector.table(UID, "events")
    assert (event["slug"], "ZeroDivisionError: by accident" in event["text"]) == ("internal", True)
    names = collector.table(UID, "names")
    assert len({(row["kind"], row["id"]) for row in names}) == len(names)
    assert collector.stats.failures == 1
    assert "by accident" in collector.stats.snapshot(0, 1.0)["first_failure"]


def test_a_loss_is_counted_once_if_the_rows_of_its_message_are_stored_again(collector, monkeypatch):
    original, errors = LocalJobWriter.append, [ZeroDivisionError("by accident")]

    def append(writer, tables, about=0, last=0):
        if about == wire.RECORDS and errors:
            raise errors.pop()
        original(writer, tables, about, last)

    monkeypatch.setattr(LocalJobWriter, "append", append)
    assert collector.records(UID, 1, STEP, (layout.RUN_METADATA, b"\xff"), STEP)[-1].last == 3
    (event,) = collector.table(UID, "events")
    assert event["slug"] == "undecodable"
    assert len(collector.table(UID, "traces")) == 2
    assert collector.stats.failures == 1
    collector.send(UID, wire.CLOSE, state="exited")
    collector.finish_work()
    assert LocalStore(collector.path).job(f"{UID:016x}").info.counters["never_stored"] == 1


def test_a_message_with_an_internal_error_is_refused_and_the_job_continues(collector, monkeypatch):
    monkeypatch.setattr(LocalJobWriter, "set_counters", raise_error)
    monkeypatch.setattr(jobs.OpenJob, "_counters", raise_error)
    monkeypatch.setitem(jobs.OpenJob._HANDLERS, wire.COUNTERS, raise_error)
    with pytest.raises(MessageError) as caught:
        collector.send(UID, wire.COUNTERS)
    assert caught.value.slug == "internal"
    assert collector.records(UID, 1, STEP) == [Head(wire.ACK, UID, wire.RECORDS, 0, 1)]


def test_a_job_that_keeps_failing_ends_as_lost_and_is_refused(collector, monkeypatch):
    monkeypatch.setattr(rows, "graph_nodes", raise_error)
    collector.records(UID, 1, STEP, *[(layout.GRAPH, b"")] * jobs.FAILURES_MAX)
    assert collector.ingest.failures.quarantined == {UID: "ZeroDivisionError: by accident"}
    for kind in (wire.OPEN, wire.COUNTERS, wire.CLOSE):
        with pytest.raises(QuarantinedError):
            collector.send(UID, kind, state="exited")
    assert [event["slug"] for event in collector.table(UID, "events")][-1] == "quarantined"
    assert LocalStore(collector.path).job(f"{UID:016x}").info.state == "lost"
    assert len(collector.table(UID, "traces")) == 1
    assert collector.records(OTHER, 1, STEP) == [Head(wire.ACK, OTHER, wire.RECORDS, 0, 1)]
    samples = json.dumps({"t_ns": 5, "jobs": {f"{UID:016x}": {}, f"{OTHER:016x}": {}}}).encode()
    head = Head(wire.SAMPLES, 0, 0, 1, 1)
    assert collector.ingest.samples.take("h", head, memoryview(samples)) == [Head(wire.ACK, 0, wire.SAMPLES, 1, 1)]


def test_an_internal_error_of_the_store_in_one_job_does_not_block_the_others(collector, monkeypatch):
    monkeypatch.setattr(collector.store.job(UID), "sync_if_due", raise_error)
    sync_times = []
    monkeypatch.setattr(collector.store.job(OTHER), "sync_if_due", lambda now: sync_times.append(now) or True)
    for now in range(jobs.FAILURES_MAX):
        collector.ingest.upkeep.tick(float(now))
    assert len(sync_times) == jobs.FAILURES_MAX
    assert list(collector.ingest.failures.quarantined) == [UID]


@pytest.mark.parametrize("first", [2**63 + 101, 2**64 - 1])
def test_the_largest_numbers_are_accepted(collector, first):
    collector.records(UID, first, STEP)
    assert collector.records(UID, first, STEP) == [Head(wire.ACK, UID, wire.RECORDS, 0, first)]
    assert [event["slug"] for event in collector.table(UID, "events")] == ["gap"]
    assert collector.stats.failures == 0


@pytest.mark.parametrize("count", [b"true", b"1.5", b"NaN", b"1e999", b'"1"', b"[]"])
def test_a_count_that_is_not_a_number_is_undecodable(collector, count):
    collector.records(UID, 1, (layout.REFUSED, b'{"slug": "x", "text": "y", "count": ' + count + b"}"))
    assert [event["slug"] for event in collector.table(UID, "events")] == ["undecodable"]


@pytest.mark.parametrize("uid", ["1" * 17, "-1", "1_0", " 5", "0x5", ""])
def test_a_sample_with_a_malformed_uid_is_a_format_error(collector, uid):
    with pytest.raises(FormatError):
        collector.ingest.samples.take(
            "h", Head(wire.SAMPLES, 0, 0, 1, 1), memoryview(json.dumps({"t_ns": 1, "jobs": {uid: {}}}).encode())
        )


def test_a_worker_decodes_a_large_record_while_other_jobs_are_served(collector):
    assert collector.records(UID, 1, STEP) == [Head(wire.ACK, UID, wire.RECORDS, 0, 1)]
    assert collector.records(UID, 2, (layout.GRAPH, GRAPH), STEP) == []
    assert list(collector.ingest.slices.work(0.1)) == []
    assert collector.ingest.slices.is_waiting
    assert collector.records(OTHER, 1, STEP) == [Head(wire.ACK, OTHER, wire.RECORDS, 0, 1)]
    assert collector.finish_work()[-1] == Head(wire.ACK, UID, wire.RECORDS, 0, 3)
    assert len(collector.table(UID, "graph_nodes")) == LARGE_BYTES // 48
    assert [row["trace"] for row in collector.table(UID, "traces")] == [0, 1]


def test_ids_of_names_continue_after_the_rows_of_a_worker(collector):
    nodes = run_metadata([b"n%d:Add" % number for number in range(90_000)])
    assert len(nodes) > LARGE_BYTES / 2
    large = (layout.RUN_METADATA, nodes + b"\x1a\x00" * (LARGE_BYTES // 2))
    collector.records(UID, 1, STEP)
    collector.records(UID, 2, large)
    collector.finish_work()
    collector.records(UID, 3, (layout.RUN_METADATA, run_metadata([b"last:Add"])))
    rows = collector.table(UID, "names")
    names = {(row["kind"], row["id"]): row["text"] for row in rows}
    assert len(rows) == len(names)
    ops = collector.table(UID, "ops")
    assert [names[0, ops[at]["node"]] for at in (0, 1, 90_000, 90_001)] == [b"a", b"n0", b"n89999", b"last"]


def test_records_after_a_large_one_are_stored_once(collector):
    # The C decoder is fast: the estimated times of all three records fit into one slice.
    large = (layout.RUN_METADATA, run_metadata([b"a:Add"]) + b"\x1a\x00" * (LARGE_BYTES // 2))
    assert collector.records(UID, 1, large, STEP, STEP) == []
    assert collector.finish_work()[-1] == Head(wire.ACK, UID, wire.RECORDS, 0, 3)
    assert [row["trace"] for row in collector.table(UID, "traces")] == [0, 1, 2]


def test_rows_of_a_worker_that_cannot_be_read_are_an_event(collector, monkeypatch):
    monkeypatch.setattr(worker_process, "write_rows", lambda result, *_args: os.write(result, b"{}"))
    collector.records(UID, 1, (layout.GRAPH, GRAPH), STEP)
    assert collector.finish_work()[-1] == Head(wire.ACK, UID, wire.RECORDS, 0, 2)
    (event,) = collector.table(UID, "events")
    assert "its rows cannot be read" in event["text"]
    assert len(collector.table(UID, "traces")) == 1


def test_the_end_of_a_job_waits_for_the_worker(collector):
    collector.records(UID, 1, (layout.GRAPH, GRAPH))
    assert collector.send(UID, wire.CLOSE, state="exited") == []
    assert collector.finish_work() == [Head(wire.ACK, UID, wire.RECORDS, 0, 1), Head(wire.ACK, UID, wire.CLOSE, 1, 1)]
    assert UID not in collector.jobs.open
    assert len(collector.table(UID, "graph_nodes")) == LARGE_BYTES // 48


@pytest.mark.parametrize(
    ("limit", "value", "reason"),
    [
        ("ROWS_BYTES_MAX", 1 << 16, "MiB of rows"),
        ("WALL_S", 0.0, "more than 0 s to decode"),
        ("CPU_S", 0, "of CPU time"),
    ],
)
def test_a_record_beyond_the_limits_of_a_worker_is_an_event_and_the_job_continues(
    collector, monkeypatch, limit, value, reason
):
    monkeypatch.setattr(worker_process, limit, value)
    collector.records(UID, 1, (layout.GRAPH, GRAPH), STEP)
    assert collector.finish_work()[-1] == Head(wire.ACK, UID, wire.RECORDS, 0, 2)
    (event,) = collector.table(UID, "events")
    assert event["slug"] == "undecodable"
    assert reason in event["text"]
    assert len(collector.table(UID, "traces")) == 1


def test_an_internal_error_in_a_worker_is_reported_with_its_traceback(collector, monkeypatch):
    monkeypatch.setattr(rows, "graph_nodes", raise_error)
    collector.records(UID, 1, (layout.GRAPH, GRAPH))
    collector.finish_work()
    assert "in raise_error" in collector.stats.snapshot(0, 1.0)["first_failure"]
    assert "by accident" in collector.table(UID, "events")[0]["text"]


def test_an_operating_system_error_in_a_worker_is_reported_as_it_is(collector, monkeypatch):
    def refuse(*_args):
        raise PermissionError(13, "no access")

    monkeypatch.setattr(worker_process, "confine", refuse)
    collector.records(UID, 1, (layout.GRAPH, GRAPH))
    collector.finish_work()
    assert "no access" in collector.table(UID, "events")[0]["text"]


def test_an_undecodable_record_in_a_worker_is_not_an_internal_error(collector, monkeypatch):
    def refuse(*_args):
        raise DecodeError("no graph")

    monkeypatch.setattr(rows, "graph_nodes", refuse)
    collector.records(UID, 1, (layout.GRAPH, GRAPH))
    collector.finish_work()
    assert collector.stats.failures == 0
    assert [event["slug"] for event in collector.table(UID, "events")] == ["undecodable"]


def test_waiting_records_are_bounded_and_small_messages_of_others_do_not_wait(collector, monkeypatch):
    monkeypatch.setattr(worker_process, "WAITING_BYTES_MAX", 2 * len(GRAPH))
    collector.records(UID, 1, (layout.GRAPH, GRAPH))
    with pytest.raises(BusyError):
        collector.records(UID, 2, (layout.GRAPH, GRAPH))
    assert collector.records(OTHER, 1, STEP) == [Head(wire.ACK, OTHER, wire.RECORDS, 0, 1)]
    collector.finish_work()
    assert collector.records(UID, 2, STEP) == [Head(wire.ACK, UID, wire.RECORDS, 0, 2)]


def test_documents_that_the_store_could_not_write_are_refused_or_made_writable(collector):
    deep = {}
    for _ in range(40):
        deep = {"a": deep}
    for values in ({"name": deep}, {"name": "x", "rank": float("inf")}):
        with pytest.raises(FormatError):
            collector.send(UID, wire.OPEN, **values)
    collector.jobs.take(Head(wire.OPEN, UID, 0, 0, 2), memoryview(b'{"name": "\\ud800x"}'))
    assert LocalStore(collector.path).job(f"{UID:016x}").info.name == "?x"


def test_a_record_that_needs_too_much_memory_is_an_event(collector, monkeypatch):
    monkeypatch.setattr(rows, "graph_nodes", lambda *_args: len(bytes(2 * worker_process.MEMORY_MAX)))
    collector.records(UID, 1, (layout.GRAPH, GRAPH))
    assert collector.finish_work() == [Head(wire.ACK, UID, wire.RECORDS, 0, 1)]
    (event,) = collector.table(UID, "events")
    assert "MiB of memory" in event["text"]
