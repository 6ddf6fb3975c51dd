"""One sentence on whether a job had the CPUs that it needed."""

from ..numbers import cores, percent
from .cpu_use import CpuUse, cpu_use
from .evidence import Evidence
from .starved import starvation


def host_sentence(evidence: Evidence) -> str | None:
    """Return what other processes used while the job's steps ran, None if it is unknown."""
    others, found = use_sentence(cpu_use(evidence.load, evidence.timed_steps)), starvation(evidence)
    return others if found is None else f"{others}; it waited {percent(found.share)} of the time for one"


def use_sentence(use: CpuUse | None) -> str | None:
    """Return what other processes and the job used, None if it is unknown."""
    if use is None:
        return None
    return f"while steps ran, others used {cores(use.other_cores)} of {use.cpus} cores, the job {cores(use.own_cores)}"
