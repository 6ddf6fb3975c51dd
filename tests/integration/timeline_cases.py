"""Random graphs and steps with crowded timelines: executions overlap, wait and hold memory."""

import random
from collections.abc import Sequence
from typing import Any, Final

from integration.oracle import messages as wire
from integration.oracle.messages import mapped, message
from integration.oracle.queries import BASE

DEVICES: Final = (
    "/job:localhost/replica:0/task:0/device:CPU:0",
    "/job:localhost/replica:0/task:0/device:GPU:0",
    "/job:localhost/replica:0/task:0/device:GPU:1",
    "/job:worker/replica:0/task:1/device:CPU:0",
    "/job:cpus/replica:0/task:0/device:GPU:0",
    "/job:streams/replica:0/task:0/device:GPU:3",
    "/gpu:7",
    "/device:GPU:0/stream:all",
    "/device:GPU:1/stream:all",
    "/device:GPU:0/stream:14",
    "/device:GPU:0/memcpy",
    "/host:CPU",
)
OPS: Final = ("Conv2D", "MatMul", "Add", "Const")
SCOPES: Final = (
    "",
    "",
    "a/",
    "a/b/",
    "a/b/c/",
    "tower_0/conv/",
    'q"\\/',
    "größe/",
    "\U0001f680/",
    "tab\t\x7f/",
    "\u2028/",
)
FUNCTIONS: Final = (
    "main",
    "a_function_of_twenty",
    "eine_große_größe_groß",
    "kurz_aber_€€€€€€€€€",
    "\U0001f680" * 7,
    "ü" * 12,
)
FILES: Final = ("/home/ada/train.py", "model.py", "größe.py")
LEASTS: Final = (0, 1, 5, 40, 200)
#: Sizes that have between one and seventeen digits when they are printed in megabytes.
SIZES: Final = (0, 1, 512, 1000, 123_456, 1_000_000, 1_234_567, 99_999_950, 123_456_789_012, 3 * 10**15 + 1)


def graph(chance: random.Random, count: int) -> tuple[bytes, list[str]]:
    """Return a serialized graph and the names of its nodes."""
    names: list[str] = []
    nodes = []
    for at in range(count):
        sources = [chance.choice(names) for _ in range(chance.choice((0, 1, 1, 2, 4)) if names else 0)]
        name = f"{chance.choice(SCOPES)}{chance.choice(('n', 'n', 'N', 'ü'))}{at}"
        names.append(name)
        inputs = [chance.choice(("", "", "^")) + source for source in sources]
        nodes.append(message(wire.NODE_DEF, name=name, op=chance.choice(OPS), input=inputs))
    return message(wire.GRAPH_DEF, node=nodes, versions=b""), names


def _allocator(chance: random.Random, start: int, end: int) -> bytes:
    moments = [
        chance.choice((end, start + chance.randrange(-300, 300))) for _ in range(chance.choice((0, 1, 1, 4)))
    ] + chance.choice(([], [0], [-9]))
    records = [message(wire.RECORD, alloc_micros=at, alloc_bytes=chance.choice((*SIZES, -512))) for at in moments]
    return message(
        wire.ALLOCATOR,
        allocator_name=chance.choice(("GPU_0_bfc", "GPU_0_bfc", "gpu_host_bfc", "cpu")),
        total_bytes=chance.choice(SIZES),
        allocator_bytes_in_use=chance.choice(SIZES),
        allocation_records=records,
    )


def _execution(chance: random.Random, name: str, start: int, *, backwards: bool) -> bytes:
    began = chance.choices((start, 0, -3), (30, 1, 1))[0]
    lasted = chance.choice(
        (0, 1, 1, 3, 10, 40, chance.randrange(400), -150 if backwards and chance.random() < 0.6 else 50)
    )
    kept = message(wire.MEMORY, temp_memory_size=7, persistent_memory_size=chance.choice(SIZES))
    return message(
        wire.NODE_STATS,
        node_name=name + chance.choice(("", ":Label")),
        all_start_micros=began,
        op_end_rel_micros=lasted,
        memory=[_allocator(chance, start, start + lasted) for _ in range(chance.choice((0, 1, 1, 2)))],
        memory_stats=kept if chance.random() < 0.4 else None,
    )


def run_metadata(chance: random.Random, names: Sequence[str], base: int, *, backwards: bool) -> bytes:
    """Return the RunMetadata of a step of ``names`` that starts about ``base`` (µs).

    With ``backwards`` some executions end before they start.
    """
    devices = []
    length = chance.choice((1, 20, 300, 3000))
    for device in chance.sample(DEVICES, chance.randint(1, len(DEVICES))):
        ran = [chance.choice(names) for _ in range(chance.choice((1, len(names), 2 * len(names))))]
        stats = [_execution(chance, name, base + chance.randrange(length), backwards=backwards) for name in ran]
        devices.append(message(wire.DEVICE, device=device, node_stats=stats))
    return message(wire.RUN_METADATA, step_stats=message(wire.STEP_STATS, dev_stats=devices))


def op_log(chance: random.Random, names: Sequence[str]) -> bytes:
    """Return an op log with Python stacks of most of ``names``."""
    strings = ["none", *FILES, *FUNCTIONS]
    files, functions = range(1, 1 + len(FILES)), range(1 + len(FILES), len(strings))
    frames = [
        message(
            wire.TRACE, lineno=chance.randrange(3), file_id=chance.choice(files), function_id=chance.choice(functions)
        )
        for _ in range(8)
    ]
    entries = [
        message(
            wire.LOG_ENTRY,
            name=name,
            code_def=message(wire.CODE_DEF, traces=[chance.choice(frames) for _ in range(chance.randint(1, 4))]),
        )
        for name in names
        if name == names[0] or chance.random() < 0.9
    ]
    return message(wire.OP_LOG, log_entries=entries, id_to_string=mapped(enumerate(strings)))


def question(chance: random.Random, view: str, step: int, names: Sequence[str], *, by_numbers: bool) -> dict[str, Any]:
    """Return a question for a timeline; with ``by_numbers`` its filters may depend on counters."""
    options = dict(BASE, step=step, output="timeline:outfile=FOLDER/t", order_by=chance.choice(("name", "")))
    if chance.random() < 0.4:
        types = [chance.choice((*OPS, ".*gpu.*", ".*cpu:0", "C.*")) for _ in range(chance.randint(1, 3))]
        options["account_type_regexes"] = types
    if by_numbers:
        options["order_by"] = chance.choice(("name", "micros", "bytes", ""))
        if chance.random() < 0.3:
            options[chance.choice(("min_micros", "min_cpu_micros", "min_accelerator_micros"))] = chance.choice(LEASTS)
    if chance.random() < 0.2:
        some = [chance.choice(names) for _ in range(3)] if view != "code" else ["[gm].*"]
        options[chance.choice(("start_name_regexes", "hide_name_regexes"))] = [*some, "a.*"]
    if chance.random() < 0.2:
        options["max_depth"] = chance.choice((1, 2, 3, 5))
    options["account_displayed_op_only"] = chance.random() < 0.3
    return {"view": view, "options": options}


def case(seed: int) -> dict[str, Any]:
    """Return {graph, op_log, steps: [(number, RunMetadata)], questions}.

    In every fourth case some steps have two traces. Its questions have no filters by counters, as
    tfprof averages over the traces of a step and TensorFlow adds them up. In another fourth of the
    cases some executions end before they start. TensorFlow can draw only the graph view of these.
    """
    chance = random.Random(seed)
    twice, backwards = seed % 4 == 0, seed % 4 == 1
    wired, names = graph(chance, chance.choice((1, 3, 10, 30, 60)))
    ran = [*names, *names, "_SINK", "edge_7_n"]
    base = chance.choice((1, 90, 10**15 + 5, 1_700_000_000_000_000))
    numbers = sorted(chance.choices((0, 1, 7), k=3) if twice else chance.sample((0, 1, 2, 7), chance.randint(1, 3)))
    steps = [
        (number, run_metadata(chance, ran, base + 10**6 * at, backwards=backwards)) for at, number in enumerate(numbers)
    ]
    asked = [("graph", step) for step in [-1, *sorted(set(numbers))] for _ in range(2)]
    if not twice and not backwards:
        asked += [(view, chance.choice([-1, *numbers])) for view in ("scope", "scope", "code")]
    questions = [question(chance, view, step, names, by_numbers=not twice) for view, step in asked]
    return {"graph": wired, "op_log": op_log(chance, names), "steps": steps, "questions": questions}
