"""Open jobs: what their messages store, in which order, and what is refused or counted as lost.

Tests collector/ingest/appender.py, collector/ingest/ingest.py, collector/ingest/job.py,
collector/ingest/parsing.py, collector/ingest/rows.py, collector/ingest/samples.py,
collector/ingest/slices.py, collector/ingest/upkeep.py.
"""

import json
import struct

import pytest
from fakes.polling import until
from fakes.run_metadata import node, number, run_metadata, text
from fakes.wire_agent import record, span
from fakes.xspaces import Plane, session
from tfprof.collector.decoders.decode import decoder
from tfprof.collector.decoders.proto.hlo_pb2 import HloProto
from tfprof.collector.decoders.proto.xplane_pb2 import XSpace
from tfprof.collector.errors import FormatError, StoreError
from tfprof.collector.ingest import waiting_records
from tfprof.collector.ingest.ingest import make_ingest
from tfprof.collector.ingest.samples import REOPENS_MAX
from tfprof.collector.selfstats import CollectorStats
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.store.writer import LocalStoreWriter
from tfprof.formats import layout, wire
from tfprof.formats.wire import Head

UID = 0xABC


class Ingest:
    """The open jobs of a collector. Tests pass messages to them directly, without a socket."""

    def __init__(self, path):
        self.path = path
        self.start()

    def start(self):
        self.store = LocalStoreWriter(self.path, "testhost")
        self.parts = make_ingest(self.store, decoder(), CollectorStats().count_failure)
        self.jobs = self.parts.jobs

    def restart(self):
        self.store.close()
        self.start()

    def open(self, uid=UID, **identity):
        return self.jobs.take(Head(wire.OPEN, uid, 0, 0, 1), memoryview(json.dumps(identity).encode()))

    def records(self, first, *records, uid=UID):
        body = b"".join(record(seq, **fields) for seq, fields in enumerate(records, first))
        return self.jobs.take(Head(wire.RECORDS, uid, 0, first, first + len(records) - 1), memoryview(body))

    def spans(self, first, *spans, offset=0):
        body = struct.pack("<QQ", 10**9, 10**9 + offset) + b"".join(layout.SPAN.pack(*fields) for fields in spans)
        return self.jobs.take(Head(wire.SPANS, UID, 0, first, first + len(spans) - 1), memoryview(body))

    def send(self, kind, number=1, uid=UID, **values):
        return self.jobs.take(Head(kind, uid, 0, number, number), memoryview(json.dumps(values).encode()))

    def end(self, state, **values):
        """Close the job and store its end; return all answers."""
        answers = self.send(wire.CLOSE, state=state, **values)
        return answers + [answer for stored in self.parts.slices.work(10.0) for answer in stored.answers]

    def samples(self, number, values):
        return self.parts.samples.take(
            "testhost", Head(wire.SAMPLES, 0, 0, number, number), memoryview(json.dumps(values).encode())
        )

    def table(self, name, uid=UID):
        return LocalStore(self.path).job(f"{uid:016x}").table(name).to_pylist()

    def events(self):
        return {event["slug"]: event["count"] for event in self.table("events")}


@pytest.fixture
def ingest(tmp_path):
    ingest = Ingest(tmp_path / "store")
    ingest.open(name="train.py")
    yield ingest
    ingest.store.close()


def step(*names, **fields):
    return {"kind": layout.RUN_METADATA, "body": run_metadata(names or [b"a:Add"]), **fields}


def ack(about, last, uid=UID):
    return Head(wire.ACK, uid, about, 0, last)


def window(ordinal=1, start_ns=10_000, duration_ns=2_000, batches=1, executions=2):
    """Return the record of a window of one step, with an op every 1,000 ns from ``start_ns`` on."""
    space = XSpace()
    plane = space.planes.add(name=b"/host:CPU")
    plane.event_metadata[1].id = 1
    plane.event_metadata[1].name = b"layer/MatMul:MatMul"
    line = plane.lines.add(id=5, timestamp_ns=start_ns)
    for at in range(executions):
        line.events.add(metadata_id=1, offset_ps=at * 1_000_000, duration_ps=500_000)
    return {
        "kind": layout.XSPACE,
        "body": layout.XSPACE_HEAD.pack(start_ns, batches, 0) + space.SerializeToString(),
        "step": ordinal,
        "key": 3,
        "flags": layout.BATCH,
        "start_ns": start_ns,
        "duration_ns": duration_ns,
    }


def test_a_traced_step_becomes_rows_of_traces_ops_and_names(ingest):
    assert ingest.records(1, step(b"a:Add", b"b:Mul", step=9, key=3, flags=layout.RUN)) == [ack(wire.RECORDS, 1)]
    (trace,) = ingest.table("traces")
    assert (trace["trace"], trace["step"], trace["key"], trace["kind"], trace["rows"]) == (0, 9, 3, layout.RUN, 2)
    assert [row["trace"] for row in ingest.table("ops")] == [0, 0]
    assert {b"a", b"b", b"Add", b"Mul"} <= {row["text"] for row in ingest.table("names")}


def test_gpu_allocations_and_accelerators_are_stored_before_and_after_sealing(ingest):
    memory = text(6, text(1, b"GPU_0_bfc") + text(6, number(1, 7) + number(2, 256)))
    gpu, stream = b"/job:localhost/replica:0/task:0/device:GPU:0", b"/device:GPU:0/stream:all"
    scheduled_ops = text(1, text(1, text(1, gpu) + text(2, node(b"a", 5) + memory)))
    complete_step = scheduled_ops + run_metadata([b"a"], device=stream)
    records = [
        {"kind": layout.RUN_METADATA, "body": body} for body in (scheduled_ops, run_metadata([b"a"]), complete_step)
    ]
    ingest.records(1, *records[:2])
    ingest.store.job(UID).seal()
    ingest.records(3, records[2])
    assert [row["accelerator"] for row in ingest.table("traces")] == [1, 0, 3]
    assert ingest.table("allocations") == [
        {"trace": trace, "node": 0, "device": 0, "t_us": 7, "bytes": 256} for trace in (0, 2)
    ]


def test_a_repeated_message_is_acked_again_and_stored_once(ingest):
    ingest.records(1, step(), step())
    assert ingest.records(1, step(), step()) == [ack(wire.RECORDS, 2)]
    assert ingest.records(2, step(), step()) == [ack(wire.RECORDS, 3)]
    assert len(ingest.table("traces")) == 3


def test_the_messages_in_a_gap_are_requested_once_and_then_counted_as_lost(ingest):
    ingest.records(1, step())
    assert ingest.records(5, step()) == [Head(wire.REOPEN, UID)]
    assert ingest.records(5, step()) == [ack(wire.RECORDS, 5)]
    assert ingest.events() == {"gap": 3}
    ingest.spans(1, span(1))
    ingest.spans(4, span(4))
    ingest.spans(4, span(4))
    assert sum(event["count"] for event in ingest.table("events")) == 5


def test_an_undecodable_record_is_an_event_and_does_not_affect_others(ingest):
    ingest.records(1, step(), {"kind": layout.RUN_METADATA, "body": b"\xff"}, step())
    assert [row["trace"] for row in ingest.table("traces")] == [0, 2]
    for kind in (layout.GRAPH, layout.FRAMES, layout.REFUSED):
        ingest.records(ingest.store.job(UID).acked(wire.RECORDS) + 1, {"kind": kind, "body": b"\xff"})
    ingest.records(7, {**window(), "body": b"\xff", "key": 0})
    assert [event["slug"] for event in ingest.table("events")] == ["undecodable"] * 5


def test_records_of_an_unknown_kind_are_counted(ingest):
    ingest.records(1, {"kind": 77, "body": b""}, {"kind": 77, "body": b"x"}, step())
    assert ingest.events() == {"unknown-record": 2}
    assert len(ingest.table("traces")) == 1


def test_a_graph_number_out_of_range_is_undecodable(ingest):
    ingest.records(1, {"kind": layout.GRAPH, "body": b"", "step": 1 << 40})
    assert ingest.events() == {"undecodable": 1}


def test_frames_and_refusals_are_stored_in_their_tables(ingest):
    frames = {"files": ["x.py"], "functions": ["f"], "frames": [[0, 3, 0]], "stacks": [[0]], "nodes": {"a": 0}}
    frames |= {"starts": [2], "variables": {"w/resource": [3, 4]}}
    refusal = {"slug": "graph-too-large", "text": "too large \ud800"}
    ingest.records(
        1,
        {"kind": layout.FRAMES, "body": json.dumps(frames).encode(), "step": 2},
        {"kind": layout.REFUSED, "body": json.dumps(refusal).encode(), "start_ns": 77},
    )
    assert [(row["graph"], row["name"], row["stack"]) for row in ingest.table("stacks")] == [(2, "a", 0)]
    (frame,) = ingest.table("frames")
    assert (frame["file"], frame["line"], frame["function"], frame["start_line"]) == ("x.py", 3, "f", 2)
    (op_log_row,) = ingest.table("op_log")
    assert (op_log_row["graph"], op_log_row["name"], op_log_row["types"]) == (2, "w/resource", ["_trainable_variables"])
    assert op_log_row["shape"] == [3, 4]
    (event,) = ingest.table("events")
    assert (event["t_ns"], event["slug"], event["text"]) == (77, "graph-too-large", "too large ?")


def test_spans_are_stored_in_real_time(ingest):
    assert ingest.spans(1, span(1, start_ns=50, total_ns=10), offset=1_000) == [ack(wire.SPANS, 1)]
    (row,) = ingest.table("spans")
    assert (row["start_ns"], row["total_ns"], row["ordinal"], row["count"]) == (1_050, 10, 1, 1)


def test_times_beyond_64_bits_do_not_stop_the_stream(ingest):
    ingest.spans(1, (2**64 - 1, 2**64 - 1, 1, 1, 1, 0, 0, 0, 2**64 - 1, 2**64 - 1, 2**64 - 1))
    assert ingest.table("spans")[0]["start_ns"] == 2**63 - 1


def test_a_window_is_stored_at_once_as_a_trace_of_its_step(ingest):
    assert ingest.records(1, step(), window(7, batches=4), step()) == [ack(wire.RECORDS, 3)]
    traces = [(row["trace"], row["source"], row["step"], row["rows"]) for row in ingest.table("traces")]
    assert traces == [(0, layout.RUN_METADATA, 1, 1), (1, layout.XSPACE, 7, 2), (2, layout.RUN_METADATA, 1, 1)]
    trace = ingest.table("traces")[1]
    assert (trace["kind"], trace["key"], trace["start_ns"], trace["duration_ns"]) == (layout.BATCH, 3, 10_000, 2_000)


def test_a_truncated_window_is_an_event_and_does_not_affect_others(ingest):
    truncated = {**window(), "body": b"short"}
    assert ingest.records(1, truncated, step()) == [ack(wire.RECORDS, 2)]
    assert ingest.events() == {"undecodable": 1}


def test_numbers_of_traces_and_names_continue_after_a_restart(ingest):
    ingest.records(1, step(b"a:Add"), step(b"b:Mul"))
    ingest.restart()
    assert ingest.records(3, step(), uid=UID) == [Head(wire.REOPEN, UID)]
    ingest.open(name="train.py")
    assert ingest.records(2, step(b"b:Mul"), step(b"c:Sub"), step(b"a:Add")) == [ack(wire.RECORDS, 4)]
    assert [row["trace"] for row in ingest.table("traces")] == [0, 1, 2, 3]
    names = {(row["kind"], row["id"]): row["text"] for row in ingest.table("names")}
    assert len(names) == len(ingest.table("names"))
    assert [names[0, row["node"]] for row in ingest.table("ops")] == [b"a", b"b", b"c", b"a"]


def test_samples_are_stored_by_job_and_host(ingest):
    ingest.open(uid=2)
    jobs = {f"{UID:016x}": {"processes": 2, "cpu_user_s": 1.5}, "2": {"processes": None}}
    assert ingest.samples(1, {"t_ns": 5, "host": {"cpus": 8}, "jobs": jobs}) == [Head(wire.ACK, 0, wire.SAMPLES, 1, 1)]
    ingest.samples(1, {"t_ns": 5, "host": {"cpus": 8}, "jobs": jobs})
    (sample,) = ingest.table("samples")
    assert (sample["t_ns"], sample["processes"], sample["cpu_user_s"]) == (5, 2, 1.5)
    assert ingest.table("samples", uid=2)[0]["processes"] == 0
    assert ingest.store.host("testhost").table("host_samples")["cpus"].to_pylist() == [8]


def test_busy_threads_are_rows_of_their_own(ingest):
    values = {"processes": 1, "busy_threads": [[12, 0.5], [13, 0.25]]}
    ingest.samples(1, {"t_ns": 5, "jobs": {f"{UID:016x}": values}})
    ingest.samples(2, {"t_ns": 6, "jobs": {f"{UID:016x}": {"processes": 1, "busy_threads": []}}})
    assert ingest.table("busy_threads") == [
        {"t_ns": 5, "thread": 12, "cpu_s": 0.5},
        {"t_ns": 5, "thread": 13, "cpu_s": 0.25},
    ]


def test_samples_of_an_unknown_job_request_a_reopening(ingest):
    assert ingest.samples(1, {"t_ns": 5, "jobs": {"77": {}}}) == [Head(wire.REOPEN, 0x77)]


def test_samples_of_very_many_unknown_jobs_have_few_answers(ingest):
    uids = set(range(100, 500))
    while len(uids) > 100:
        answers = ingest.samples(1, {"t_ns": 5, "jobs": {f"{uid:x}": {} for uid in uids}})
        assert {answer.type for answer in answers} == {wire.REOPEN}
        assert len(answers) == REOPENS_MAX
        uids -= {answer.uid for answer in answers}


def test_samples_of_an_ended_job_are_dropped(ingest):
    ingest.end("exited")
    assert ingest.samples(1, {"t_ns": 5, "jobs": {f"{UID:016x}": {}}}) == [Head(wire.ACK, 0, wire.SAMPLES, 1, 1)]


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"t_ns": "x"},
        {"t_ns": 1, "jobs": []},
        {"t_ns": 1, "jobs": {"zz": {}}},
        {"t_ns": 1, "jobs": {f"{UID:x}": 3}},
        {"t_ns": 1, "jobs": {f"{UID:x}": {"processes": "many"}}},
        {"t_ns": 1, "jobs": {f"{UID:x}": {"processes": -1}}},
        {"t_ns": 1 << 70, "host": {"cpus": 1}},
        {"t_ns": 1, "host": {"cpus": 2**90}},
    ],
)
def test_malformed_samples_are_a_format_error(ingest, values):
    with pytest.raises(FormatError):
        ingest.samples(1, values)


def test_counters_and_events_are_stored(ingest):
    assert ingest.send(wire.COUNTERS, 4, dropped_traces=3) == [Head(wire.ACK, UID, wire.COUNTERS, 4, 4)]
    ingest.send(wire.EVENT, 7, slug="policy", text="all", count=1, t_ns=5)
    ingest.send(wire.EVENT, 7, slug="policy", text="all", count=1, t_ns=5)
    assert ingest.events() == {"policy": 1}
    ingest.end("exited", dropped_traces=4)
    assert LocalStore(ingest.path).job("last").info.counters == {"dropped_traces": 4}


def test_the_answer_to_an_order_is_stored_once_however_many_agents_send_it(ingest):
    texts = [f"order {number:016x} of ann on node7 (process 4): obeyed from train step 5 on" for number in (1, 2)]
    for agent in range(3):
        for count, order_text in enumerate(texts):
            number = wire.COUNTED_FROM + (agent + 1) * 10**12 + count
            answer = Head(wire.ACK, UID, wire.EVENT, number, number)
            assert ingest.send(wire.EVENT, number, slug="order-given", text=order_text) == [answer]
        ingest.restart()
        ingest.open(name="train.py")
    for count, slug in enumerate(("order-ended", "policy", "policy")):
        ingest.send(wire.EVENT, wire.COUNTED_FROM + 9 * 10**12 + count, slug=slug, text=texts[0])
    stored = [(event["slug"], event["text"]) for event in ingest.table("events")]
    other_slugs = [(slug, texts[0]) for slug in ("order-ended", "policy", "policy")]
    assert stored == [("order-given", texts[0]), ("order-given", texts[1]), *other_slugs]


def test_repeated_samples_and_events_are_skipped_and_those_of_another_agent_are_stored(ingest):
    first_agent, second_agent = wire.COUNTED_FROM + 5 * 10**9, wire.COUNTED_FROM + 10**9  # the clock was set back
    for count in (first_agent, first_agent + 1, first_agent, second_agent, second_agent, 7, 7):
        values = {"t_ns": 5, "host": {"cpus": 8}, "jobs": {f"{UID:016x}": {"processes": 1}}}
        assert ingest.samples(count, values) == [Head(wire.ACK, 0, wire.SAMPLES, count, count)]
        ingest.send(wire.EVENT, count, slug="policy", text=str(count))
    ingest.restart()
    ingest.open(name="train.py")
    ingest.send(wire.EVENT, 7, slug="policy", text="7")
    numbers = [str(count) for count in (first_agent, first_agent + 1, second_agent, 7)]
    assert [event["text"] for event in ingest.table("events")] == numbers
    assert len(ingest.table("samples")) == len(numbers)
    assert ingest.store.host("testhost").table("host_samples").num_rows == len(numbers)


def test_a_close_without_counters_keeps_the_latest_counters(ingest):
    ingest.send(wire.COUNTERS, 4, dropped_traces=3)
    ingest.end("ended", t_ns=5)
    assert LocalStore(ingest.path).job("last").info.counters == {"dropped_traces": 3}


def test_counters_of_many_jobs_reach_the_store_in_turn(ingest):
    ingest.open(uid=2)
    for uid in (UID, 2):
        ingest.send(wire.COUNTERS, uid=uid, traced=1)
    uids_with_counters = []
    for _ in range(2):
        ingest.parts.upkeep.hand_over_counters(jobs_max=1)
        uids_with_counters.append([uid for uid in (UID, 2) if ingest.store.job(uid).info.counters])
    assert uids_with_counters == [[UID], [UID, 2]]
    ingest.send(wire.COUNTERS, 2, uid=UID, traced=2)
    ingest.parts.upkeep.hand_over_counters(jobs_max=5)
    assert ingest.store.job(UID).info.counters == {"traced": 2}


def test_a_closed_job_is_sealed_and_dropped(ingest):
    ingest.records(1, step())
    assert ingest.end("killed", signal=9) == [Head(wire.ACK, UID, wire.CLOSE, 1, 1)]
    info = LocalStore(ingest.path).job("last").info
    assert (info.state, info.end["signal"], info.sealed) == ("killed", 9, 0)
    assert not ingest.jobs.open
    assert ingest.jobs.rows == 1
    assert ingest.send(wire.CLOSE, state="killed") == [Head(wire.ACK, UID, wire.CLOSE, 1, 1)]


def test_a_job_that_was_closed_too_early_can_be_opened_again(ingest):
    ingest.end("lost")
    assert ingest.records(1, step()) == [Head(wire.REOPEN, UID)]
    ingest.open(name="train.py")
    ingest.records(1, step())
    assert LocalStore(ingest.path).job("last").info.state == "running"


def test_the_ends_of_many_jobs_are_stored_one_after_the_other(ingest):
    for uid in (UID, 2, 3):
        ingest.open(uid=uid)
        assert ingest.send(wire.CLOSE, uid=uid, state="exited") == []
    assert ingest.parts.slices.poll_timeout_ms(500) == 0
    for open_count in (2, 1, 0):
        next(iter(ingest.parts.slices.work(1.0)))
        assert len(ingest.jobs.open) == open_count
    assert ingest.parts.slices.poll_timeout_ms(500) == 500


def test_a_close_that_cannot_be_stored_stalls_and_is_accepted_when_repeated(ingest, monkeypatch):
    def raise_full():
        raise StoreError("no space", "store-full")

    with monkeypatch.context() as patch:
        patch.setattr(ingest.store.job(UID), "seal", raise_full)
        ingest.send(wire.CLOSE, state="exited")
        ((uid, error),) = ingest.parts.slices.work(1.0)
        assert (uid, error.slug) == (UID, "store-full")
        assert list(ingest.parts.slices.work(1.0)) == list(ingest.parts.slices.retry()) == []
    assert ingest.end("exited") == [Head(wire.ACK, UID, wire.CLOSE, 1, 1)]


@pytest.mark.parametrize("end", [{}, {"state": "fine"}, {"state": ["exited"]}, {"state": "exited", "t_ns": "x"}])
def test_a_close_with_an_unknown_state_is_a_format_error_and_the_job_stays_open(ingest, end):
    with pytest.raises(FormatError):
        ingest.send(wire.CLOSE, **end)
    assert UID in ingest.jobs.open


def test_a_job_without_an_id_is_a_format_error(ingest):
    with pytest.raises(FormatError):
        ingest.open(uid=0)


def test_rows_of_a_failed_append_are_kept_and_stored_first(ingest, monkeypatch):
    writer = ingest.store.job(UID)
    append = writer.append

    def raise_full(*_args):
        raise StoreError("no space", "store-full")

    monkeypatch.setattr(writer, "append", raise_full)
    with pytest.raises(StoreError):
        ingest.records(1, step(b"a:Add"))
    with pytest.raises(StoreError):
        ingest.records(2, step(b"b:Mul"))
    with pytest.raises(StoreError):
        ingest.spans(1, span(1))
    with pytest.raises(StoreError):
        ingest.send(wire.CLOSE, state="exited")
    monkeypatch.setattr(writer, "append", append)
    assert ingest.records(3, step(b"c:Sub")) == []  # message 2 was stalled, so the agent sends both again
    assert ingest.records(1, step(b"a:Add"), step(b"b:Mul"), step(b"c:Sub")) == [ack(wire.RECORDS, 3)]
    ingest.spans(1, span(1))
    assert not ingest.table("events")
    assert len(ingest.table("traces")) == 3
    assert len(ingest.table("names")) == len({(row["kind"], row["id"]) for row in ingest.table("names")})


def test_a_job_that_cannot_be_stored_does_not_block_the_samples_of_others(ingest, monkeypatch):
    ingest.open(uid=2)

    def raise_full(*_args):
        raise StoreError("no space", "store-full")

    writer = ingest.store.job(UID)
    append = writer.append
    monkeypatch.setattr(writer, "append", raise_full)
    values = {"t_ns": 5, "host": {"cpus": 8}, "jobs": {f"{UID:016x}": {}, "2": {}}}
    with pytest.raises(StoreError):
        ingest.samples(1, values)
    assert len(ingest.table("samples", uid=2)) == 1
    monkeypatch.setattr(writer, "append", append)
    ingest.samples(1, values)
    assert [len(ingest.table("samples", uid=uid)) for uid in (UID, 2)] == [1, 1]
    assert ingest.store.host("testhost").table("host_samples").num_rows == 1


def test_alerts_are_stored_with_the_job(ingest, monkeypatch):
    ingest.open(host="testhost")
    ingest.send(wire.COUNTERS, dropped_records=0)
    ingest.send(wire.COUNTERS, number=2, dropped_records=3)
    [(uid, alert)] = ingest.parts.upkeep.store_alerts()
    assert (uid, alert.slug) == (UID, "losses")
    assert [(row["slug"], row["before"], row["now"]) for row in ingest.table("alerts")] == [("losses", 0, 3)]


def test_a_failure_of_the_detector_ends_only_the_alerts_of_the_job(ingest, monkeypatch):
    def fail(*_arguments):
        raise ZeroDivisionError

    ingest.open()
    monkeypatch.setattr("tfprof.collector.alerts.job_watch.JobWatch.add_counters", fail)
    answers = [ingest.send(wire.COUNTERS, number=number, dropped_records=number) for number in range(1, 40)]
    assert [[answer.type for answer in message_answers] for message_answers in answers] == [[wire.ACK]] * len(answers)
    assert UID in ingest.jobs.open
    assert ingest.parts.upkeep.store_alerts() == []


def test_an_alert_that_cannot_be_stored_now_is_stored_later(ingest, monkeypatch):
    def raise_full(*_arguments):
        raise StoreError("full", "store-full")

    ingest.open()
    ingest.send(wire.COUNTERS, dropped_records=0)
    ingest.send(wire.COUNTERS, number=2, dropped_records=3)
    with monkeypatch.context() as patch:
        patch.setattr(ingest.jobs.open[UID].writer, "append", raise_full)
        assert len(ingest.parts.upkeep.store_alerts()) == 1
    ingest.send(wire.EVENT, slug="x", text="y")
    assert len(ingest.table("alerts")) == 1


GIVEN_UP = {"state": "killed", "signal": 9, "status": None, "t_ns": 5, "records": 7, "span_head": 3}


@pytest.mark.parametrize("is_open", [True, False])
def test_records_that_an_agent_gave_up_are_lost_and_the_end_of_the_job_is_stored(ingest, is_open):
    ingest.records(1, step(), step())
    if not is_open:
        ingest.restart()
    assert ingest.parts.end_given_up_job(UID, {"name": "train.py"}, GIVEN_UP)
    info = LocalStore(ingest.path).job(f"{UID:016x}").info
    assert (info.state, info.end["signal"], info.counters["never_stored"]) == ("killed", 9, 8)
    assert ingest.table("events")[-2:] == [
        {**event, "slug": "given-up", "count": count}
        for event, count in zip(ingest.table("events")[-2:], (5, 3), strict=True)
    ]


def test_what_a_job_wrote_last_and_never_came_is_counted_at_its_end(ingest):
    ingest.records(1, step(), step())
    ingest.spans(1, span(1))
    ingest.end("exited", status=0, records=5, span_head=2)
    info = LocalStore(ingest.path).job(f"{UID:016x}").info
    assert (info.state, info.counters["never_stored"]) == ("exited", 4)
    assert [(event["slug"], event["count"]) for event in ingest.table("events")] == [("gap", 3), ("gap", 1)]


def test_a_job_that_the_store_does_not_know_is_listed_with_its_loss(ingest):
    assert ingest.parts.end_given_up_job(7, {"name": "other.py"}, GIVEN_UP)
    info = LocalStore(ingest.path).job(f"{7:016x}").info
    assert (info.name, info.state, info.counters["never_stored"]) == ("other.py", "killed", 10)


def test_a_job_that_was_given_up_keeps_its_stored_identity(ingest):
    ingest.open(name="train.py", framework="tensorflow")
    assert ingest.parts.end_given_up_job(UID, {"name": "", "user": "ada"}, GIVEN_UP)
    info = LocalStore(ingest.path).job(f"{UID:016x}").info
    assert info.identity == {"name": "train.py", "framework": "tensorflow", "user": "ada"}


@pytest.mark.parametrize("is_restarted", [True, False])
def test_a_job_whose_end_is_stored_is_not_given_up(ingest, is_restarted):
    """The agent was killed before it removed the announcement: its successor misses the channel."""
    ingest.records(1, step())
    ingest.end("exited", status=0, records=1)
    if is_restarted:
        ingest.restart()
    assert ingest.parts.end_given_up_job(UID, {"name": "train.py"}, {**GIVEN_UP, "state": "lost"})
    info = LocalStore(ingest.path).job(f"{UID:016x}").info
    assert (info.state, info.end["status"], "never_stored" in info.counters) == ("exited", 0, False)
    assert "given-up" not in ingest.events()


def test_records_that_are_being_stored_are_not_lost(ingest):
    """They have arrived from an agent that was then killed."""
    ingest.records(1, *(window(ordinal) for ordinal in range(1, 101)))
    assert ingest.jobs.open[UID].is_busy
    end = {**GIVEN_UP, "records": 104}
    assert not ingest.parts.end_given_up_job(UID, {}, end)
    while ingest.jobs.open[UID].is_busy:
        list(ingest.parts.slices.work(10.0))
    assert ingest.parts.end_given_up_job(UID, {}, end)
    assert len(ingest.table("traces")) == 100
    assert LocalStore(ingest.path).job(f"{UID:016x}").info.counters["never_stored"] == 4 + 3


@pytest.mark.parametrize("end", [{}, {"state": "over"}, {**GIVEN_UP, "records": "7"}])
def test_an_invalid_end_is_refused(ingest, end):
    with pytest.raises(FormatError):
        ingest.parts.end_given_up_job(7, {"name": "other.py"}, end)


def test_a_collector_that_was_killed_before_it_stored_the_counter_knows_the_loss_from_the_event(ingest):
    ingest.records(1, step())
    for _ in range(2):  # the first message after a gap is not accepted
        ingest.records(7, step())
    ingest.restart()  # as after SIGKILL: the counters were not handed over
    ingest.open(name="train.py")
    ingest.send(wire.COUNTERS, records=7)
    ingest.parts.upkeep.hand_over_counters(1)
    assert ingest.events()["gap"] == 5
    ingest.end("ended", records=7)
    assert LocalStore(ingest.path).job(f"{UID:016x}").info.counters["never_stored"] == 5


def test_losses_of_a_removed_store_are_counted_once_however_often_the_append_fails(ingest, monkeypatch):
    job = ingest.jobs.open[UID]

    def raise_full(*_):
        raise StoreError("no space", "store-full")

    with monkeypatch.context() as patch:
        patch.setattr(job.writer, "append", raise_full)
        for _ in range(3):
            with pytest.raises(StoreError):
                job.note_lost(wire.RECORDS, 9, "store-removed")
    job.note_lost(wire.RECORDS, 9, "store-removed")
    assert job.appender.lost_count == 9
    assert ingest.events()["store-removed"] == 9


def no_op_texts(ingest):
    return [event["text"].partition(" in a row")[0] for event in ingest.table("events") if event["slug"] == "no-ops"]


@pytest.mark.parametrize("large_bytes", [100, waiting_records.LARGE_BYTES], ids=["in a worker", "at once"])
def test_the_ops_of_a_program_are_stored_once(ingest, large_bytes, monkeypatch):
    monkeypatch.setattr(waiting_records, "LARGE_BYTES", large_bytes)
    program = HloProto()
    instruction = program.hlo_module.computations.add(name=b"main").instructions.add(name=b"dot.1", opcode=b"dot")
    instruction.metadata.op_type, instruction.metadata.op_name = b"MatMul", b"dense/MatMul"
    metadata = Plane(b"/host:metadata")
    event = metadata.plane.event_metadata[1]
    event.name = b"a_inference_step_90.2(7)"
    event.stats.add(metadata_id=metadata._id("stat_metadata", b"Hlo Proto"), bytes_value=program.SerializeToString())
    body = layout.XSPACE_HEAD.pack(10_000, 1, 0) + session(Plane().line((b"a:Add", 1, 2)), metadata).SerializeToString()
    record = {"kind": layout.XSPACE, "body": body, "step": 1, "key": 5, "flags": layout.FUNCTION}
    ingest.records(1, record, record)
    ingest.records(3, record)
    until(lambda: not list(ingest.parts.slices.work(1.0)) and not ingest.parts.slices.is_waiting, "the rows")
    assert len(ingest.table("traces")) == 3
    part = {"module": "a_inference_step_90.2(7)", "node": "dense/MatMul", "op": "MatMul", "fused_into": ""}
    assert ingest.table("programs") == [{**part, "instructions": 1}]


def empty_window(ordinal, *names, **fields):
    """Return the record of a window of a call of function 5, whose events have these names."""
    plane = Plane().line(*[(name, at, at + 1) for at, name in enumerate(names)])
    body = layout.XSPACE_HEAD.pack(10_000, 1, 0) + session(plane).SerializeToString()
    return {"kind": layout.XSPACE, "body": body, "step": ordinal, "key": 5, "flags": layout.FUNCTION, **fields}


def test_three_steps_in_a_row_without_ops_are_reported_once_for_each_kind(ingest):
    empty = {"kind": layout.RUN_METADATA, "body": b""}
    ingest.records(1, *[{**empty, "flags": layout.TRAIN}] * 2, step(flags=layout.TRAIN))
    ingest.records(4, *[{**empty, "flags": layout.TRAIN}] * 2, *[{**empty, "flags": layout.RUN}] * 2)
    assert no_op_texts(ingest) == []
    ingest.records(8, *[{**empty, "flags": layout.TRAIN}] * 4, *[{**empty, "flags": layout.RUN}] * 4)
    assert no_op_texts(ingest) == ["3 traced train steps", "3 traced run steps"]


def test_the_function_whose_steps_have_no_ops_is_named(ingest):
    ingest.open(name="train.py", functions={"5": "step"})
    ingest.records(1, *[empty_window(ordinal, b"Unknown", b"FunctionRun") for ordinal in (1, 2, 3)])
    assert no_op_texts(ingest) == ["3 traced function:step steps"]


CALL = (b"TFE_Py_ExecuteCancelable", b"EagerExecute", b"EagerKernelExecute")


@pytest.mark.parametrize(
    ("names", "is_reported"),
    [
        ((), True),
        ((b"FunctionRun", b"ExecutorState::Process", b"ExecutorPropagateOutputs"), True),
        ((*CALL, b"KernelAndDeviceFunc::Run", b"FunctionRun", b"a of Mul"), True),
        ((*CALL, b"KernelAndDeviceFunc::Run"), False),  # a function without ops
        ((*CALL[:2], b"CopyInputToExpectedDevice"), False),  # a remote server ran it
        ((*CALL, b"__inference_f_12:__inference_f_12", b"dot.3"), False),  # XLA ran it
        ((*CALL, b"FunctionRun", b"a:Mul"), False),
    ],
)
def test_steps_of_which_the_events_show_that_no_op_ran_are_not_reported(ingest, names, is_reported):
    ingest.records(1, *[empty_window(ordinal, *names) for ordinal in (1, 2, 3)])
    assert bool(no_op_texts(ingest)) is is_reported


@pytest.mark.parametrize(("names", "is_reported"), [((), False), ((b"Unknown",), True), ((*CALL, b"a of Mul"), True)])
def test_empty_gradient_tapes_are_not_reported_but_eager_steps_whose_ops_are_unknown(ingest, names, is_reported):
    ingest.records(1, *[empty_window(ordinal, *names, flags=layout.EAGER) for ordinal in (1, 2, 3)])
    assert bool(no_op_texts(ingest)) is is_reported


@pytest.mark.parametrize(("device", "is_reported"), [(b"/job:ps/task:0", False), (b"/job:localhost/task:0", True)])
def test_runs_of_a_graph_on_remote_servers_are_not_reported(ingest, device, is_reported):
    node_def = text(1, b"w") + text(2, b"VariableV2") + text(4, device)
    empty = {"kind": layout.RUN_METADATA, "body": b"", "flags": layout.TRAIN}
    ingest.records(1, empty, {"kind": layout.GRAPH, "body": text(1, node_def), "step": 1}, empty, empty, empty)
    assert len(ingest.table("graph_nodes")) == 1
    assert bool(no_op_texts(ingest)) is is_reported


def test_steps_without_ops_that_a_worker_decoded_count_too(ingest, monkeypatch):
    monkeypatch.setattr(waiting_records, "LARGE_BYTES", 100)
    for ordinal in range(1, 5):
        ingest.records(ordinal, empty_window(ordinal, b"Unknown" * 30))
        until(lambda: list(ingest.parts.slices.work(1.0)) and not ingest.parts.slices.is_waiting, "the worker's rows")
    assert no_op_texts(ingest) == ["3 traced function steps"]
