"""Unusual RunMetadata: hypothesis strategies for valid and malformed protobuf messages."""

from hypothesis import strategies as st

VARINT, FIXED64, CHUNK, GROUP, GROUP_END, FIXED32 = range(6)

EDGES = [0, 1, (1 << 31) - 1, 1 << 31, (1 << 32) + 7, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, (1 << 64) - 1000]
NUMBERS = st.one_of(
    st.integers(0, 2000),
    st.sampled_from(EDGES),
    st.integers(1_700_000_000_000_000_000, 1_700_000_000_100_000_000),
    st.integers(0, (1 << 64) - 1),
)
TEXTS = st.one_of(
    st.sampled_from([b"", b"a", b"a:b", b":", b"a:b:c", b"GPU_0_bfc", b"gpu_host_bfc", b"cpu", b"\xff\xfe"]),
    st.sampled_from(
        [b"/device:GPU:0/stream:all", b"/DEVICE:gpu:0", b"/device:GpU:1/Stream:ALL", b"stream:all", b"gp\xf5"]
    ),
    st.binary(max_size=20),
)
#: Numbers of superfluous bytes of a varint: few for most tags and lengths, up to nine for a value.
FEW_PADS = st.sampled_from([0] * 20 + [1, 2])
PADS = st.sampled_from([0] * 100 + [1, 4, 9])


def varint(value, pad=0):
    groups = []
    while True:
        groups.append(value & 0x7F)
        value >>= 7
        if not value:
            break
    groups += [0] * pad
    return bytes([group | 0x80 for group in groups[:-1]] + groups[-1:])


def tag(field, wire_type, pad=0):
    return varint(field << 3 | wire_type, pad)


def number(field):
    return st.builds(lambda value, pad: tag(field, VARINT) + varint(value, pad), NUMBERS, PADS)


def chunk(field, content):
    return st.builds(lambda data, pad: tag(field, CHUNK) + varint(len(data), pad) + data, content, FEW_PADS)


def message(*fields, min_size=1, max_size=5):
    return st.lists(st.one_of(*fields), min_size=min_size, max_size=max_size).map(b"".join)


def _group(content):
    return st.builds(
        lambda field, data, excess: tag(field, GROUP) + data + tag(field + excess, GROUP_END),
        st.integers(0, 30),
        st.lists(content, max_size=3).map(b"".join),
        st.sampled_from([0] * 50 + [1]),
    )


FIELD_NUMBERS = st.one_of(st.integers(1, 20), st.sampled_from([100, 1 << 28, (1 << 29) - 1]))
PLAIN_FIELD = st.one_of(
    st.builds(lambda f, pad, v, p: tag(f, VARINT, pad) + varint(v, p), FIELD_NUMBERS, FEW_PADS, NUMBERS, PADS),
    st.builds(lambda f, data: tag(f, FIXED64) + data, FIELD_NUMBERS, st.binary(min_size=8, max_size=8)),
    st.builds(lambda f, data: tag(f, FIXED32) + data, FIELD_NUMBERS, st.binary(min_size=4, max_size=4)),
    st.builds(
        lambda f, data, pad: tag(f, CHUNK) + varint(len(data), pad) + data,
        st.integers(13, 20),
        st.binary(max_size=5),
        PADS,
    ),
)
FIELD_ZERO = st.builds(lambda value: tag(0, VARINT) + varint(value), NUMBERS)
MALFORMED_FIELD = st.one_of(
    FIELD_ZERO, st.builds(tag, FIELD_NUMBERS, st.sampled_from([GROUP_END, 6, 7])), st.binary(min_size=1, max_size=3)
)
DEEP_GROUP_FIELD = st.integers(92, 100).map(lambda depth: tag(19, GROUP) * depth + tag(19, GROUP_END) * depth)
GROUP_FIELD = st.recursive(st.one_of(PLAIN_FIELD, FIELD_ZERO), _group, max_leaves=4).flatmap(
    lambda data: _group(st.just(data))
)
ANY_FIELD = st.sampled_from([PLAIN_FIELD] * 40 + [GROUP_FIELD] * 20 + [DEEP_GROUP_FIELD, MALFORMED_FIELD]).flatmap(
    lambda fields: fields
)


def with_any(*fields):
    """Return the fields that a message knows, three times each, and ANY_FIELD once."""
    return [*fields, *fields, *fields, ANY_FIELD]


ALLOCATION = message(*with_any(number(1), number(2)))
TENSOR = message(*with_any(number(1), chunk(2, st.binary(max_size=4)), chunk(4, ALLOCATION)))
OUTPUT = message(*with_any(number(1), chunk(3, TENSOR)), max_size=3)
RECORD = message(*with_any(number(1), number(2)), max_size=3)
MEMORY = message(*with_any(chunk(1, TEXTS), number(2), number(3), number(4), number(5), chunk(6, RECORD)), max_size=8)
MEMORY_STATS = message(*with_any(number(1), number(2), number(3)))
TIMES = st.one_of(*[number(field) for field in (2, 3, 4, 5, 9, 10, 13, 14, 15, 16, 17)])
NODE = message(
    *with_any(
        chunk(1, TEXTS), chunk(8, TEXTS), TIMES, TIMES, chunk(6, MEMORY), chunk(7, OUTPUT), chunk(12, MEMORY_STATS)
    ),
    min_size=3,
    max_size=12,
)
DEVICE = message(*with_any(chunk(1, TEXTS), chunk(2, NODE), chunk(2, NODE)))
STEP_STATS = message(*with_any(chunk(1, DEVICE)), max_size=3)
RUN_METADATA = message(*with_any(chunk(1, STEP_STATS)), max_size=3)


@st.composite
def damaged(draw, original):
    """Return ``original`` with a few bytes overwritten, inserted or removed, or its end cut off."""
    data = bytearray(original)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        match draw(st.sampled_from(["set", "insert", "remove", "cut"])):
            case "set":
                data[at : at + 1] = draw(st.binary(min_size=1, max_size=1))
            case "insert":
                data[at:at] = draw(st.binary(min_size=1, max_size=3))
            case "remove":
                del data[at : at + draw(st.integers(1, 3))]
            case _:
                del data[at:]
    return bytes(data)
