"""RunMetadata of a large model: copies of the nodes of a real step, with random times."""

import random
from pathlib import Path

from tfprof.collector.decoders.proto.run_metadata_pb2 import RunMetadata

SAMPLE = Path(__file__).parents[1] / "contract" / "data" / "tf2_software.run_metadata"
#: Spread of an op's time over the steps (sigma of the logarithm), and the number of ops that run at
#: once.
JITTER, LANES = 0.15, 4


def model_steps(count, blocks=8, seed=1):
    """Return ``count`` RunMetadata (bytes), each with ``blocks`` copies of the sample's nodes."""
    rng = random.Random(seed)
    model = _model(blocks)
    return [_step(model, rng, 1_700_000_000_000_000_000 + number * 1_000_000_000) for number in range(count)]


def execution_count(step):
    """Return the number of node executions in ``step``."""
    message = RunMetadata.FromString(step)
    return sum(len(device.node_stats) for device in message.step_stats.dev_stats)


def _model(blocks):
    sample = RunMetadata.FromString(SAMPLE.read_bytes())
    (device,) = sample.step_stats.dev_stats
    nodes = list(device.node_stats)
    model = RunMetadata()
    model_device = model.step_stats.dev_stats.add(device=device.device)
    for block in range(blocks):
        for node in nodes:
            copy = model_device.node_stats.add()
            copy.CopyFrom(node)
            prefix = b"block_%d/" % block
            copy.node_name = prefix + node.node_name
            copy.timeline_label = node.timeline_label.replace(node.node_name, copy.node_name)
    return model


def _step(model, rng, start_ns):
    """Return ``model``, serialized, with random times of one step that begins at ``start_ns``."""
    lanes = [0] * LANES
    originals = []
    for node in model.step_stats.dev_stats[0].node_stats:
        originals.append((node.op_end_rel_nanos, node.all_end_rel_nanos))
        lane = lanes.index(min(lanes))
        begin = start_ns + lanes[lane]
        duration = max(1, int(node.op_end_rel_nanos * rng.lognormvariate(0, JITTER)))
        after_op = max(0, node.all_end_rel_nanos - node.op_end_rel_nanos)
        wait = int(rng.expovariate(1 / 3_000))
        _set(node, begin, duration, int(after_op * rng.lognormvariate(0, JITTER)), wait)
        lanes[lane] += duration + after_op + int(rng.expovariate(1 / 1_000))
    data = model.SerializeToString()
    for node, (op_end, all_end) in zip(model.step_stats.dev_stats[0].node_stats, originals, strict=True):
        node.op_end_rel_nanos, node.all_end_rel_nanos = op_end, all_end
    return data


def _set(node, begin, duration, after_op, wait):
    op_start = node.op_start_rel_nanos
    node.all_start_nanos, node.all_start_micros = begin, begin // 1000
    node.scheduled_nanos, node.scheduled_micros = begin - wait, (begin - wait) // 1000
    node.op_start_rel_micros = op_start // 1000
    node.op_end_rel_nanos = op_start + duration
    node.op_end_rel_micros = (begin + op_start + duration) // 1000 - begin // 1000
    node.all_end_rel_nanos = op_start + duration + after_op
    node.all_end_rel_micros = (begin + op_start + duration + after_op) // 1000 - begin // 1000
