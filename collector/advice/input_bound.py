"""Whether steps wait for their input, what makes it, and what to do about that stage."""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final, NamedTuple

from ..numbers import count, duration, percent
from ..summaries.activity_parts import name_and_line
from ..summaries.op_classes import INPUT, ITERATOR_DEVICE, WAITING_OPS
from ..summaries.part_times import WAITING_STAGES
from ..summaries.parts import FIRST_BATCHES, INPUT_HIGH, INPUT_MODERATE, Breakdown, input_words
from ..summaries.step_cut import covered
from ..summaries.step_records import StepTrace
from ..summaries.top import heaviest
from .between_steps import has_single_calls
from .evidence import Evidence
from .report import Report
from .starved import starvation

#: Minimum number of steps, below which the first batches dominate.
STEPS_MIN: Final = 3
#: A function of the user is the cause if it runs for this share of the time of the input.
_FUNCTION_SHARE_MIN: Final = 0.3
#: The same for a stage.
_STAGE_SHARE_MIN: Final = 0.1
_PREFETCH: Final = "Prefetch"
_MAPS: Final = ("Map", "ParallelMap")
_CACHE: Final = "Cache"
#: The ops of the pipeline's functions run at the same time if their times add up to this multiple
#: of the time in which any of them runs.
_PARALLEL_FACTOR: Final = 1.2
_OPS_NAMED_MAX: Final = 3
_OP_SHARE_MIN: Final = 0.05
#: Ops of the pipeline's functions that call the user's Python, or hand over arguments.
_OTHER_OPS: Final = frozenset({"PyFunc", "EagerPyFunc", "_Arg", "_EagerConst", "_Retval"})
#: End of the name of the whole pipeline.
_ROOT: Final = "Iterator::Root"

_PARALLEL_MAP: Final = "map(f, num_parallel_calls=tf.data.AUTOTUNE)"
_VECTORIZE: Final = "work on whole batches: batch(…) before map(…)"
#: Beginning of a stage's name -> what to do about it; the first that matches counts.
_STAGE_REMEDIES: Final = {
    "Generator": (
        "make the generator faster: it runs one element at a time; let it yield whole batches, or move its work into a"
        f" {_PARALLEL_MAP}; interleave several generators, or use processes if it is bound by Python"
    ),
    "FlatMap": "read several sources at once: interleave(f, num_parallel_calls=tf.data.AUTOTUNE) instead of flat_map",
    "ParallelMap": f"make the function of map(…) cheaper; {_VECTORIZE}",
    "MapAndBatch": f"make the function of map(…) cheaper; {_VECTORIZE}",
    "Map": f"run the function of map(…) in parallel: {_PARALLEL_MAP}; {_VECTORIZE}",
    "TFRecord": "read several files at once: interleave(…), or num_parallel_reads=tf.data.AUTOTUNE",
    "TextLine": "read several files at once: interleave(…), or num_parallel_reads=tf.data.AUTOTUNE",
    "FixedLengthRecord": "read several files at once: interleave(…), or num_parallel_reads=tf.data.AUTOTUNE",
    "Interleave": "read in parallel: interleave(…, num_parallel_calls=tf.data.AUTOTUNE)",
    "Shuffle": "use a smaller shuffle buffer, or shuffle names of files instead of their contents",
    "Batch": f"batch in parallel: batch(n, num_parallel_calls=tf.data.AUTOTUNE); {_VECTORIZE}",
}
_CACHE_REMEDY: Final = "cache() after it: every epoch does the same work again"
_REMEDY_FOR_FUNCTION: Final = (
    "make it faster: Python runs one call at a time; let it work on, or yield, whole batches; use ops of TensorFlow"
    f" with {_PARALLEL_MAP}; interleave several generators; cache() results that are the same each epoch"
)
#: Files of Keras with functions that call what the user gave to fit -> its name, and the remedy.
_ADAPTERS: Final = {
    "py_dataset_adapter.py": (
        "__getitem__ of the PyDataset",
        "make __getitem__ faster, or run it in several processes: PyDataset(workers=N, use_multiprocessing=True)",
    ),
    "generator_data_adapter.py": ("next of the generator that fit was given", _STAGE_REMEDIES["Generator"]),
}
#: Functions of map(…) in the pipelines that Keras makes of arrays; one without a name.
_FUNCTIONS_OF_KERAS: Final = frozenset({"grab_batch", "permutation", "slice_batch_indices"})
_LAMBDA: Final = "lambda"
_REMEDY_FOR_ARRAYS: Final = (
    "Keras makes each batch of the arrays that it was given: use larger batches, or a tf.data.Dataset (batch(…), cache,"
    " prefetch(tf.data.AUTOTUNE))"
)
_REMEDY_FOR_QUEUES: Final = "fill the queue with more threads, larger batches (enqueue_many), or a tf.data pipeline"
_REMEDY: Final = (
    f"see what makes the batches: {_PARALLEL_MAP}, interleave(…) for files, cache() what is the same each epoch"
)
#: Minimum share of the first batches of epochs in the input.
_FIRST_SHARE_MIN: Final = 0.5
_REMEDY_FOR_EPOCHS: Final = (
    "the input pipeline begins anew with each epoch (a shuffle buffer that fills, files that are opened): make the"
    " buffer smaller, or let one iterator serve all epochs (repeat(), and steps_per_epoch=… in fit)"
)
_PREFETCH_REMEDY: Final = "prepare batches ahead: dataset.prefetch(tf.data.AUTOTUNE) last"


class _Cause(NamedTuple):
    """What makes the input slow: text, numbers, remedy, and the user's line."""

    text: str
    numbers: Mapping[str, float | str]
    remedy: str
    line: str
    verdict: str = ""


def check(evidence: Evidence) -> Sequence[Report]:
    """Report the input's share of the time from step to step, and the stage that makes it slow."""
    parts = evidence.breakdown
    if parts is None or parts.share(INPUT) < INPUT_MODERATE:
        return []
    if parts.steps < STEPS_MIN and evidence.timed_steps:
        return []
    if has_single_calls(evidence, parts) and not parts.pipeline:  # each call sets up a dataset (overhead.py)
        return []
    share, words = parts.share(INPUT), input_words(parts.share(INPUT))
    cause = _of_first_batches(evidence, parts) or _cause(evidence, parts)
    if share < INPUT_HIGH and not cause.verdict and starvation(evidence) is not None:
        return []  # the pipeline waits for CPUs, too
    numbers: dict[str, float | str] = {"share": share, "waiting_ns_per_step": parts.ns(INPUT), **cause.numbers}
    return [
        Report(
            f"{percent(share)} of the time from step to step is spent waiting for input, {duration(parts.ns(INPUT))} a"
            f" step: the job is {words}.{cause.text}",
            numbers,
            cause.remedy,
            cause.line,
            share,
            f"{words}: steps wait for {cause.verdict or 'input'}",
        )
    ]


def has_slow_first_batches(parts: Breakdown | None) -> bool:
    """Return whether most of the waiting for input is in the first steps of epochs."""
    first_ns = parts.detail_ns(INPUT).get(FIRST_BATCHES, 0.0) if parts is not None else 0.0
    return parts is not None and first_ns >= max(1.0, _FIRST_SHARE_MIN * parts.ns(INPUT))


def _of_first_batches(evidence: Evidence, parts: Breakdown) -> _Cause | None:
    if not has_slow_first_batches(parts):
        return None
    first_ns = parts.detail_ns(INPUT)[FIRST_BATCHES]
    text = f" Of this, {duration(first_ns)} a step is in the first steps of the {count(evidence.epochs)} epochs."
    verdict = "the first batch of each epoch"
    return _Cause(text, {"first_batches_ns_per_step": first_ns}, _REMEDY_FOR_EPOCHS, "", verdict)


def _cause(evidence: Evidence, parts: Breakdown) -> _Cause:
    """Return what makes the input slow, as far as it is known."""
    stages = _stage_times([step for step in evidence.step_traces if step.duration_ns > 0])
    working = {
        name: own_ns
        for name, own_ns in stages.items()
        if own_ns >= _STAGE_SHARE_MIN * parts.ns(INPUT) and not name.endswith(WAITING_STAGES)
    }
    stage = max(working, key=lambda name: working[name], default="")
    text = (
        f" Most of the pipeline's own time is in its stage {stage}: {duration(working[stage])} a step." if stage else ""
    )
    numbers: dict[str, float | str] = {"stage": stage, "stage_ns_per_step": working[stage]} if stage else {}
    ops = _function_ops(evidence, _STAGE_SHARE_MIN * parts.ns(INPUT))
    if ops is not None:
        text += ops.text
        numbers |= ops.numbers
        # Stages that take longer than a traced step are not in its trace, but the ops in them are.
        stage = stage or ops.stage
    waiting_nodes = [node for node in evidence.nodes if node.op in WAITING_OPS]
    line = heaviest(waiting_nodes, evidence.places.location)
    has_queue = any("Dequeue" in node.op for node in waiting_nodes) and not stages
    function = next(iter(parts.pipeline), None)
    if function is not None and function.mean_ns >= _FUNCTION_SHARE_MIN * parts.ns(INPUT):
        name, function_line = name_and_line(function.name)
        remedy = next(
            (_STAGE_REMEDIES[known] for known in ("Generator", "FlatMap") if stage.startswith(known)),
            _REMEDY_FOR_FUNCTION,
        )
        if has_queue:
            remedy = f"make it faster; {_REMEDY_FOR_QUEUES}"
        if (file := function_line.rpartition(":")[0]) in _ADAPTERS:
            (name, remedy), function_line = _ADAPTERS[file], line
        text = f" The pipeline calls {name}, which runs for {duration(function.mean_ns)} a step.{text}"
        numbers |= {"function": name, "function_ns_per_step": function.mean_ns}
        return _Cause(text, numbers, remedy, function_line or line, f"the function {name} of the input pipeline")
    what = f"the stage {stage}" if "stage" in numbers else f"{numbers['op']} in the functions" if ops else ""
    names = evidence.map_functions if not stage or stage.startswith(_MAPS) else ()
    mapped = " and ".join(name for name in names if name not in _FUNCTIONS_OF_KERAS | {_LAMBDA})
    if mapped:
        text += f" Function of map(…): {mapped}."
        numbers["mapped"] = mapped
        what = f"{mapped} in map(…)" if stage else what
    remedies = _remedies(evidence, stages, stage, is_of_queue=has_queue)
    return _Cause(text, numbers, "; ".join(remedies), line, f"{what} of the input pipeline" if what else "")


def _remedies(evidence: Evidence, stages: Mapping[str, float], stage: str, *, is_of_queue: bool) -> list[str]:
    """Return what to do about ``stage``, the one of ``stages`` that works longest."""
    if is_of_queue:
        return [_REMEDY_FOR_QUEUES]
    if stage.startswith(_MAPS) and evidence.map_functions and _FUNCTIONS_OF_KERAS.issuperset(evidence.map_functions):
        return [_REMEDY_FOR_ARRAYS]
    remedies = [next((text for known, text in _STAGE_REMEDIES.items() if stage.startswith(known)), _REMEDY)]
    if evidence.epochs > 1 and stage and not any(_CACHE in name for name in stages):
        remedies.insert(0 if stage.startswith("Parallel") else 1, _CACHE_REMEDY)
    if stages and not any(name.startswith(_PREFETCH) for name in stages):
        remedies.append(_PREFETCH_REMEDY)
    return remedies


class _FunctionOps(NamedTuple):
    """The ops of the functions that the pipeline calls: text, numbers, and the stage of a map."""

    text: str
    numbers: Mapping[str, float | str]
    stage: str


def _function_ops(evidence: Evidence, ns_min: float) -> _FunctionOps | None:
    """Return the ops of the pipeline's functions, None if they take less than ``ns_min`` a step."""
    traces = [trace for trace in evidence.pipeline_traces if trace.duration_ns > 0]
    steps = sum(trace.steps for trace in traces)
    sums: Counter[str] = Counter()
    busy_ns = 0
    for trace in traces:
        executions = [each for each in trace.executions if each.op not in _OTHER_OPS]
        for each in executions:
            sums[each.op] += each.end_ns - each.start_ns
        busy_ns += covered((each.start_ns, each.end_ns) for each in executions)
    if not steps or sums.total() < ns_min * steps or not busy_ns:
        return None
    largest = [pair for pair in sums.most_common(_OPS_NAMED_MAX) if pair[1] >= _OP_SHARE_MIN * sums.total()]
    named = ", ".join(f"{op} {duration(ns / steps)}" for op, ns in largest)
    return _FunctionOps(
        f" The functions that the pipeline calls run these ops in a step: {named}.",
        {"op": sums.most_common(1)[0][0], "ops_ns_per_step": sums.total() / steps},
        "ParallelMap" if sums.total() >= _PARALLEL_FACTOR * busy_ns else "Map",
    )


def _stage_times(steps: Sequence[StepTrace]) -> dict[str, float]:
    """Return the own time of each tf.data stage in the median step, in ns.

    The root has no stage of its own.
    """
    stages: dict[str, list[int]] = {}
    for at, step in enumerate(steps):
        for execution in step.executions:
            if execution.device == ITERATOR_DEVICE and not execution.node.endswith(_ROOT):
                stage_times = stages.setdefault(execution.node.rpartition("::")[2], [0] * len(steps))
                stage_times[at] += execution.end_ns - execution.start_ns
    return {name: median(times) for name, times in stages.items()}
