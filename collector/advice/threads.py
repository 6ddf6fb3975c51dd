"""Whether the job uses too few threads, or too many."""

from collections.abc import Sequence
from typing import Final

from ..numbers import cores, duration, percent
from ..summaries.op_classes import DEVICE
from ..summaries.step_records import ThreadUse
from .cpu_use import BUSY_SHARE_MIN, OTHERS_SHARE_MIN, CpuUse, process_use
from .evidence import Evidence
from .report import Report

#: A job uses one CPU if it uses at most this many while ops run, and at least this many others are
#: idle all the time.
_ONE_CPU: Final = 1.15
_IDLE_MIN: Final = 0.6
#: On a busy host: the mean number of threads that run or wait for a CPU, while ops run, is at most
#: this if each op has one thread. Two threads for half of the ops' time make 1.5.
_ONE_THREAD: Final = 1.25
#: Minimum wait of this thread that is said, in CPUs.
_WAITS_MIN: Final = 0.1
#: Minimum share of ops in the time from step to step, and minimum time of an execution (ns), that
#: more threads shorten.
DEVICE_SHARE_MIN: Final = 0.5
_LARGE_NS: Final = 500_000
#: Minimum sum of the waits of the job's threads for a CPU, in CPUs of the host.
QUEUED_MIN: Final = 2.0
#: The same beside other processes that use CPUs. TensorFlow has two pools with a thread for each
#: CPU, which wait longer then.
QUEUED_BESIDE_OTHERS_MIN: Final = 4.0
#: Share of the time that waits of the job's threads for each other cost at most, twice.
_TOO_MANY_MAX: Final = 0.7
#: Op types whose kernels divide their work among threads.
_PARALLEL: Final = ("BatchMatMul", "Conv2D", "Conv3D", "DepthwiseConv", "Einsum", "MatMul", "_Fused")


def check(evidence: Evidence) -> Sequence[Report]:
    """Report a job with one busy thread of many, and one with too many threads."""
    use, parts = process_use(evidence), evidence.breakdown
    if use is None or parts is None or parts.share(DEVICE) < DEVICE_SHARE_MIN:
        return []
    return _one_thread(evidence, use, parts.share(DEVICE)) or _too_many(evidence, use)


def _one_thread(evidence: Evidence, use: CpuUse, device_share: float) -> list[Report]:
    """Judge by the use of CPUs beside idle ones, or by the threads that run or wait for a CPU.

    The load of the host does not change the number of these threads.
    """
    thread = evidence.thread_use
    queued = thread.queued_all if thread is not None else 0.0
    is_idle = use.cpus - use.own_cores - use.competing_cores >= _IDLE_MIN
    is_one_cpu = is_idle and _cores_of_ops(thread, use, device_share) <= _ONE_CPU
    is_one_thread = thread is not None and thread.is_exact and use.own_cores + queued <= _ONE_THREAD * device_share
    executions = [execution for step in evidence.step_traces for execution in step.executions]
    large = [
        execution
        for execution in executions
        if execution.op.startswith(_PARALLEL) and execution.end_ns - execution.start_ns >= _LARGE_NS
    ]
    if not (is_one_cpu or is_one_thread) or use.cpus < 2 or not large:
        return []
    large_ns = sum(execution.end_ns - execution.start_ns for execution in large)
    share = large_ns / max(1, sum(execution.end_ns - execution.start_ns for execution in executions))
    if share < DEVICE_SHARE_MIN:
        return []
    waits = f" and waits for {cores(queued)}" if queued >= _WAITS_MIN else ""
    return [
        Report(
            f"one thread is busy, of {use.cpus} CPUs: the job uses {cores(use.job_cores)}{waits}, others use"
            f" {cores(use.other_cores)}. {percent(share)} of the time of its ops is in large ones, such as"
            f" {large[0].op}, which could use all CPUs.",
            {"queued": queued, "share": share, **use._asdict()},
            "let ops use more threads: tf.config.threading.set_intra_op_parallelism_threads(0) (ConfigProto in"
            " TensorFlow 1), no OMP_NUM_THREADS=1, and no taskset to one CPU",
            saving=device_share * share * (1 - 1 / use.cpus),
            verdict="one thread of many is busy",
        )
    ]


def _cores_of_ops(thread: ThreadUse | None, use: CpuUse, device_share: float) -> float:
    """Return the least number of CPUs that the job uses while ops run.

    While no op runs, only the thread of the steps works.
    """
    elsewhere = min(thread.cpu if thread is not None else 1.0, 1 - device_share)
    return (use.own_cores - elsewhere) / device_share


def _too_many(evidence: Evidence, use: CpuUse) -> list[Report]:
    thread = evidence.thread_use
    is_alone = use.competing_cores < OTHERS_SHARE_MIN * use.cpus and use.own_cores >= BUSY_SHARE_MIN * use.cpus
    queued_min = (QUEUED_MIN if is_alone else QUEUED_BESIDE_OTHERS_MIN) * use.cpus
    if thread is None or not thread.is_exact or thread.queued_all < queued_min:
        return []
    return [
        Report(
            f"the job has more busy threads than the host has CPUs: each second its threads wait"
            f" {duration(thread.queued_all * 1e9)} for one of {use.cpus} CPUs, and other processes use"
            f" {cores(use.other_cores)}.",
            {"queued": thread.queued_all, **use._asdict()},
            "use fewer threads: set_inter_op_parallelism_threads, set_intra_op_parallelism_threads, OMP_NUM_THREADS,"
            " the num_parallel_calls and private_threadpool_size of the pipeline",
            saving=min(_TOO_MANY_MAX, 1 - 1 / (1 + thread.queued_all / use.cpus)) / 2,
            verdict="the job's own threads compete for the CPUs",
        )
    ]
