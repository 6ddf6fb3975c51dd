"""What a checker needs and a job does not have, as text; empty if it has everything."""

from typing import Final

from .between_steps import STEPS_MIN as PAUSES_MIN
from .between_steps import has_enough_steps
from .evidence import Evidence
from .input_bound import STEPS_MIN as INPUT_MIN
from .main_call import steps_of_main_call
from .memory import SAMPLES_MIN
from .retracing import RUNS_MIN
from .uneven import STEPS_MIN

_NO_TRACE: Final = "no traced step"


def of_traces(evidence: Evidence) -> str:
    """Return what a checker of ops lacks."""
    return "" if evidence.has_steps else _NO_TRACE


def of_executions(evidence: Evidence) -> str:
    """Return what a checker of single executions lacks."""
    return "" if evidence.step_traces else _NO_TRACE


def of_input(evidence: Evidence) -> str:
    """Return what the checker of the input lacks."""
    parts = evidence.breakdown
    is_short = parts is not None and parts.steps < INPUT_MIN and evidence.timed_steps
    return f"fewer than {INPUT_MIN} steps" if is_short else of_executions(evidence)


def of_gpus(evidence: Evidence) -> str:
    """Return what a checker of GPUs lacks."""
    if not evidence.has_steps:
        return _NO_TRACE
    return "" if any("gpu" in device for node in evidence.nodes for device in node.devices) else "no GPU"


def of_parts(evidence: Evidence) -> str:
    """Return what a checker of the parts of a step lacks."""
    parts = evidence.breakdown
    if parts is None or not parts.traced:
        return _NO_TRACE
    return "" if has_enough_steps(parts) else f"fewer than {PAUSES_MIN} steps"


def of_replicas(evidence: Evidence) -> str:
    """Return what a checker of replicas lacks."""
    if not evidence.step_traces:
        return _NO_TRACE
    devices = {device for node in evidence.nodes for device in node.devices}
    return "" if len(devices) > 1 else "a single device"


def of_pauses(evidence: Evidence) -> str:
    """Return what a checker of pauses between steps lacks."""
    parts = evidence.breakdown
    return "" if parts is not None and has_enough_steps(parts) else f"fewer than {PAUSES_MIN} steps"


def of_memory(evidence: Evidence) -> str:
    """Return what a checker of memory lacks."""
    return "" if len(evidence.memory_samples) >= SAMPLES_MIN else f"fewer than {SAMPLES_MIN} s of steps"


def of_graphs(evidence: Evidence) -> str:
    """Return what a checker of graphs lacks."""
    return "" if evidence.new_nodes or len(evidence.timed_steps) >= 2 * RUNS_MIN else "too few steps"


def of_steps(evidence: Evidence) -> str:
    """Return what a checker of step times lacks."""
    steps = steps_of_main_call([group for group in evidence.timed_steps if group.is_normal])
    is_enough = sum(group.steps for group in steps) >= STEPS_MIN
    return "" if is_enough else f"fewer than {STEPS_MIN} untraced steps of one call"


def of_host(evidence: Evidence) -> str:
    """Return what a checker of the host's load lacks."""
    return of_executions(evidence) if evidence.load else "no samples of the host"
