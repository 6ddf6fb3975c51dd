"""Why a view shows nothing, or not everything."""

import re
from collections.abc import Sequence
from typing import Final

from ...formats import layout
from ...formats.settings import SETTINGS
from ..store.catalog import IMPORTED, RUNNING
from ..store.reader import Job
from ..summaries.events import events
from ..summaries.jobs import counts_of, words
from ..summaries.kinds import named
from ..tfviews.op import OpView
from ..tfviews.options import ALL, Options
from ..tfviews.tree import TreeView
from .engine import Answer
from .profile import Profile

#: What the kinds of spans are called that are steps.
STEPS: Final = tuple(layout.SPAN_NAMES[kind] for kind in layout.STEP_KINDS)
#: So many of a user's files are named.
_OWN_FILES: Final = 4


def untraced(job: Job) -> str:
    """Say why nothing is known of a job's ops."""
    values = words(job.info)
    steps, running = values.get("traced") or 0, job.info.state == RUNNING
    told = befell(job)
    reasons = (
        (steps and told and values.get("dropped_traces") == steps, f": all {steps} are lost: {told}"),
        (
            steps and values.get("dropped_traces") == steps,
            f": all {steps} found no room, because the collector did not keep up",
        ),
        (steps and running, f" stored yet: {steps} are on their way"),
        (told, f"{' yet' if running else ''}: {told}"),
        (
            steps and job.table("traces", ["trace"]).num_rows == steps,
            f": {steps} were recorded, and no op ran in this process: XLA or a remote server ran them",
        ),
        (steps, f": what was recorded of {steps} did not reach the store, or held no ops"),
        (running, " yet: the job has not come so far, or its tracing is off"),
        (job.info.state == IMPORTED, ": the job was imported without any"),
        (True, _never(job)),
    )
    return "no traced steps" + next(text for applies, text in reasons if applies)


_STEP_MISSED: Final = "step-missed"
_UNSEEN: Final = (
    ": TensorFlow ran nothing that is a step: no session, no batch of Keras, and no call of a function or a model;"
    " ops that run one by one outside of these are none"
)


def _never(job: Job) -> str:
    """Say why no step of a job that has ended was traced, though nothing stood in the way."""
    counts, values = counts_of(job.info), words(job.info)
    number = sum(counts.get(name, 0) for name in STEPS)
    policy = str(job.info.identity.get("trace") or SETTINGS["trace"].default)
    steps = f"its {number:,} steps" if number > 1 else "its only step"
    missed = values.get("missed") or 0
    if not number:
        runs = counts.get(layout.SPAN_NAMES[layout.PARTIAL_RUN], 0)
        return f": TensorFlow has no way to trace its {runs:,} partial runs" if runs else _UNSEEN
    if missed:
        return f": {_missed(missed)}"
    if values.get("policy_seen"):
        return f": {steps} ran before the first that an order asked for, or while tracing was off"
    if policy == "off":
        return f": {steps} were timed only, as was asked for (--trace off)"
    if policy.startswith("budget"):
        return f": {steps} ran before the first that is traced under a budget (--trace all traces every one)"
    return f": none of {steps} is among those that were asked for (--trace {policy})"


def _missed(number: int) -> str:
    return (
        f"{number:,} steps that were asked for were not traced: TensorFlow records one at a time, and another thread's was"
        f" being recorded [{_STEP_MISSED}]"
    )


def missed(job: Job) -> str | None:
    """Say how many steps could not be traced because another one was; None where none was missed."""
    number = words(job.info).get("missed")
    return _missed(number) if number else None


def befell(job: Job) -> str | None:
    """Say what befell a job first, and where more is told; None where nothing unusual did."""
    unusual = [event for event in events(job.table("events")) if not event.usual]
    if not unusual:
        return None
    more = f"; {len(unusual) - 1} more in: tfprof steps {job.info.hex}" if unusual[1:] else ""
    return unusual[0].line + more


def _untraced(jobs: Sequence[Job]) -> str:
    if len(jobs) == 1:
        return untraced(jobs[0])
    return f"no traced steps in any of {len(jobs)} jobs: tfprof jobs tells how many steps of each were traced"


def _told(pairs: Sequence[tuple[int, str]]) -> str:
    return ", ".join(f"{number} {where}" for number, where in pairs if number)


def _of_op_types(view: OpView) -> str | None:
    if not view.accounted:
        return f"none of {view.op_types} op types has a node that -account_type_regexes matches"
    if len(view.entries) == view.accounted:
        return None
    why = (
        (view.before, "before -start_name_regexes"),
        (view.hidden, "hidden by -min_…, -show_… or -hide_name_regexes"),
        (view.after, "beyond -max_depth or -trim_name_regexes"),
    )
    return f"{len(view.entries)} of {view.accounted} op types shown: {_told(why)}"


_UNREACHED: Final = (
    "nodes lie in loops that no other node takes anything from",
    "gradient nodes not accounted: there is no stack of what they are the gradients of",
)


def _of_tree(view: TreeView, name: str) -> str | None:
    if not view.nodes:
        return "No code trace information" if name == "code" else "the graph has no nodes"
    if not view.kept:
        return f"none of {view.nodes} nodes has an op type, device or label that -account_type_regexes matches"
    unreached = f"{view.unreached} {_UNREACHED[name == 'code']}" if view.unreached else ""
    if view.shown == view.kept:
        return unreached or None
    why = (
        (view.before, "outside -start_name_regexes"),
        (view.hidden, "hidden by -min_…, -show_… or -hide_name_regexes"),
        (view.below, "beyond -max_depth or -trim_name_regexes"),
    )
    what = "lines of code" if name == "code" else "scopes and nodes" if name == "scope" else "nodes"
    return f"{view.shown} of {view.kept} {what} shown: {_told(why)}" + (f"; {unreached}" if unreached else "")


def why(answer: Answer) -> str | None:
    """Return why ``answer`` shows nothing or leaves something out, None when everything is there."""
    if answer.profile is None:
        return _untraced(answer.about.jobs)
    shown = (
        _of_op_types(answer.folded) if isinstance(answer.folded, OpView) else _of_tree(answer.folded, answer.view.name)
    )
    said = (shown, _uncounted(answer.profile, answer.options))
    return "; ".join(text for text in said if text) or None


def _uncounted(profile: Profile, options: Options) -> str | None:
    if not profile.uncounted or "float_ops" not in options.select | {options.order_by}:
        return None
    return f"the operations of {profile.uncounted} nodes are not counted: shapes of theirs are not known"


def kinds_of(answer: Answer) -> list[tuple[str, int]]:
    """Return the kinds of the steps that an answer is about, each with how many of its steps were traced."""
    return [(named(kind), number) for kind, number in (answer.profile.kinds if answer.profile else {}).items()]


def left_out(answer: Answer) -> str | None:
    """Say which traced steps an answer is about, and of which other kinds there are; None where there are none."""
    return None if answer.profile is None or answer.about.parity.exact else of_kinds(answer.profile)


def of_kinds(profile: Profile) -> str | None:
    """Say of which kinds the steps of a profile are, and which it leaves out; None where it leaves out none."""
    mine, others = (
        ", ".join(f"{number} {named(kind)}" for kind, number in kinds.items())
        for kinds in (profile.kinds, profile.others)
    )
    return f"shown: {mine} steps; traced besides, and left out: {others} (--kind)" if others else None


def hint(answer: Answer) -> str | None:
    """Return how to see the user's own lines alone, None where that was asked for, or is all there is."""
    if answer.view.name != "code" or answer.profile is None or answer.options.show_name_regexes != ALL:
        return None
    from ..tfviews.own_files import own_files  # noqa: PLC0415  # for the code view alone

    files: list[str] = [name for name in own_files(answer.profile.nodes) if "," not in name]
    if not files:
        return None
    some = ",".join(f"{re.escape(name)}:.*" for name in files[:_OWN_FILES])
    more = f", and so on for {len(files) - _OWN_FILES} more files" if len(files) > _OWN_FILES else ""
    return f"your own lines alone: -max_depth 1000 -show_name_regexes '{some}'{more}"
