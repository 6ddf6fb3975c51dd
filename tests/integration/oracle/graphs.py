"""Random graphs, op logs and traced steps, as odd as the TF profiler accepts them."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from integration.oracle import messages
from integration.oracle.messages import map_entries, message

#: Op types for which TensorFlow registers no count of operations. The TF profiler gets registered
#: counts only from an op log, and the random op logs do not contain them.
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
UNKNOWN_NAMES: Final = (
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
USUAL_DEVICES: Final = (0, 1, 2, 6, 7)
SIZES: Final = (0, 0, 1, 7, 512, 999, 1000, 4096, 123_456, 10**6, 5 * 10**6, 3 * 10**9)
#: Impossible times and sizes.
WILD: Final = (-1, -(10**6), 1 << 31, 1 << 40)
#: Dimensions whose product wraps around.
WRAPPING: Final = (*WILD, 1 << 62, (1 << 63) - 1, -(1 << 63))
#: Times in microseconds; most ops of a case start shortly after one of them.
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
    "gs://bucket",
    "gs://bucket/m.py",
    "s3://",
    "<stdin>",
    "/one.py",
    "/home/.hidden",
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
    "call (gradient)",
    "日本語の関数名です",
    "α" * 9,
    "α" * 10,
)
#: The name of a node of every graph. This node has a stack if any node has one, because the TF
#: profiler's code view crashes otherwise.
PLAIN_NAME: Final = "plain"
TYPES: Final = ("_trainable_variables", "mine", "Conv2D", "größe")


class Dice(random.Random):
    """A source of random numbers. If it is ``wild``, some are impossible as sizes or times."""

    wild = False

    def maybe_wild(self, number: int, others: Sequence[int] = WILD) -> int:
        """Return ``number``, or sometimes one of ``others`` if this source is wild."""
        return self.choice(others) if self.wild and self.random() < 0.1 else number

    def size(self) -> int:
        """Return a number of bytes."""
        return self.maybe_wild(self.choice(SIZES))


@dataclass(frozen=True)
class Graph:
    """A random graph, serialized, and the names of its nodes.

    ``is_whole``: the graph has the node of each input.
    """

    serialized: bytes
    names: tuple[str, ...]
    is_whole: bool


def _names(dice: Dice, count: int) -> list[str]:
    names: list[str] = []
    for at in range(count):
        kind = dice.random()
        if kind < 0.08:
            name = dice.choice(ODD_NAMES)
        elif kind < 0.2 and names:
            scope, inner = dice.choice(("", "gradients/", "a/gradients/")), dice.choice(("", "x", "y", "b_grad/c"))
            name = f"{scope}{dice.choice(names)}_grad/{inner}"
        elif kind < 0.3 and names:
            name = dice.choice(names) + dice.choice(("/sub", "/read", ""))
        elif kind < 0.33:
            name = dice.choice(("gradients/_grad/x", "x_grad/gradients/n1", "gradients/n1", "gradients/a/b/n2_grad/z"))
        else:
            name = f"{dice.choice(SCOPES)}n{at}"
        names.append(name)
    return names


def _shape(dice: Dice) -> bytes:
    if dice.random() < 0.1:
        return messages.shape(None)
    return messages.shape(
        [dice.maybe_wild(dice.choice((-1, 0, 1, 2, 3, 8, 1024)), WRAPPING) for _ in range(dice.randrange(4))]
    )


def _attributes(dice: Dice) -> dict[str, bytes]:
    attributes = {}
    if dice.random() < 0.4:
        attributes["shape"] = message(messages.ATTR_VALUE, shape=_shape(dice))
    elif dice.random() < 0.1:
        attributes["shape"] = message(messages.ATTR_VALUE, i=5)
    if dice.random() < 0.5:
        shapes = [_shape(dice) for _ in range(dice.randrange(4))]
        attributes["_output_shapes"] = message(messages.ATTR_VALUE, list=message({"shape": 7}, shape=shapes))
    if dice.random() < 0.2:
        attributes["data_format"] = message(messages.ATTR_VALUE, s=dice.choice(("NHWC", "NCHW")))
    if dice.random() < 0.2:
        attributes["T"] = message(messages.ATTR_VALUE, type=1)
    return attributes


def _input(dice: Dice, names: Sequence[str], *, dangling: bool) -> str:
    if dangling and dice.random() < 0.1:
        return dice.choice(("nowhere", "^nowhere:1", "ran/ü"))
    return dice.choice(("", "", "", "^")) + dice.choice(names) + dice.choice(("", "", ":0", ":1", ":2"))


def source_of(text: str) -> str:
    """Return the name of the node of an input."""
    return text.split(":", maxsplit=1)[0].removeprefix("^")


def graph(dice: Dice, count: int, *, cycles: bool, dangling: bool) -> Graph:
    """Return a random graph of ``count`` nodes and the node PLAIN_NAME; some names repeat.

    With ``cycles`` an input may be any node, otherwise an earlier node. With ``dangling`` the node
    of an input may be missing.
    """
    names = [PLAIN_NAME, *_names(dice, count)]
    nodes, sources = [], set()
    for at, name in enumerate(names):
        # TensorFlow 1.15 refuses inputs with colons in their names.
        possible_sources = [name for name in (names if cycles else names[:at]) if ":" not in name]
        inputs = [
            _input(dice, possible_sources, dangling=dangling)
            for _ in range(dice.choice((0, 0, 1, 1, 2, 3)) if possible_sources else 0)
        ]
        sources |= {source_of(text) for text in inputs}
        op, attributes = dice.choice(OPS), map_entries(_attributes(dice).items())
        nodes.append(message(messages.NODE_DEF, name=name, op=op, input=inputs, attr=attributes))
    return Graph(message(messages.GRAPH_DEF, node=nodes, versions=b""), tuple(names), is_whole=sources <= set(names))


def _records(dice: Dice, base: int) -> list[bytes]:
    return [
        message(messages.RECORD, alloc_micros=base + dice.randrange(3000), alloc_bytes=dice.choice((-4096, 512, 10**6)))
        for _ in range(dice.choice((0, 0, 1, 3)))
    ]


def _allocator(dice: Dice, base: int) -> bytes:
    return message(
        messages.ALLOCATOR,
        allocator_name=dice.choice(("cpu", "GPU_0_bfc", "gpu_host_bfc", "GPU_1_bfc")),
        total_bytes=dice.size(),
        peak_bytes=dice.size(),
        live_bytes=dice.choice((dice.size(), -512, -(10**6))),
        allocator_bytes_in_use=dice.size(),
        allocation_records=_records(dice, base),
    )


def _output(dice: Dice) -> bytes:
    if dice.random() < 0.1:
        return message(messages.OUTPUT, slot=dice.randrange(3))
    sizes = message(
        messages.ALLOCATION,
        requested_bytes=dice.size(),
        allocated_bytes=dice.size(),
        ptr=dice.choice((0, 1 << 40, (1 << 64) - 16)),
    )
    description = sizes if dice.random() < 0.9 else None
    tensor = message(messages.TENSOR, dtype=1, shape=_shape(dice), allocation_description=description)
    return message(messages.OUTPUT, slot=dice.choice((0, 0, 1, 2)), tensor_description=tensor)


def _node_stats(dice: Dice, name: str, base: int) -> bytes:
    start = base + dice.randrange(3000) if dice.random() < 0.9 else dice.choice((0, 0, -5))
    micros = dice.maybe_wild(dice.choice((0, 0, 1, 2, 100, dice.randrange(5000), dice.randrange(3 * 10**6))))
    nanos = {}
    if dice.random() < 0.5:  # nanoseconds that agree with the microseconds or contradict them
        nanos["all_start_nanos"] = 1000 * start + dice.randrange(1000)
        nanos["op_start_rel_nanos"] = dice.randrange(100)
        nanos["op_end_rel_nanos"] = dice.choice((1000 * micros, dice.randrange(10**6)))
    memory = message(messages.MEMORY, temp_memory_size=dice.size(), persistent_memory_size=dice.size())
    return message(
        messages.NODE_STATS,
        node_name=name + dice.choice(("", "", ":Label", ":a:b")),
        all_start_micros=start,
        op_start_rel_micros=dice.choice((0, 1, 50)),
        op_end_rel_micros=micros,
        all_end_rel_micros=micros + 1,
        memory=[_allocator(dice, base) for _ in range(dice.choice((0, 0, 1, 2)))],
        output=[_output(dice) for _ in range(dice.choice((0, 1, 1, 2)))],
        memory_stats=memory if dice.random() < 0.3 else None,
        **nanos,
    )


def run_metadata(dice: Dice, names: Sequence[str], base: int) -> bytes:
    """Return the RunMetadata of a step; nodes run several times, on several devices, or never."""
    if dice.random() < 0.05:
        return message(messages.RUN_METADATA, cost_graph=b"")
    devices = []
    for _ in range(dice.choice((0, 1, 2, 4, 6))):
        device = DEVICES[dice.choice(USUAL_DEVICES)] if dice.random() < 0.7 else dice.choice(DEVICES)
        executed_names = [dice.choice(names) for _ in range(dice.choice((0, 1, 10, len(names), 2 * len(names))))]
        stats = [_node_stats(dice, name, base) for name in executed_names]
        devices.append(message(messages.DEVICE, device=device, node_stats=stats))
    return message(messages.RUN_METADATA, step_stats=message(messages.STEP_STATS, dev_stats=devices))


def _stacks(dice: Dice, files: Sequence[int], functions: Sequence[int], lines: Sequence[int]) -> list[bytes]:
    """Return call stacks that share outer frames; some are the beginning of another."""
    frames = [
        message(
            messages.TRACE,
            lineno=dice.choice((-1, 0, 1, 7, 120, 2**31 - 1, -(2**31))),
            func_start_line=dice.choice((-1, 0, 3)),
            file_id=dice.choice(files),
            function_id=dice.choice(functions),
            line_id=dice.choice(lines),
        )
        for _ in range(12)
    ]
    stacks: list[list[bytes]] = [[]]
    for _ in range(15):
        outer = dice.choice(stacks)
        inner = [dice.choice(frames) for _ in range(dice.choice((0, 1, 1, 2, 3, 25)))]
        stacks.append(outer[: dice.randint(0, len(outer))] + inner)
    return [message(messages.CODE_DEF, traces=stack) for stack in (*stacks, frames[:2])]


def op_log(dice: Dice, names: Sequence[str], *, with_stacks: bool) -> bytes:
    """Return an op log about some of ``names`` and about an unknown name."""
    strings = ["none", *FILES, *FUNCTIONS]
    files, functions = range(1, 1 + len(FILES)), range(1 + len(FILES), len(strings))
    stacks = _stacks(dice, files, functions, range(len(strings)))
    entries = [message(messages.LOG_ENTRY, name=PLAIN_NAME, code_def=stacks[-1])] if with_stacks else []
    for name in [*dice.sample(names, len(names) * 2 // 3), *dice.sample(names, len(names) // 5), "nobody"]:
        code = dice.choice(stacks) if with_stacks and dice.random() < 0.8 else None
        types = [dice.choice(TYPES) for _ in range(dice.choice((0, 0, 1, 2)))]
        float_ops = dice.choice((0, 0, 7, 1000, 10**7, 3 * 10**9, 1 << 40))
        entries.append(message(messages.LOG_ENTRY, name=name, float_ops=float_ops, types=types, code_def=code))
    return message(messages.OP_LOG, log_entries=entries, id_to_string=map_entries(enumerate(strings)))
