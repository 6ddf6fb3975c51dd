"""Classifies the ops of a step: what the step does while they run, and the phase of training."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from ..tfviews.nodes import STREAM

if TYPE_CHECKING:  # views need these classes, but no steps
    from .step_records import OpExecution
from collections.abc import Sequence

from ..tfviews.nodes import Node

#: Ops that only wait for the next batch.
WAITING_OPS: Final = frozenset(
    {
        "DatasetToSingleElement",
        "IteratorGetNext",
        "IteratorGetNextAsOptional",
        "IteratorGetNextSync",
        "MultiDeviceIteratorGetNextFromShard",
        "QueueDequeue",
        "QueueDequeueMany",
        "QueueDequeueManyV2",
        "QueueDequeueUpTo",
        "QueueDequeueUpToV2",
        "QueueDequeueV2",
        "ReaderRead",
        "ReaderReadUpTo",
        "ReaderReadUpToV2",
        "ReaderReadV2",
    }
)
#: The parts of a step that executions fill; `part_names` has the others.
INPUT, DEVICE, COPIES, WAITING, PYTHON, LAUNCH = "input", "device", "copies", "waiting", "python", "launch"
#: Phases of a training step on the device.
FORWARD, BACKWARD, OPTIMIZER = "forward", "backward", "optimizer"

#: Ops that run the user's Python.
PYTHON_OPS: Final = frozenset({"EagerPyFunc", "PyFunc", "PyFuncStateless"})
#: Types of ops that run a whole program of XLA (decoders.session_ops).
LAUNCHES: Final = frozenset({"XlaLaunch", "XlaLaunchV2", "_XlaRun"})
#: Device of tf.data iterators, in lower case (store.devices.ITERATOR_DEVICE).
ITERATOR_DEVICE: Final = "/host:cpu/tf.data"
#: Device of the ops of functions that tf.data calls, in lower case (store.devices.PIPELINE_DEVICE).
PIPELINE_DEVICE: Final = "/tf.data/device:cpu:0"

_COLLECTIVE: Final = re.compile(r"_?(?:Nccl|Collective|Horovod)|.*(?:AllReduce|AllGather)")
_RECEIVE: Final = frozenset({"RecvTensor", "_HostRecv", "_HostSend", "_Recv", "_Send"})
_LOCKS: Final = frozenset(
    {
        "AccumulatorTakeGradient",
        "BarrierTakeMany",
        "MutexLock",
        "ResourceAccumulatorTakeGradient",
        "SparseAccumulatorTakeGradient",
    }
)
_COPY: Final = re.compile(r"memcpy\W?([hdp])(?:2|to)([hdp])", re.IGNORECASE)
#: Directions of copies, as text.
DIRECTIONS: Final = {"hd": "host to device", "dh": "device to host", "dd": "within a device", "pp": "device to device"}
_GRADIENT: Final = re.compile(r"(?:^|/)gradient(?:s|_tape)(?:_\d+)?/")
_APPLIES: Final = re.compile(r"(?:Resource)?(?:Sparse)?Apply[A-Z]")
#: Files and functions of TensorFlow and Keras whose ops are those of an optimizer.
_OPTIMIZER_FILE: Final = re.compile(r".*/(?:optimizers?/[^/]*|optimizer(?:_v\d)?|optimizers)\.py")
_OPTIMIZER_FUNCTIONS: Final = frozenset(
    {"_apply_dense", "_distributed_apply", "_resource_apply_dense", "apply", "apply_gradients", "update_step"}
)


class OpClass(NamedTuple):
    """What a step does while an execution runs: the part of the step, and a finer name, or ''."""

    part: str
    detail: str = ""


_CLASSES: Final = {
    **dict.fromkeys(WAITING_OPS, OpClass(INPUT)),
    **{op: OpClass(PYTHON, f"{op} in the graph") for op in PYTHON_OPS},
    **dict.fromkeys(_RECEIVE, OpClass(WAITING, "send and receive")),
    **dict.fromkeys(_LOCKS, OpClass(WAITING, "locks")),
}
#: If executions of several classes overlap, the class that comes first in this list gets the time.
PRIORITY: Final = (DEVICE, COPIES, INPUT, PYTHON, WAITING, LAUNCH)


def copy_direction(execution: "OpExecution") -> str | None:
    """Return the direction of a copy (hd, dh, dd or pp), '' if unknown.

    None if the execution is not a copy.
    """
    texts = execution.device, execution.node, execution.op
    if "memcpy" not in "\n".join(texts).lower():
        return None
    match = next(filter(None, map(_COPY.search, texts)), None)
    if match:
        return (match[1] + match[2]).lower()
    return "" if "memcpy" in execution.device or "memcpy" in execution.node.lower() else None


@lru_cache(maxsize=4096)
def _is_collective(op: str) -> bool:
    return _COLLECTIVE.match(op) is not None


def class_of(execution: "OpExecution", phases: Mapping[str, str]) -> OpClass:
    """Return the class of an execution that is not one of tf.data.

    ``phases``: the phase of training of each node that has one.
    """
    direction = copy_direction(execution)
    if direction is not None:
        return OpClass(COPIES, DIRECTIONS.get(direction, ""))
    known = _CLASSES.get(execution.op)
    if known is not None:
        return known
    if _is_collective(execution.op):
        return OpClass(WAITING, "collectives")
    if "gpu" in execution.device and STREAM not in execution.device:
        return OpClass(LAUNCH, "starting kernels")
    return OpClass(DEVICE, phases.get(execution.node, ""))


def phases(nodes: Sequence[Node]) -> dict[str, str]:
    """Return the phase of training of each node; an empty result if no node computes a gradient.

    Gradients are known by their scope, the ops of optimizers by their type and by the functions of
    TensorFlow or Keras that created them. All other ops are forward.
    """
    known = {node.name: _phase(node) for node in nodes}
    if BACKWARD not in known.values():
        return {}
    return known


def _phase(node: Node) -> str:
    if _APPLIES.match(node.op) or any(
        frame.function in _OPTIMIZER_FUNCTIONS and _OPTIMIZER_FILE.fullmatch(frame.file)
        for frame in node.facts.stack or ()
    ):
        return OPTIMIZER
    return BACKWARD if _GRADIENT.search(node.name) else FORWARD
