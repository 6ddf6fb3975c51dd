"""Why a view shows nothing, or not everything."""

import re
from collections.abc import Sequence
from typing import Final

from tfprof.collector.answers.desk import Answer
from tfprof.collector.answers.profile import Profile
from tfprof.collector.loader import load
from tfprof.collector.render import events_text
from tfprof.collector.store.catalog import IMPORTED, RUNNING
from tfprof.collector.store.reader import Job
from tfprof.collector.views.events import events
from tfprof.collector.views.jobs import words
from tfprof.collector.views.op import OpView
from tfprof.collector.views.options import ALL, Options
from tfprof.collector.views.tree import TreeView

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
        (steps, f": what was recorded of {steps} did not reach the store, or held no ops"),
        (running, " yet: the job has not come so far, or its tracing is off"),
        (job.info.state == IMPORTED, ": the job was imported without any"),
        (True, ": the job ended before its first one, or its tracing was off (tfprof-run --trace)"),
    )
    return "no traced steps" + next(text for applies, text in reasons if applies)


def befell(job: Job) -> str | None:
    """Say what befell a job first, and where more is told; None where nothing unusual did."""
    unusual = [event for event in events(job.table("events")) if not event.usual]
    if not unusual:
        return None
    more = f"; {len(unusual) - 1} more in: tfprof steps {job.info.hex}" if unusual[1:] else ""
    return events_text.line(unusual[0]) + more


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


def hint(answer: Answer) -> str | None:
    """Return how to see the user's own lines alone, None where that was asked for, or is all there is."""
    if answer.view.name != "code" or answer.profile is None or answer.options.show_name_regexes != ALL:
        return None
    own_files = load("tfprof.collector.views.own_files:own_files")
    files: list[str] = [name for name in own_files(answer.profile.nodes) if "," not in name]
    if not files:
        return None
    some = ",".join(f"{re.escape(name)}:.*" for name in files[:_OWN_FILES])
    more = f", and so on for {len(files) - _OWN_FILES} more files" if len(files) > _OWN_FILES else ""
    return f"your own lines alone: -max_depth 1000 -show_name_regexes '{some}'{more}"
