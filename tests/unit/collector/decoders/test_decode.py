"""The two decoders of RunMetadata, in C and in Python, give equal results.

Tests collector/decoders/fallback.py.
"""

from pathlib import Path

import pyarrow as pa
import pytest
from fakes import step_stats
from fakes.run_metadata import node, number, run_metadata, text
from fakes.step_stats import CHUNK, FIXED32, FIXED64, GROUP, GROUP_END, VARINT, tag, varint
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tfprof.collector.decoders import decode, fallback
from tfprof.collector.decoders.decode import DecodedStep, decoder
from tfprof.collector.decoders.interner import Interner, name_table
from tfprof.collector.errors import UsageError
from tfprof.collector.store.output_signatures import OpOutput
from tfprof.collector.store.output_signatures import decode as decoded_outputs
from tfprof.collector.store.schema import ALLOCATOR, NODE, NONE_ID, OPS, OUTPUTS

DATA = Path(__file__).parents[3] / "contract" / "data"
SAMPLES = [path.read_bytes() for path in sorted(DATA.glob("*.run_metadata"))]
#: The samples with the name of a GPU's allocator. Allocation records of other allocators are not
#: decoded.
GPU_SAMPLES = [sample.replace(b"\x0a\x03cpu", b"\x0a\x03GPU") for sample in SAMPLES]
BOTH_DECODERS = pytest.mark.parametrize("kind", ["walker", "python"])


def _decode_all(kind: str, messages: list[bytes], names_max: int = 1 << 20, text_max: int = 1 << 20):
    interner = Interner(name_table(names_max, text_max))
    steps = decoder(kind).run_metadata(messages, range(len(messages)), interner)
    steps.ops.validate(full=True)
    for rows in steps.allocations:
        rows.validate(full=True)
    return steps, interner.new_names()


def _decode_one(kind: str, message: bytes) -> tuple[dict[str, int], DecodedStep]:
    (batch, _, (decoded,)), _ = _decode_all(kind, [message])
    return batch.to_pylist()[0], decoded


def _assert_equal(messages: list[bytes], **limits: int) -> list[DecodedStep]:
    walker_result, walker_names = _decode_all("walker", messages, **limits)
    python_result, python_names = _decode_all("python", messages, **limits)
    assert walker_result.results == python_result.results
    assert walker_result.ops.equals(python_result.ops)
    for walker_rows, python_rows in zip(walker_result.allocations, python_result.allocations, strict=True):
        assert walker_rows.equals(python_rows)
    assert walker_names.equals(python_names)
    return walker_result.results


def _metadata(*nodes: bytes, device: bytes = b"cpu:0") -> bytes:
    return text(1, text(1, text(1, device) + b"".join(text(2, node_stats) for node_stats in nodes)))


def _outputs(interner: Interner, row: dict[str, int]) -> list[OpOutput]:
    return decoded_outputs(interner.table.get(OUTPUTS, row["outputs"]))


FUZZ = settings(max_examples=300, suppress_health_check=list(HealthCheck))


@FUZZ
@given(st.lists(step_stats.RUN_METADATA, min_size=1, max_size=3))
def test_random_messages_are_decoded_alike(messages: list[bytes]) -> None:
    _assert_equal(messages)


@FUZZ
@given(step_stats.RUN_METADATA.flatmap(step_stats.damaged))
def test_damaged_messages_are_decoded_alike(message: bytes) -> None:
    _assert_equal([message])


@settings(FUZZ, max_examples=100)
@given(st.sampled_from(SAMPLES + GPU_SAMPLES).flatmap(step_stats.damaged))
def test_damaged_samples_are_decoded_alike(message: bytes) -> None:
    _assert_equal([message])


@settings(FUZZ, max_examples=100)
@given(st.lists(step_stats.RUN_METADATA, max_size=6), st.integers(0, 8), st.integers(0, 40))
def test_too_many_names_are_refused_alike(messages: list[bytes], names_max: int, text_max: int) -> None:
    _assert_equal(messages, names_max=names_max, text_max=text_max)


def _nested(content: bytes, depth: int) -> bytes:
    """Return ``content`` within a message that is nested ``depth`` levels deep.

    Depth 0 is the outermost message, depth 6 an output's allocation, and depth 7 an allocation
    record of a GPU.
    """
    if depth == 7:
        return _metadata(node(b"a", 1) + text(6, text(1, b"GPU") + text(6, content)))
    for field in reversed((1, 1, 2, 7, 3, 4)[:depth]):
        content = text(field, content)
    return content


VALUES = {VARINT: b"\1", FIXED64: bytes(8), CHUNK: b"\2\x40\1", FIXED32: bytes(4), 6: b"", 7: b""}
CORNERS = {
    "nested groups": [tag(19, GROUP) * depth + tag(19, GROUP_END) * depth for depth in range(92, 103)],
    "mismatched ends of groups": [tag(19, GROUP) + tag(18, GROUP_END), tag(19, GROUP_END)],
    "field 0 in a group": [tag(19, GROUP) + tag(0, kind) + bytes(8) + tag(19, GROUP_END) for kind in range(8)],
    "field 0": [tag(0, kind) + bytes(8) for kind in range(8)],
    "long tags": [tag(field, VARINT, pad) + b"\1" for field in (1, 19, (1 << 29) - 1) for pad in range(6)],
    "large tags": [varint(1 << bits | 8) + b"\1" for bits in range(28, 40)],
    "long lengths": [tag(field, CHUNK) + varint(0, pad) for field in (1, 19) for pad in range(11)],
    "large lengths": [tag(19, CHUNK) + varint(1 << bits) + bytes(1024) for bits in range(2, 64)],
    "long numbers": [tag(field, VARINT) + varint(5, pad) for field in (2, 10, 19) for pad in range(12)],
    "large numbers": [
        tag(field, VARINT) + b"\xff" * 9 + bytes([last]) for field in (2, 10, 19) for last in (1, 2, 127, 128)
    ],
    "cut short": [
        tag(field, kind) + bytes(size) for field in (1, 2, 19) for kind in (FIXED64, FIXED32) for size in range(9)
    ],
    "other wire types": [tag(field, kind) + value for field in range(1, 18) for kind, value in VALUES.items()],
}


@pytest.mark.parametrize("corner", list(CORNERS))
def test_edge_cases_of_the_wire_format_are_decoded_alike(corner: str) -> None:
    messages = [_nested(content, depth) for content in CORNERS[corner] for depth in range(8)]
    errors = {step.error for step in _assert_equal(messages)}
    assert decode.ERRORS[1] in errors
    assert None in errors or corner in {"field 0", "mismatched ends of groups"}


def test_samples_are_decoded_alike() -> None:
    assert all(step.error is None and step.rows > 100 for step in _assert_equal(SAMPLES + GPU_SAMPLES))
    steps, _ = _decode_all("walker", GPU_SAMPLES)
    assert steps.allocations.on_gpus.num_rows > 200


@BOTH_DECODERS
def test_a_bad_message_leaves_no_rows_and_does_not_affect_others(kind: str) -> None:
    good, bad = run_metadata([b"one", b"two"]), text(1, text(1, text(2, node(b"three", 1)) + text(2, b"\xff")))
    (batch, _, decoded), names = _decode_all(kind, [good, bad, good, b"\xff", good])
    assert [step.rows for step in decoded] == [2, 0, 2, 0, 2]
    assert [step.error for step in decoded] == [None, "not a RunMetadata", None, "not a RunMetadata", None]
    assert batch.column("trace").to_pylist() == [0, 0, 2, 2, 4, 4]
    assert [row["text"] for row in names.to_pylist() if row["kind"] == NODE] == [b"one", b"two"]


@BOTH_DECODERS
@pytest.mark.parametrize(
    "message", [b"", text(1, b""), text(1, text(1, text(1, b"cpu:0"))), text(2, b"a cost graph"), number(7, 5)]
)
def test_metadata_without_nodes_has_no_rows(kind: str, message: bytes) -> None:
    (batch, _, decoded), names = _decode_all(kind, [message])
    assert (batch.num_rows, decoded, names.num_rows) == (0, [DecodedStep(0, 0, 0, None)], 0)


@BOTH_DECODERS
def test_times_count_from_the_first_start(kind: str) -> None:
    (batch, _, (decoded,)), _ = _decode_all(
        kind, [_metadata(node(b"late", 2000, op_us=7), node(b"early", 1500), node(b"never", 0))]
    )
    assert decoded.base_ns == 1_500_000
    assert batch.column("start_ns").to_pylist() == [500_000, 0, -1_500_000]
    assert batch.column("op_start_ns").to_pylist()[0] == 1000
    assert batch.column("op_end_ns").to_pylist()[0] == 6000


@BOTH_DECODERS
def test_microseconds_replace_missing_nanoseconds(kind: str) -> None:
    row, decoded = _decode_one(kind, _metadata(text(1, b"a") + number(2, 5) + number(3, 1) + number(4, 3)))
    assert decoded.base_ns == 5000
    assert (row["op_start_ns"], row["op_end_ns"]) == (1000, 2000)
    assert (row["start_us_fix"], row["end_us_fix"]) == (0, 0)


@BOTH_DECODERS
def test_differences_between_microseconds_and_nanoseconds_are_stored(kind: str) -> None:
    message = text(1, b"a") + number(2, 7) + number(4, 9) + number(13, 5999) + number(15, 2)
    row, _ = _decode_one(kind, _metadata(message))
    assert (row["start_us_fix"], row["end_us_fix"]) == (2, 8)  # 7 - 5; 9 - (6001 // 1000 - 5999 // 1000)


@BOTH_DECODERS
def test_microseconds_before_1970_are_rounded_down(kind: str) -> None:
    row, decoded = _decode_one(kind, _metadata(text(1, b"a") + number(13, (1 << 64) - 1500) + number(15, 200)))
    assert (decoded.base_ns, row["start_ns"]) == (0, -1500)
    assert (row["start_us_fix"], row["end_us_fix"]) == (2, 0)


@BOTH_DECODERS
def test_numbers_that_do_not_fit_are_saturated(kind: str) -> None:
    largest, smallest = (1 << 63) - 1, 1 << 63
    times = number(2, largest) + number(14, smallest) + number(15, largest)
    memory = text(6, number(2, largest)) * 2 + text(6, number(3, smallest)) * 2
    row, decoded = _decode_one(kind, _metadata(text(1, b"a") + times + memory))
    assert decoded.base_ns == largest
    assert (row["op_start_ns"], row["op_end_ns"]) == (-smallest, largest)
    assert (row["total_bytes"], row["peak_bytes"]) == (largest, -smallest)


@BOTH_DECODERS
@pytest.mark.parametrize(
    ("name", "label", "node_text", "label_text"),
    [
        (b"a", b"", b"a", None),
        (b"a:B:c", b"", b"a", b"B:c"),
        (b"a:B", b"a = B()", b"a", b"a = B()"),
        (b":B", b"", b"", b"B"),
        (b"", b"", b"", None),
        (b"\xff:\xfe", b"", b"\xff", b"\xfe"),
    ],
)
def test_a_name_is_cut_at_its_first_colon(kind, name, label, node_text, label_text) -> None:
    interner = Interner()
    batch, _, _ = decoder(kind).run_metadata([_metadata(node(name, 1, label=label))], [0], interner)
    (row,) = batch.to_pylist()
    assert interner.table.get(0, row["node"]) == node_text
    assert (None if row["label"] == NONE_ID else interner.table.get(2, row["label"])) == label_text


@BOTH_DECODERS
def test_memory_is_summed_and_the_first_allocator_named(kind: str) -> None:
    uses = [(b"cpu", 3, 2, 1, 50), (b"GPU_0_bfc", 30, 20, 10, 70), (b"xGPU", 0, 0, 0, 90), (b"gpu", 0, 0, 0, 95)]
    memory = b"".join(
        text(6, text(1, name) + number(2, total) + number(3, peak) + number(4, live) + number(5, in_use))
        for name, total, peak, live, in_use in uses
    )
    stats = text(12, number(1, 11) + number(3, 12))
    interner = Interner()
    batch, _, _ = decoder(kind).run_metadata([_metadata(node(b"a", 1) + memory + stats)], [0], interner)
    (row,) = batch.to_pylist()
    assert (row["total_bytes"], row["peak_bytes"], row["live_bytes"], row["in_use_bytes"]) == (33, 22, 11, 90)
    assert (row["temp_bytes"], row["persistent_bytes"]) == (11, 12)
    assert interner.table.get(3, row["allocator"]) == b"cpu"


@BOTH_DECODERS
def test_outputs_are_summed_and_all_described(kind: str) -> None:
    shape = text(2, number(1, 4))
    outputs = [
        text(3, number(1, 9) + text(2, shape) + text(4, number(1, 5) + number(2, 8))),
        number(1, (1 << 64) - 7) + text(3, number(1, 3) + text(2, b"") + text(4, number(1, 7) + number(2, 2))),
        b"",
    ]
    interner = Interner()
    message = _metadata(
        node(b"a", 1) + b"".join(text(7, output) for output in outputs),
        node(b"b", 1) + text(7, number(1, 4) + text(3, b"")),
        node(b"c", 1),
    )
    batch, _, _ = decoder(kind).run_metadata([message], [0], interner)
    first, second, third = batch.to_pylist()
    assert (first["output_bytes"], second["output_bytes"]) == (15, 0)
    assert _outputs(interner, first) == [
        OpOutput(0, 9, shape, described=True, allocated=True),
        OpOutput(-7, 3, b"", described=True, allocated=True),
        OpOutput(0, 0, None, described=False, allocated=False),
    ]
    assert _outputs(interner, second) == [OpOutput(4, 0, None, described=True, allocated=False)]
    assert third["outputs"] == NONE_ID


def _allocator_memory(name: bytes, *records: tuple[int, int]) -> bytes:
    return text(
        6, b"".join(text(6, number(1, us) + number(2, size % (1 << 64))) for us, size in records) + text(1, name)
    )


@BOTH_DECODERS
def test_allocations_are_decoded_for_gpus_and_started_executions(kind: str) -> None:
    interner = Interner()
    message = _metadata(
        node(b"a", 5)
        + _allocator_memory(b"GPU_0_bfc", (7, 64), (9, -64))
        + _allocator_memory(b"cpu", (8, 1))
        + _allocator_memory(b"xGPU", (3, 2)),
        node(b"never", 0) + _allocator_memory(b"GPU_0_bfc", (1, 1)),
        _allocator_memory(b"GPU_0_bfc", (11, 32)) + node(b"b:Op", 6),
        device=b"gpu:0",
    )
    _, allocations, _ = decoder(kind).run_metadata([run_metadata([b"x"]), message], [3, 4], interner)
    rows = [(*row.values(), interner.table.get(NODE, row["node"])) for row in allocations.on_gpus.to_pylist()]
    assert rows == [
        (4, 1, 1, 7, 64, b"a"),
        (4, 1, 1, 9, -64, b"a"),
        (4, 1, 1, 3, 2, b"a"),
        (4, 3, 1, 11, 32, b"b"),
    ]
    (change,) = allocations.others.to_pylist()
    assert interner.table.get(ALLOCATOR, change.pop("allocator")) == b"cpu"
    assert {name: value for name, value in change.items() if value} == {
        "trace": 4,
        "node": 1,
        "device": 1,
        "t_us": 8,
        "bytes": 1,
    }


def _output(address: int, requested: int, allocated: int = 0) -> bytes:
    return text(7, text(3, text(4, number(1, requested) + number(2, allocated) + number(6, address))))


@BOTH_DECODERS
def test_an_allocation_has_the_address_of_the_output_with_its_bytes(kind: str) -> None:
    message = _metadata(
        node(b"a", 5)
        + _allocator_memory(b"cpu", (7, 64), (8, 64), (9, -64), (9, 64), (9, 8))
        + _allocator_memory(b"GPU_0_bfc", (7, 256))
        + _output(0xFFFF_0000_0000_0001, 64)
        + _output(0, 64)
        + _output(2, 60, 64)
        + _output(3, 200, 256),
        node(b"b", 5) + _allocator_memory(b"cpu", (7, 8)) + _output(4, 4) * 64 + _output(5, 8),
        _output(6, 8) + node(b"c", 5) + _allocator_memory(b"cpu", (7, 8)),
        device=b"gpu:0",
    )
    _, allocations, _ = decoder(kind).run_metadata([_metadata(), message], [3, 4], Interner())
    assert allocations.others["bytes"].to_pylist() == [64, 64, -64, 64, 8, 8, 8]
    assert allocations.addresses["address"].to_pylist() == [0xFFFF_0000_0000_0001, 2, 0, 0, 0, 0, 6, 3]
    assert set(allocations.addresses["trace"].to_pylist()) == {4}


@BOTH_DECODERS
def test_allocation_records_are_checked_for_all_allocators(kind: str) -> None:
    broken = text(6, b"\xff")
    for name in (b"cpu", b"GPU_0_bfc"):
        message = _metadata(node(b"a", 1) + text(6, broken + text(1, name)))
        _, _, (decoded,) = decoder(kind).run_metadata([message], [0], Interner())
        assert decoded.error == "not a RunMetadata"


@BOTH_DECODERS
def test_a_step_with_too_many_allocations_is_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = fallback.ALLOCATIONS_MAX
    if kind == "python":
        limit = 100
        monkeypatch.setattr(fallback, "ALLOCATIONS_MAX", limit)
    largest = _metadata(
        node(b"a", 1) + text(6, text(1, b"GPU") + text(6, b"") * limit),
        node(b"b", 0) + _allocator_memory(b"GPU", (1, 1)),
    )
    too_large = _metadata(node(b"a", 1) + text(6, text(1, b"GPU") + text(6, b"") * (limit + 1)))
    _, allocations, decoded = decoder(kind).run_metadata([too_large, largest, too_large, largest], range(4), Interner())
    assert [step.error for step in decoded] == [decode.ERRORS[3], None] * 2
    assert allocations.on_gpus["trace"].to_pylist() == [1] * limit + [3] * limit


@BOTH_DECODERS
@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        ([b"/job:localhost/replica:0/task:0/device:CPU:0"], 0),
        ([b"/stream:all"], 0),
        ([b"/device:GPU:0"], 1),
        ([b"cpu", b"xGpUx"], 1),
        ([b"/device:gpu:0", b"/device:GPU:0/Stream:ALL"], 3),
        ([b"gpu", b"stream:all"], 1),
        ([b"gp", b"u"], 0),
    ],
)
def test_a_step_has_the_flags_of_its_accelerators(kind: str, devices: list[bytes], expected: int) -> None:
    message = text(1, b"".join(text(1, text(1, device)) for device in devices))
    bad = message + b"\xff"
    _, _, decoded = decoder(kind).run_metadata([message, b"", bad, message], range(4), Interner())
    assert [step.accelerator for step in decoded] == [expected, 0, 0, expected]


@BOTH_DECODERS
def test_the_outputs_of_an_op_are_interned_as_one_name_and_too_much_text_refuses_the_step(kind: str) -> None:
    many_outputs = _metadata(node(b"a", 1) + text(7, b"") * 100_000)
    (_, _, (decoded,)), names = _decode_all(kind, [many_outputs])
    assert decoded.error is None
    assert [len(row["text"]) for row in names.to_pylist() if row["kind"] == OUTPUTS] == [300_000]
    (batch, _, results), _ = _decode_all(kind, [many_outputs, run_metadata([b"a"])], text_max=200_000)
    assert [step.error for step in results] == [decode.ERRORS[2], None]
    assert batch.num_rows == 1


@BOTH_DECODERS
def test_shapes_count_towards_the_limit_of_names(kind: str) -> None:
    messages = [_metadata(node(b"a", 1) + text(7, text(3, text(2, b"%d" % at)))) for at in range(50)]
    (batch, _, decoded), _ = _decode_all(kind, messages, names_max=20)
    assert [step.error for step in decoded] == [None] * 20 + [decode.ERRORS[2]] * 30
    assert batch["outputs"].to_pylist() == list(range(20))


@BOTH_DECODERS
def test_the_name_of_a_device_may_follow_its_nodes(kind: str) -> None:
    interner = Interner()
    message = text(1, text(1, text(2, node(b"a", 1)) + text(1, b"first") + text(2, node(b"b", 2)) + text(1, b"last")))
    batch, _, _ = decoder(kind).run_metadata([message], [0], interner)
    assert {interner.table.get(1, number) for number in batch.column("device").to_pylist()} == {b"last"}


@BOTH_DECODERS
def test_step_stats_in_two_fields_are_merged(kind: str) -> None:
    (batch, _, (decoded,)), _ = _decode_all(kind, [run_metadata([b"a"]) + run_metadata([b"b"])])
    assert (batch.num_rows, decoded.rows) == (2, 2)


@BOTH_DECODERS
def test_a_step_with_too_many_rows_is_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fallback.ROWS_MAX == decode.walker.ROWS_MAX
    empty = text(2, b"")
    largest = text(1, text(1, empty * fallback.ROWS_MAX))
    too_large = text(1, text(1, empty * (fallback.ROWS_MAX + 1)))
    if kind == "python":  # Python takes seconds for as many rows as the C decoder accepts
        monkeypatch.setattr(fallback, "ROWS_MAX", 100)
        largest, too_large = text(1, text(1, empty * 100)), text(1, text(1, empty * 101))
    messages = [largest, too_large, run_metadata([b"a"]), too_large + b"\xff"]
    batches, _, results = zip(*(_decode_all(kind, [message])[0] for message in messages), strict=True)
    decoded = [step for (step,) in results]
    assert [step.rows for step in decoded] == [fallback.ROWS_MAX, 0, 1, 0]
    assert decoded[1].error == decode.ERRORS[3]
    assert decoded[3].error == decode.ERRORS[1]
    assert sum(batch.num_rows for batch in batches) == fallback.ROWS_MAX + 1


def test_steps_with_too_many_rows_together_must_be_passed_in_smaller_batches() -> None:
    half = text(1, text(1, text(1, b"d") + text(2, b"") * (fallback.ROWS_MAX // 2)))
    walker, interner = decoder("walker"), Interner()
    with pytest.raises(decode.TooManyRowsError):
        walker.run_metadata([half] * 3, range(3), interner)
    assert interner.new_names().num_rows == 0
    assert walker.run_metadata([half] * 2, range(2), interner).ops.num_rows == fallback.ROWS_MAX


@BOTH_DECODERS
def test_messages_may_be_views_of_larger_bytes(kind: str) -> None:
    message = run_metadata([b"a"])
    view = memoryview(b"??" + message + b"??")[2:-2]
    batch, _, (decoded,) = decoder(kind).run_metadata([view], [3], Interner())
    assert decoded.error is None
    assert batch.column("trace").to_pylist() == [3]


@BOTH_DECODERS
def test_no_messages_give_no_rows(kind: str) -> None:
    batch, _, decoded = decoder(kind).run_metadata([], [], Interner())
    assert (batch.num_rows, batch.schema, decoded) == (0, OPS, [])


def test_the_walker_lays_out_the_columns_of_the_schema() -> None:
    for rows in (0, 1, 15, 16, 17, 1000):
        sizes = [-(-rows * kind.bit_width // 8 // 64) * 64 for kind in OPS.types]
        assert decode.walker.block_size(rows) == sum(sizes)


def test_the_walker_refuses_a_block_that_is_too_small() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        decode.walker.walk([], [], name_table(), bytearray(decode.walker.block_size(10) - 1), 10)
    with pytest.raises(ValueError, match="do not fit"):
        decode.walker.walk([], [], name_table(), bytearray(100), -1)
    with pytest.raises((ValueError, OverflowError)):
        decode.walker.block_size(1 << 40)


def test_the_walker_refuses_other_types_than_bytes() -> None:
    with pytest.raises(TypeError):
        decode.walker.count(["text"])
    with pytest.raises(TypeError):
        decode.walker.walk([b"", "text"], [0, 1], name_table(), bytearray(64), 0)
    with pytest.raises((IndexError, TypeError)):
        decode.walker.walk([b""], [], name_table(), bytearray(64), 0)


def test_rows_do_not_change_when_more_are_decoded() -> None:
    interner, walker = Interner(), decoder("walker")
    first, _, _ = walker.run_metadata([SAMPLES[0]], [0], interner)
    before = pa.RecordBatch.from_pylist(first.to_pylist(), OPS)
    walker.run_metadata(SAMPLES * 4, range(4 * len(SAMPLES)), interner)
    assert first.equals(before)


def test_a_buffer_that_is_too_small_loses_no_rows() -> None:
    walker = decoder("walker")
    small, large = _metadata(b""), _metadata(*[b""] * 5_000)  # many rows per byte
    for messages in ([small], [small, large], [SAMPLES[0]], [large, SAMPLES[0], large], [large]):
        expected = _decode_all("python", messages)
        interner = Interner()
        steps = walker.run_metadata(messages, range(len(messages)), interner)
        assert (steps, interner.new_names()) == expected


def test_the_walker_returns_none_if_the_buffer_is_too_small() -> None:
    block = bytearray(decode.walker.block_size(2))
    assert decode.walker.walk([_metadata(b"", b"", b"")], [0], name_table(), block, 2) is None
    assert decode.walker.walk([_metadata(b"", b"")], [0], name_table(), block, 2) == ([(2, 0, 0, 0)], [b""] * 7)


def test_a_build_without_the_walker_decodes_by_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "walker", None)
    assert decoder().name == "python"
    with pytest.raises(UsageError, match="no walker"):
        decoder("walker")


def test_an_unknown_decoder_is_refused() -> None:
    assert decoder().name == "walker"
    with pytest.raises(UsageError, match="unknown decoder fast"):
        decoder("fast")
