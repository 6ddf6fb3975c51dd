"""Builds serialized RunMetadata; the field numbers are those of step_stats.proto."""


def varint(value):
    """Return a number as a varint; a negative number is encoded as its 64 bits."""
    value %= 1 << 64
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def text(field, value):
    return varint(field << 3 | 2) + varint(len(value)) + value


def node(name, start_us, op_us=10, label=b"", nbytes=0):
    """Return the NodeExecStats of one run of node ``name``; the run takes ``op_us``."""
    stats = text(1, name) + number(2, start_us) + number(3, 1) + number(4, op_us) + number(5, op_us + 1)
    if nbytes:
        stats += text(6, text(1, b"cpu") + number(2, nbytes) + number(3, nbytes))
    stats += text(8, label) if label else b""
    return (
        stats + number(13, start_us * 1000) + number(14, 1000) + number(15, op_us * 1000) + number(16, op_us * 1000 + 1)
    )


def run_metadata(names, start_us=1_700_000_000_000_000, device=b"/job:localhost/replica:0/task:0/device:CPU:0"):
    """Return a RunMetadata in which each of ``names`` ran once, one after the other."""
    nodes = b"".join(text(2, node(name, start_us + 10 * at, nbytes=64)) for at, name in enumerate(names))
    return text(1, text(1, text(1, device) + nodes))
