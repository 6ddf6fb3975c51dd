"""Random graphs and steps with crowded timelines: executions overlap, wait and hold memory."""

import random
from collections.abc import Sequence
from typing import Any, Final

from integration.oracle import messages
from integration.oracle.messages import map_entries, message
from integration.oracle.queries import BASE_OPTIONS

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
MINIMUM_VALUES: Final = (0, 1, 5, 40, 200)
#: Sizes that have between one and seventeen digits when they are printed in megabytes.
SIZES: Final = (0, 1, 512, 1000, 123_456, 1_000_000, 1_234_567, 99_999_950, 123_456_789_012, 3 * 10**15 + 1)


def graph(rng: random.Random, count: int) -> tuple[bytes, list[str]]:
    """Return a serialized graph and the names of its nodes."""
    names: list[str] = []
    nodes = []
    for index in range(count):
        sources = [rng.choice(names) for _ in range(rng.choice((0, 1, 1, 2, 4)) if names else 0)]
        name = f"{rng.choice(SCOPES)}{rng.choice(('n', 'n', 'N', 'ü'))}{index}"
        names.append(name)
        inputs = [rng.choice(("", "", "^")) + source for source in sources]
        nodes.append(message(messages.NODE_DEF, name=name, op=rng.choice(OPS), input=inputs))
    return message(messages.GRAPH_DEF, node=nodes, versions=b""), names


def _allocator(rng: random.Random, start: int, end: int) -> bytes:
    moments = [
        rng.choice((end, start + rng.randrange(-300, 300))) for _ in range(rng.choice((0, 1, 1, 4)))
    ] + rng.choice(([], [0], [-9]))
    records = [
        message(messages.RECORD, alloc_micros=micros, alloc_bytes=rng.choice((*SIZES, -512))) for micros in moments
    ]
    return message(
        messages.ALLOCATOR,
        allocator_name=rng.choice(("GPU_0_bfc", "GPU_0_bfc", "gpu_host_bfc", "cpu")),
        total_bytes=rng.choice(SIZES),
        allocator_bytes_in_use=rng.choice(SIZES),
        allocation_records=records,
    )


def _execution(rng: random.Random, name: str, start: int, *, backwards: bool) -> bytes:
    start_us = rng.choices((start, 0, -3), (30, 1, 1))[0]
    duration = rng.choice((0, 1, 1, 3, 10, 40, rng.randrange(400), -150 if backwards and rng.random() < 0.6 else 50))
    memory_stats = message(messages.MEMORY, temp_memory_size=7, persistent_memory_size=rng.choice(SIZES))
    return message(
        messages.NODE_STATS,
        node_name=name + rng.choice(("", ":Label")),
        all_start_micros=start_us,
        op_end_rel_micros=duration,
        memory=[_allocator(rng, start, start + duration) for _ in range(rng.choice((0, 1, 1, 2)))],
        memory_stats=memory_stats if rng.random() < 0.4 else None,
    )


def run_metadata(rng: random.Random, names: Sequence[str], base: int, *, backwards: bool) -> bytes:
    """Return the RunMetadata of a step of ``names`` that starts about ``base`` (µs).

    With ``backwards`` some executions end before they start.
    """
    devices = []
    length = rng.choice((1, 20, 300, 3000))
    for device in rng.sample(DEVICES, rng.randint(1, len(DEVICES))):
        executed = [rng.choice(names) for _ in range(rng.choice((1, len(names), 2 * len(names))))]
        stats = [_execution(rng, name, base + rng.randrange(length), backwards=backwards) for name in executed]
        devices.append(message(messages.DEVICE, device=device, node_stats=stats))
    return message(messages.RUN_METADATA, step_stats=message(messages.STEP_STATS, dev_stats=devices))


def op_log(rng: random.Random, names: Sequence[str]) -> bytes:
    """Return an op log with Python stacks of most of ``names``."""
    strings = ["none", *FILES, *FUNCTIONS]
    files, functions = range(1, 1 + len(FILES)), range(1 + len(FILES), len(strings))
    frames = [
        message(messages.TRACE, lineno=rng.randrange(3), file_id=rng.choice(files), function_id=rng.choice(functions))
        for _ in range(8)
    ]
    entries = [
        message(
            messages.LOG_ENTRY,
            name=name,
            code_def=message(messages.CODE_DEF, traces=[rng.choice(frames) for _ in range(rng.randint(1, 4))]),
        )
        for name in names
        if name == names[0] or rng.random() < 0.9
    ]
    return message(messages.OP_LOG, log_entries=entries, id_to_string=map_entries(enumerate(strings)))


def question(rng: random.Random, view: str, step: int, names: Sequence[str], *, by_counters: bool) -> dict[str, Any]:
    """Return a question for a timeline; with ``by_counters`` it may filter and sort by counters."""
    options = dict(BASE_OPTIONS, step=step, output="timeline:outfile=FOLDER/t", order_by=rng.choice(("name", "")))
    if rng.random() < 0.4:
        types = [rng.choice((*OPS, ".*gpu.*", ".*cpu:0", "C.*")) for _ in range(rng.randint(1, 3))]
        options["account_type_regexes"] = types
    if by_counters:
        options["order_by"] = rng.choice(("name", "micros", "bytes", ""))
        if rng.random() < 0.3:
            options[rng.choice(("min_micros", "min_cpu_micros", "min_accelerator_micros"))] = rng.choice(MINIMUM_VALUES)
    if rng.random() < 0.2:
        patterns = [rng.choice(names) for _ in range(3)] if view != "code" else ["[gm].*"]
        options[rng.choice(("start_name_regexes", "hide_name_regexes"))] = [*patterns, "a.*"]
    if rng.random() < 0.2:
        options["max_depth"] = rng.choice((1, 2, 3, 5))
    options["account_displayed_op_only"] = rng.random() < 0.3
    return {"view": view, "options": options}


def case(seed: int) -> dict[str, Any]:
    """Return {graph, op_log, steps: [(number, RunMetadata)], questions}.

    In every fourth case some steps may have several traces. Its questions neither filter nor sort
    by counters, because tfprof averages over the traces of a step and TensorFlow adds them up. In
    another fourth of the cases some executions end before they start. TensorFlow can draw only the
    graph view of these.
    """
    rng = random.Random(seed)
    has_repeats, backwards = seed % 4 == 0, seed % 4 == 1
    serialized, names = graph(rng, rng.choice((1, 3, 10, 30, 60)))
    executed = [*names, *names, "_SINK", "edge_7_n"]
    base = rng.choice((1, 90, 10**15 + 5, 1_700_000_000_000_000))
    numbers = sorted(rng.choices((0, 1, 7), k=3) if has_repeats else rng.sample((0, 1, 2, 7), rng.randint(1, 3)))
    steps = [
        (number, run_metadata(rng, executed, base + 10**6 * index, backwards=backwards))
        for index, number in enumerate(numbers)
    ]
    views_and_steps = [("graph", step) for step in [-1, *sorted(set(numbers))] for _ in range(2)]
    if not has_repeats and not backwards:
        views_and_steps += [(view, rng.choice([-1, *numbers])) for view in ("scope", "scope", "code")]
    questions = [question(rng, view, step, names, by_counters=not has_repeats) for view, step in views_and_steps]
    return {"graph": serialized, "op_log": op_log(rng, names), "steps": steps, "questions": questions}
