"""Random graphs, op logs and traced steps, as odd as the TF profiler accepts them."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from integration.oracle import messages as wire
from integration.oracle.messages import mapped, message

#: Op types without a registered count of operations, which the native profiler would get only from
#: an op log.
OPS: Final = (
    "Relu",
    "Identity",
    "VariableV2",
    "Placeholder",
    "FusedBatchNorm",
    "NoOp",
    "Const",
    "Größe",
    "a/b",
    "n1",
)
SCOPES: Final = (
    "",
    "a/",
    "a/b/",
    "tower_0/",
    "tower_0/conv/",
    "deep/er/and/er/",
    "BatchNorm/",
    "ü/",
    "x//",
    "/",
    "q'\"\\/",
)
ODD_NAMES: Final = (
    "größe/ノード",
    "trailing/",
    'quo"ted',
    "back\\slash",
    "tab\tbed",
    "a b",
    "<&>",
    "new\nline",
    "^hat",
    "co:lon",
    "RecvTensor",
    "inMEMCPY",
)
#: Names of nodes that are not in a graph.
UNKNOWN: Final = (
    "RecvTensor",
    "_SOURCE",
    "_SINK",
    "MEMCPYHtoD",
    "edge_5_x",
    "_arg_images_0_0",
    "made/up",
    "xMEMCPY",
    "ran/ü",
)
DEVICES: Final = (
    "/job:localhost/replica:0/task:0/device:CPU:0",
    "/job:localhost/replica:0/task:0/device:GPU:0",
    "/job:localhost/replica:0/task:0/device:GPU:1",
    "/job:localhost/replica:0/task:0/device:XLA_GPU:0",
    "/job:worker/replica:0/task:1/cpu:0",
    "/gpu:12",
    "/device:GPU:0/stream:all",
    "/device:GPU:1/stream:all",
    "/device:GPU:0/stream:14",
    "/device:GPU:0/stream:15<MemcpyH2D>",
    "/device:GPU:0/memcpy",
    "/device:GPU:0/sync",
    "/host:CPU",
    "/DEVICE:TPU:0",
    "/ÄÖ/device:CPU:3",
    "cpu:0",
)
#: Indices of the devices of most executions.
USUAL: Final = (0, 1, 2, 6, 7)
SIZES: Final = (0, 0, 1, 7, 512, 999, 1000, 4096, 123_456, 10**6, 5 * 10**6, 3 * 10**9)
#: Impossible times and sizes, and dimensions whose product wraps around.
WILD: Final = (-1, -(10**6), 1 << 31, 1 << 40)
WRAPPING: Final = (*WILD, 1 << 62, (1 << 63) - 1, -(1 << 63))
BASES: Final = (1, 1000, 1_700_000_000_000_000)
FILES: Final = (
    "/home/u/train.py",
    "model.py",
    "/usr/lib/model.py",
    "no_suffix",
    "/a.b/c.d.py",
    "/ends/",
    "größe.py",
    "",
)
FUNCTIONS: Final = (
    "main",
    "build",
    "<module>",
    "a_name_of_twenty_byt",
    "nineteen_bytes_long",
    "a_name_of_more_than_twenty_bytes",
    "cut_in_a_letter_üüüü",
    "",
)
#: A node of every graph. If any node has a stack, it has one: otherwise the TF profiler's code view
#: crashes.
PLAIN: Final = "plain"
TYPES: Final = ("_trainable_variables", "mine", "Conv2D", "größe")


class Dice(random.Random):
    """A source of random numbers. If it is ``wild``, some of them are impossible."""

    wild = False

    def wildly(self, number: int, others: Sequence[int] = WILD) -> int:
        """Return ``number``, or one of ``others``."""
        return self.choice(others) if self.wild and self.random() < 0.1 else number

    def size(self) -> int:
        """Return a number of bytes."""
        return self.wildly(self.choice(SIZES))


@dataclass(frozen=True)
class Graph:
    """A random graph, serialized, and its nodes; ``whole`` if each input is one of them."""

    wire: bytes
    names: tuple[str, ...]
    whole: bool


def _names(chance: Dice, count: int) -> list[str]:
    names: list[str] = []
    for at in range(count):
        kind = chance.random()
        if kind < 0.08:
            name = chance.choice(ODD_NAMES)
        elif kind < 0.2 and names:
            name = (
                f"{chance.choice(('', 'gradients/', 'a/gradients/'))}{chance.choice(names)}_grad/{chance.choice('xy')}"
            )
        elif kind < 0.3 and names:
            name = chance.choice(names) + chance.choice(("/sub", "/read", ""))
        elif kind < 0.33:
            name = chance.choice(
                ("gradients/_grad/x", "x_grad/gradients/n1", "gradients/n1", "gradients/a/b/n2_grad/z")
            )
        else:
            name = f"{chance.choice(SCOPES)}n{at}"
        names.append(name)
    return names


def _shape(chance: Dice) -> bytes:
    if chance.random() < 0.1:
        return wire.shape(None)
    return wire.shape(
        [chance.wildly(chance.choice((-1, 0, 1, 2, 3, 8, 1024)), WRAPPING) for _ in range(chance.randrange(4))]
    )


def _attributes(chance: Dice) -> dict[str, bytes]:
    attributes = {}
    if chance.random() < 0.4:
        attributes["shape"] = message(wire.ATTR_VALUE, shape=_shape(chance))
    elif chance.random() < 0.1:
        attributes["shape"] = message(wire.ATTR_VALUE, i=5)
    if chance.random() < 0.5:
        shapes = [_shape(chance) for _ in range(chance.randrange(4))]
        attributes["_output_shapes"] = message(wire.ATTR_VALUE, list=message({"shape": 7}, shape=shapes))
    if chance.random() < 0.2:
        attributes["data_format"] = message(wire.ATTR_VALUE, s=chance.choice(("NHWC", "NCHW")))
    if chance.random() < 0.2:
        attributes["T"] = message(wire.ATTR_VALUE, type=1)
    return attributes


def _input(chance: Dice, names: Sequence[str], *, dangling: bool) -> str:
    if dangling and chance.random() < 0.1:
        return chance.choice(("nowhere", "^nowhere:1", "ran/ü"))
    return chance.choice(("", "", "", "^")) + chance.choice(names) + chance.choice(("", "", ":0", ":1", ":2"))


def source_of(text: str) -> str:
    """Return the name of the node of an input."""
    return text.split(":", maxsplit=1)[0].removeprefix("^")


def graph(chance: Dice, count: int, *, cycles: bool, dangling: bool) -> Graph:
    """Return a random graph of ``count`` nodes and PLAIN; some names repeat.

    With ``cycles`` an input may be any node, otherwise an earlier one. With ``dangling`` it may be
    missing.
    """
    names = [PLAIN, *_names(chance, count)]
    nodes, sources = [], set()
    for at, name in enumerate(names):
        # TensorFlow 1.15 refuses inputs with colons in their names.
        known = [name for name in (names if cycles else names[:at]) if ":" not in name]
        inputs = [
            _input(chance, known, dangling=dangling) for _ in range(chance.choice((0, 0, 1, 1, 2, 3)) if known else 0)
        ]
        sources |= {source_of(text) for text in inputs}
        op, attributes = chance.choice(OPS), mapped(_attributes(chance).items())
        nodes.append(message(wire.NODE_DEF, name=name, op=op, input=inputs, attr=attributes))
    return Graph(message(wire.GRAPH_DEF, node=nodes, versions=b""), tuple(names), whole=sources <= set(names))


def _records(chance: Dice, base: int) -> list[bytes]:
    return [
        message(wire.RECORD, alloc_micros=base + chance.randrange(3000), alloc_bytes=chance.choice((-4096, 512, 10**6)))
        for _ in range(chance.choice((0, 0, 1, 3)))
    ]


def _allocator(chance: Dice, base: int) -> bytes:
    return message(
        wire.ALLOCATOR,
        allocator_name=chance.choice(("cpu", "GPU_0_bfc", "gpu_host_bfc", "GPU_1_bfc")),
        total_bytes=chance.size(),
        peak_bytes=chance.size(),
        live_bytes=chance.choice((chance.size(), -512, -(10**6))),
        allocator_bytes_in_use=chance.size(),
        allocation_records=_records(chance, base),
    )


def _output(chance: Dice) -> bytes:
    if chance.random() < 0.1:
        return message(wire.OUTPUT, slot=chance.randrange(3))
    sizes = message(
        wire.ALLOCATION,
        requested_bytes=chance.size(),
        allocated_bytes=chance.size(),
        ptr=chance.choice((0, 1 << 40, (1 << 64) - 16)),
    )
    described = sizes if chance.random() < 0.9 else None
    tensor = message(wire.TENSOR, dtype=1, shape=_shape(chance), allocation_description=described)
    return message(wire.OUTPUT, slot=chance.choice((0, 0, 1, 2)), tensor_description=tensor)


def _node_stats(chance: Dice, name: str, base: int) -> bytes:
    start = base + chance.randrange(3000) if chance.random() < 0.9 else chance.choice((0, 0, -5))
    micros = chance.wildly(chance.choice((0, 0, 1, 2, 100, chance.randrange(5000), chance.randrange(3 * 10**6))))
    nanos = {}
    if chance.random() < 0.5:  # nanoseconds that agree with the microseconds or contradict them
        nanos["all_start_nanos"] = 1000 * start + chance.randrange(1000)
        nanos["op_end_rel_nanos"] = chance.choice((1000 * micros, chance.randrange(10**6)))
    memory = message(wire.MEMORY, temp_memory_size=chance.size(), persistent_memory_size=chance.size())
    return message(
        wire.NODE_STATS,
        node_name=name + chance.choice(("", "", ":Label", ":a:b")),
        all_start_micros=start,
        op_start_rel_micros=chance.choice((0, 1, 50)),
        op_end_rel_micros=micros,
        all_end_rel_micros=micros + 1,
        memory=[_allocator(chance, base) for _ in range(chance.choice((0, 0, 1, 2)))],
        output=[_output(chance) for _ in range(chance.choice((0, 1, 1, 2)))],
        memory_stats=memory if chance.random() < 0.3 else None,
        **nanos,
    )


def run_metadata(chance: Dice, names: Sequence[str], base: int) -> bytes:
    """Return the RunMetadata of a step; nodes run several times, on several devices, or never."""
    if chance.random() < 0.05:
        return message(wire.RUN_METADATA, cost_graph=b"")
    devices = []
    for _ in range(chance.choice((0, 1, 2, 4, 6))):
        device = DEVICES[chance.choice(USUAL)] if chance.random() < 0.7 else chance.choice(DEVICES)
        ran = [chance.choice(names) for _ in range(chance.choice((0, 1, 10, len(names), 2 * len(names))))]
        stats = [_node_stats(chance, name, base) for name in ran]
        devices.append(message(wire.DEVICE, device=device, node_stats=stats))
    return message(wire.RUN_METADATA, step_stats=message(wire.STEP_STATS, dev_stats=devices))


def _stacks(chance: Dice, files: Sequence[int], functions: Sequence[int], lines: Sequence[int]) -> list[bytes]:
    """Return call stacks that share outer frames; some are the beginning of another."""
    frames = [
        message(
            wire.TRACE,
            lineno=chance.choice((-1, 0, 7, 120)),
            func_start_line=chance.choice((-1, 3)),
            file_id=chance.choice(files),
            function_id=chance.choice(functions),
            line_id=chance.choice(lines),
        )
        for _ in range(12)
    ]
    stacks: list[list[bytes]] = [[]]
    for _ in range(15):
        outer = chance.choice(stacks)
        more = [chance.choice(frames) for _ in range(chance.choice((0, 1, 1, 2, 3)))]
        stacks.append(outer[: chance.randint(0, len(outer))] + more)
    return [message(wire.CODE_DEF, traces=stack) for stack in (*stacks, frames[:2])]


def op_log(chance: Dice, names: Sequence[str], *, with_stacks: bool) -> bytes:
    """Return an op log about some of ``names`` and about an unknown name."""
    strings = ["none", *FILES, *FUNCTIONS]
    files, functions = range(1, 1 + len(FILES)), range(1 + len(FILES), len(strings))
    stacks = _stacks(chance, files, functions, range(len(strings)))
    entries = [message(wire.LOG_ENTRY, name=PLAIN, code_def=stacks[-1])] if with_stacks else []
    for name in [*chance.sample(names, len(names) * 2 // 3), *chance.sample(names, len(names) // 5), "nobody"]:
        code = chance.choice(stacks) if with_stacks and chance.random() < 0.8 else None
        types = [chance.choice(TYPES) for _ in range(chance.choice((0, 0, 1, 2)))]
        float_ops = chance.choice((0, 0, 7, 1000, 10**7, 3 * 10**9, 1 << 40))
        entries.append(message(wire.LOG_ENTRY, name=name, float_ops=float_ops, types=types, code_def=code))
    return message(wire.OP_LOG, log_entries=entries, id_to_string=mapped(enumerate(strings)))
