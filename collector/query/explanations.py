"""Explains why a view is empty or incomplete."""

import errno
import os
import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Final

from ...formats import layout, span_kinds, tested_versions
from ...formats.settings import SETTINGS
from ..alerts.alert import SLOWER
from ..store.catalog import IMPORTED, RUNNING, integer_of
from ..store.protocols import JobReader
from ..summaries.budget import exceeds_budget, overrun_reason
from ..summaries.events import events
from ..summaries.jobs import JobRow, channel_words, counts_of
from ..summaries.op_classes import LAUNCHES
from ..tfviews.matcher import ALL
from ..tfviews.op import OpView
from ..tfviews.options import Options
from ..tfviews.tree import TreeView
from .engine import Answer
from .job_selection import ids_of
from .profile import Profile

#: Maximum number of a user's files that are named.
_OWN_FILES_MAX: Final = 4
#: Name of a framework in the hello -> its name in messages.
_FRAMEWORKS: Final = {"tensorflow": "TensorFlow"}
#: The first number that cannot be an errno.
_ERRNO_END: Final = 4096


def untraced_reason(job: JobReader) -> str:
    """Explain why a job has no traced ops."""
    words = channel_words(job.info)
    steps, is_running = integer_of(words, "traced"), job.info.state == RUNNING
    warning = main_warnings(job)
    ring_error = integer_of(words, "ring_error")
    reasons = (
        (ring_error, f": {_ring_error(ring_error)}"),
        (steps and warning and words.get("dropped_traces") == steps, f": {_all_traced_steps(steps)} lost: {warning}"),
        (
            steps and words.get("dropped_traces") == steps,
            f": {_all_traced_steps(steps)} dropped, because the collector did not keep up",
        ),
        (steps and is_running, f" stored yet: {steps} are on their way"),
        (warning, f"{' yet' if is_running else ''}: {warning}"),
        (
            steps and job.table("traces", ["trace"]).num_rows == steps,
            f": {steps} were recorded, and no op ran in this process: XLA or a remote server ran them",
        ),
        (steps, f": {steps} were traced, but their records did not reach the store, or held no ops"),
        (is_running, " yet: no selected step has run, or tracing is off"),
        (job.info.state == IMPORTED, ": the job was imported without any"),
        (True, _never_traced(job)),
    )
    return "no traced steps" + next(text for applies, text in reasons if applies)


def _all_traced_steps(steps: int) -> str:
    """Return the subject and verb of a sentence about all traced steps."""
    return "the one traced step was" if steps == 1 else f"all {steps} traced steps were"


def _ring_error(code: int) -> str:
    """Return why the record ring of a job could not be created."""
    if code == errno.EBADF:
        return "the program closed the channel's descriptor before the first trace [channel-closed]"
    reason = os.strerror(code) if code < _ERRNO_END else f"error {code}"  # the job wrote the code: it may be any number
    return f"no memory for the record ring: {reason} [channel-memory]"


_STEP_MISSED: Final = "step-missed"
_NO_STEP: Final = (
    ": TensorFlow ran no step: no session, no batch of Keras, no call of a function or a model;"
    " single eager ops are not steps"
)


def _never_traced(job: JobReader) -> str:
    """Explain why no step of an ended job was traced.

    Either none ran, or none was selected, or none could be recorded.
    """
    counts, words = counts_of(job.info), channel_words(job.info)
    step_count = sum(counts.get(name, 0) for name in span_kinds.STEPS)
    policy = str(job.info.identity.get("trace") or SETTINGS["trace"].default)
    steps_text = f"its {step_count:,} steps" if step_count > 1 else "its only step"
    missed_count = integer_of(words, "missed")
    if not step_count:
        runs = counts.get(layout.SPAN_NAMES[layout.PARTIAL_RUN], 0)
        return f": TensorFlow cannot trace the job's {runs:,} partial runs" if runs else _NO_STEP
    if missed_count:
        return f": {_missed_text(missed_count)}"
    if words.get("policy_seen"):
        return f": {steps_text} ran before the first step that an order selected, or while tracing was off"
    if policy == "off":
        return f": {steps_text} {'were' if step_count > 1 else 'was'} only timed, as requested (--trace off)"
    if policy.startswith("budget"):
        return f": {steps_text} ran before the first step that is traced under a budget (--trace all traces every step)"
    unselected = f"none of {steps_text} was" if step_count > 1 else f"{steps_text} was not"
    return f": {unselected} selected (--trace {policy})"


def _missed_text(number: int) -> str:
    return (
        f"{number:,} selected steps were not traced: TensorFlow has one profiler session at a time, and another"
        f" thread's step or the job itself was using it [{_STEP_MISSED}]"
    )


def missed_steps_note(job: JobReader) -> str | None:
    """Return a sentence with the number of steps that could not be traced, None if there are none.

    A step that needs TensorFlow's profiler session cannot be traced while the session is in use.
    """
    number = integer_of(channel_words(job.info), "missed")
    return _missed_text(number) if number else None


def own_traces_note(job: JobReader) -> str | None:
    """Return a sentence with the number of steps that the job itself traced, None if it is 0.

    It traces a step by requesting its RunMetadata, whatever tfprof selects.
    """
    number = _own_traces(job)
    return f"the job itself traced {number:,} of its session runs: it requested their RunMetadata" if number else None


def has_programs(job: JobReader, ops: Iterable[str]) -> bool:
    """Return whether XLA compiled some of the ops that ran; ``ops``: their types."""
    return bool(LAUNCHES.intersection(ops) or job.table("programs", ["module"]).num_rows)


def programs_note(job: JobReader) -> str:
    """Return where to see what XLA compiled."""
    return f"XLA compiled some of these ops: tfprof compiled {ids_of([job])[job.info.hex]}"


def _own_traces(job: JobReader) -> int:
    from ..summaries.steps import requested_steps  # noqa: PLC0415  # few answers need it

    return requested_steps(job.table("spans", ["flags", "count"]))


def cost_note(job: JobReader, row: JobRow) -> str | None:
    """Return a note with the reason if the cost of profiling is above the budget, else None."""
    words = channel_words(job.info)
    if not exceeds_budget(row, words):  # it needs no table
        return None
    reason = overrun_reason(row, words, job.table("traces", ("kind", "key", "step")), _own_traces(job))
    return f"the cost is above the budget: {reason}" if reason else None


def main_warnings(job: JobReader) -> str | None:
    """Return the main unusual events of a job, and the command that lists more.

    These are all events that say what cannot be recorded. If there are none, it is the first
    unusual event; None if there is none.
    """
    unusual = [event for event in events(job.table("events")) if not event.is_harmless]
    shown = [event for event in unusual if event.is_incompleteness] or unusual[:1]
    if not shown:
        return None
    hidden_count = len(unusual) - len(shown)
    more = f"; {hidden_count} more in: tfprof steps {job.info.hex}" if hidden_count else ""
    return "; ".join(event.line for event in shown) + more


_UNTESTED: Final = "untested-version"


def untested_versions(job: JobReader) -> list[str]:
    """Return a sentence about each version in a job that is outside of the tested ones."""
    identity = job.info.identity
    framework = str(identity.get("framework"))
    versions = (
        ("CPython", identity.get("python"), tested_versions.PYTHON, f": {tested_versions.OTHER_PYTHON}"),
        (
            _FRAMEWORKS.get(framework),
            identity.get("framework_version"),
            tested_versions.FRAMEWORKS.get(framework),
            ": some steps, or parts of them, may not be recorded",
        ),
    )
    return [
        f"{name} {version} is {tested_versions.remark(version, tested)}{effect} [{_UNTESTED}]"
        for name, version, tested, effect in versions
        if isinstance(version, str) and tested and tested_versions.is_outside(version, tested)
    ]


def _untraced_jobs_reason(jobs: Sequence[JobReader]) -> str:
    if len(jobs) == 1:
        return untraced_reason(jobs[0])
    return f"no traced steps in any of {len(jobs)} jobs: tfprof jobs shows how many steps of each were traced"


def _counts_text(pairs: Sequence[tuple[int, str]]) -> str:
    return ", ".join(f"{number} {reason}" for number, reason in pairs if number)


def _op_view_text(view: OpView) -> str | None:
    if not view.accounted:
        return f"none of {view.op_types} op types has a node that -account_type_regexes matches"
    if len(view.entries) == view.accounted:
        return None
    counts = (
        (view.before_start, "before -start_name_regexes"),
        (view.hidden, "hidden by -min_…, -show_… or -hide_name_regexes"),
        (view.after_end, "beyond -max_depth or -trim_name_regexes"),
    )
    return f"{len(view.entries)} of {view.accounted} op types shown: {_counts_text(counts)}"


_UNREACHED: Final = (
    "nodes lie in cycles without a consumer outside",
    "gradient nodes not accounted: their forward ops have no stack",
)


def _tree_view_text(view: TreeView, name: str) -> str | None:
    if not view.nodes:
        return "No code trace information" if name == "code" else "the graph has no nodes"
    if not view.accounted_entries:
        return f"none of {view.nodes} nodes has an op type, device or label that -account_type_regexes matches"
    unreached = f"{view.unreached} {_UNREACHED[name == 'code']}" if view.unreached else ""
    if view.shown == view.accounted_entries:
        return unreached or None
    counts = (
        (view.outside_start, "outside -start_name_regexes"),
        (view.hidden, "hidden by -min_…, -show_… or -hide_name_regexes"),
        (view.cut_off, "beyond -max_depth or -trim_name_regexes"),
    )
    row_name = "lines of code" if name == "code" else "scopes and nodes" if name == "scope" else "nodes"
    return f"{view.shown} of {view.accounted_entries} {row_name} shown: {_counts_text(counts)}" + (
        f"; {unreached}" if unreached else ""
    )


def incomplete_reason(answer: Answer) -> str | None:
    """Explain why ``answer`` shows nothing or leaves something out, None if it is complete."""
    if answer.profile is None:
        return _untraced_jobs_reason(answer.selection.jobs)
    shown_text = (
        _op_view_text(answer.folded)
        if isinstance(answer.folded, OpView)
        else _tree_view_text(answer.folded, answer.view.name)
    )
    parts = (shown_text, _uncounted_text(answer.profile, answer.options))
    return "; ".join(text for text in parts if text) or None


def _uncounted_text(profile: Profile, options: Options) -> str | None:
    if not profile.uncounted or "float_ops" not in options.select | {options.order_by}:
        return None
    return f"the operations of {profile.uncounted} nodes are not counted: some of their shapes are unknown"


def slowdown(answer: Answer) -> str | None:
    """Return since when the steps of a job are slower: an answer about the whole job hides that.

    None without an alert about that, for several jobs, for selected steps or other kinds, and in
    the TF profiler's layout.
    """
    selection = answer.selection
    is_part = selection.steps is not None or selection.since_ns > 0
    if len(selection.jobs) != 1 or is_part or not selection.parity.has_own_layout:
        return None
    if SLOWER not in selection.jobs[0].table("alerts", ["slug"])["slug"].to_pylist():
        return None
    from .step_shift import shift_note  # noqa: PLC0415  # few jobs have such an alert

    return shift_note(selection.jobs[0], selection.kinds)


def left_out(answer: Answer) -> str | None:
    """Return the kinds of steps that an answer covers, and those that it leaves out, as text.

    None if it leaves out none, or if the layout is the TF profiler's.
    """
    return left_out_kinds_text(answer.profile) if answer.profile and answer.selection.parity.has_own_layout else None


def left_out_kinds_text(profile: Profile) -> str | None:
    """Return the kinds of steps that a profile covers, and those that it leaves out, as text.

    None if it leaves out none.
    """
    shown, others = (
        ", ".join(f"{number} {kind}" for kind, number in kinds.items())
        for kinds in (profile.kinds, profile.other_kinds)
    )
    return f"shown: {shown} steps; also traced, and left out: {others} (--kind)" if others else None


def hint(answer: Answer) -> str | None:
    """Return a hint at the options that show the user's own lines only.

    None if the view is not the code view, if the options select lines, or if no line is the user's.
    """
    if answer.view.name != "code" or answer.profile is None or answer.options.show_name_regexes != ALL:
        return None
    from ..tfviews.places import own_files  # noqa: PLC0415  # only the code view needs it

    files: list[str] = [name for name in own_files(answer.profile.nodes) if "," not in name]
    if not files:
        return None
    regexes = ",".join(f"{re.escape(name)}:.*" for name in files[:_OWN_FILES_MAX])
    more = f", and so on for {len(files) - _OWN_FILES_MAX} more files" if len(files) > _OWN_FILES_MAX else ""
    return f"your own lines alone: -max_depth 1000 -show_name_regexes {shlex.quote(regexes)}{more}"


_NO_OPS: Final = (
    "no op of these steps ran in this process: XLA or a remote server ran them (with --trace-level full, the server of "
    "a session sends them)"
)


def notes_of(answer: Answer, *, in_own_layout: bool) -> list[str]:
    """Return why ``answer`` is empty or incomplete, and hints.

    ``in_own_layout``: the answer is in tfprof's layout, which shows the kinds that are left out.
    """
    notes = [slowdown(answer), None if in_own_layout else left_out(answer), incomplete_reason(answer)]
    if answer.has_entries and not in_own_layout:
        notes.append(hint(answer))
    if answer.view.name == "code" and answer.options.account_displayed_op_only:
        notes.append("Note: code view ignores account_displayed_op_only")
    if in_own_layout and answer.view.name == "op" and answer.profile is not None and len(answer.selection.jobs) == 1:
        job = answer.selection.jobs[0]
        if has_programs(job, (node.op for node in answer.profile.nodes)):
            notes.append(programs_note(job))
    traced = answer.profile if answer.profile is not None and answer.profile.trace_count else None
    if in_own_layout and traced is not None and not any(node.entries for node in traced.nodes):
        notes.append(_NO_OPS)
    if in_own_layout and answer.profile is not None and answer.profile.omits_pipeline:
        notes.append("left out: the ops of the input pipeline's functions, beside the steps (--device tf.data)")
    if in_own_layout and answer.profile is not None and answer.profile.missing_stream:
        notes.append("the kernels of a GPU were not recorded: its ops show only the time of their scheduling")
    return [text for text in notes if text]
