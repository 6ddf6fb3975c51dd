"""The Python API: tables of jobs, and the views, messages and options of the TF profiler.

docs/api.md describes it.
"""

import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from operator import index
from typing import Any

from ..commands import settings_files
from ..commands.streams import clean, print_lines
from ..formats import runtime_dir
from .errors import NoSuchStepError, RefusedOutputError, UsageError
from .exporters.request import Request
from .exporters.table import write_exports
from .forms import advice_lines, empty_message, message
from .job_tables import JobTables
from .loader import load
from .moment import parse_moment
from .query.engine import VIEWS, QueryEngine
from .query.explanations import incomplete_reason, left_out, slowdown
from .query.job_selection import Selection, choose
from .query.listing import job_listing
from .render.wrapper_text import AFTER, BEFORE, BETWEEN, table
from .store.opening import open_reader
from .summaries.jobs import JobRow, job_rows
from .summaries.kinds import LAST_STEP, parse_kinds
from .summaries.parts import Breakdown
from .tfviews.option_values import STDOUT, TIMELINE, InvalidOutputError
from .tfviews.options import BY, TABLE, Options, from_dict, from_texts, warnings
from .tfviews.parity import COMPAT, Parity
from .tfviews.tree import ROOT
from .view_screen import ViewScreen
from .write_output import Terminal, write_output


def invalid_argument(parity: Parity, message: str) -> str:
    """Return ``message`` with the name of its status in front, as TensorFlow prints it."""
    return f"{parity.invalid_argument}: {message}"


def _print_error(text: str) -> None:
    print_lines(text.split("\n"), stream=sys.stderr)


def _option_text(value: Any) -> str:
    """Return the value of an option as on the command line."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _list(name: str, value: Any, kind: type, what: str) -> list[Any]:
    """Return a single ``value`` of type ``kind``, or the values of a list, as a list."""
    values = value if isinstance(value, Iterable) and not isinstance(value, str) else [value]
    values = list(values)
    if not all(isinstance(each, kind) for each in values):
        raise UsageError(f"{name}={value!r}: give {what}, or a list of such values")
    return values


def _steps(steps: Any) -> tuple[int, int] | None:
    if steps is None:
        return None
    try:
        first, last = map(index, steps)
    except (TypeError, ValueError):
        first, last = 1, 0
    if not 0 <= first <= last <= LAST_STEP:
        raise UsageError(f"steps={steps!r} is no range: give the first and the last step, such as (10, 20)")
    return first, last


def _moment(text: str | None) -> int:
    try:
        return 0 if text is None else parse_moment(text)[0]
    except (TypeError, ValueError):
        raise UsageError(f"since={text!r} is no time: give 30m, 2h, 3d (that long ago), 14:30, or 2026-01-31") from None


def _parity(compat: str, exact: bool) -> Parity:
    if compat not in COMPAT:
        raise UsageError(f"compat={compat!r} is none of {' '.join(COMPAT)}")
    return Parity(compat, exact)


class Profiler(JobTables):
    """One job, or several merged: their tables, and the methods of tf.compat.v1.profiler.Profiler.

    Options are dicts as ProfileOptionBuilder's `build` returns them. Each call includes what a
    running job has recorded since the last call. Errors such as a bad `output` or a step that was
    not traced are printed to standard error, and the call returns an empty message, as TensorFlow
    does. A value of the wrong type raises UsageError.
    """

    def __init__(self, selection: Selection) -> None:
        super().__init__(selection)
        self._engine = QueryEngine()

    @property
    def jobs(self) -> tuple[str, ...]:
        """The ids of the jobs."""
        return tuple(job.info.hex for job in self._selection.jobs)

    def view(self, name: str = "op", *, top: int = 0, by: str = "", **options: Any) -> ViewScreen:
        """Return the scope, graph, op or code view as the command of that name prints it.

        ``top``: how many rows to show, 0 for all. ``by``: what the op view takes each op type apart
        by, such as line or shape. ``options``: those of the command, such as
        max_depth=3, order_by="memory" or a list of columns as select. UsageError if a name or a
        value is wrong; NoSuchStepError.
        """
        if name not in tuple(VIEWS):
            raise UsageError(f"no view is called '{name}': {', '.join(VIEWS)}")
        if by and (name != "op" or by not in BY):
            raise UsageError(f"by={by!r}: the op view takes op types apart by {', '.join(BY)}")
        if not isinstance(top, int) or top < 0:
            raise UsageError(f"top={top!r}: give a number of rows, or 0 for all")
        unknown = sorted(set(options) - ({option.name for option in TABLE} - {"output"}))
        if unknown:
            raise UsageError(f"the view {name} has no option '{unknown[0]}'")
        texts = {option: _option_text(value) for option, value in options.items()}
        parsed = replace(from_texts(texts, parity=self._selection.parity), top=top, by=by)
        output = write_output(self._engine, self._selection, name, parsed, terminal=Terminal(None))
        answer = output.answer
        notes = [*output.warnings, slowdown(answer), incomplete_reason(answer)]
        kept = "" if output.in_own_layout else "\t"
        return ViewScreen(
            tuple(clean(line, kept) for line in output.lines), tuple(clean(note) for note in notes if note)
        )

    def profile_name_scope(self, options: Mapping[str, Any]) -> Any:
        """Return the scope view as a GraphNodeProto."""
        return self._profile("scope", options)

    def profile_graph(self, options: Mapping[str, Any]) -> Any:
        """Return the graph view as a GraphNodeProto.

        The message is empty if the output is a timeline of all steps.
        """
        return self._profile("graph", options)

    def profile_operations(self, options: Mapping[str, Any]) -> Any:
        """Return the op view as a MultiGraphNodeProto.

        Each op type is the only child of the one before it.
        """
        return self._profile("op", options)

    def profile_python(self, options: Mapping[str, Any]) -> Any:
        """Return the code view as a MultiGraphNodeProto."""
        return self._profile("code", options)

    def advise(self, options: Mapping[str, Any] | None = None) -> Any:
        """Print advice and return it as an AdviceProto.

        ``options`` names the checkers, None means all. The options of a checker are ignored, as in
        the TF profiler. UsageError if steps or a device were selected: advice is about whole jobs.
        """
        from .query import advising  # noqa: PLC0415  # needed for advice only

        advice = advising.advise(self._selection, options)
        print_lines(advice_lines(advice, self._selection.parity))
        return load("tfprof.collector.export.messages:advice_message")(
            [checker_advice for job in advice for checker_advice in job.advice]
        )

    def breakdown(self) -> tuple[Breakdown, ...]:
        """Return the parts of the steps of one job, one Breakdown for each selected kind.

        Without a selection, it is the one of the main kind; there is none without timed steps.
        UsageError if several jobs or a device were selected.
        """
        from .query.breakdown import breakdowns  # noqa: PLC0415  # needed for this method only

        selection = self._selection
        if len(selection.jobs) != 1 or selection.device is not None:
            raise UsageError("parts of steps are those of one job with all its devices")
        return breakdowns(selection.jobs[0], selection.kinds, selection.steps, selection.since_ns).breakdowns

    def serialize_to_string(self) -> bytes:
        """Return a serialized ProfileProto for TensorFlow's tools.

        UsageError if several jobs or a device were selected.
        """
        selection = self._selection
        if len(selection.jobs) != 1 or selection.device is not None or selection.since_ns:
            raise UsageError("a ProfileProto holds one job with all its devices and times")
        return b"".join(
            load("tfprof.collector.exporters.profile_proto:job_pieces")(
                selection.jobs[0], selection.steps, selection.parity.compat, selection.kinds
            )
        )

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        file_format: str | None = None,
        table: str | None = None,
        all_steps: bool = False,
        overwrite: bool = False,
    ) -> None:
        """Write the jobs as a file for other programs (docs/exports.md).

        ``file_format`` names the format, None means the one of the file's name. ``table``: the
        table, for formats of tables. ``all_steps``: do not limit timelines to the last steps.
        Raises UsageError, also ``no-such-format``, and TfprofError ``file-exists``, ``io``.
        """
        request = Request(self._selection, all_steps, table)
        write_exports(request, [os.fspath(path)], file_format, overwrite=overwrite)
        for text in request.notes:
            _print_error(text)

    def __repr__(self) -> str:
        return f"Profiler({', '.join(self.jobs)})"

    def _repr_html_(self) -> str:
        """Return the jobs' state and their op types with the most time, for notebooks."""
        rows = job_rows([job.info for job in self._selection.jobs], time.time_ns())
        return str(load("tfprof.collector.render.html:ops_table")(rows, self.ops().to_pylist()))

    # -- views -------------------------------------------------------------------------------------

    def _profile(self, view: str, option_dict: Mapping[str, Any]) -> Any:
        try:
            options = from_dict(option_dict)
        except InvalidOutputError as error:
            _print_error(invalid_argument(self._selection.parity, error.tf_message))
            return empty_message(view)
        for text in warnings(options):
            _print_error(text)
        if options.output.type != STDOUT:
            return self._print_answer(view, options)
        print_lines([*BEFORE, *table(options), *BETWEEN])
        result = self._print_answer(view, options)
        print_lines(AFTER)
        return result

    def _print_answer(self, view: str, options: Options) -> Any:
        try:
            output = write_output(self._engine, self._selection, view, options, for_message=True)
        except NoSuchStepError as error:
            _print_error(error.tf_message)
            return empty_message(view)
        except RefusedOutputError as error:
            _print_error(error.tf_message)
            return empty_message(view, ROOT)
        answer = output.answer
        for reason in (left_out(answer), None if answer.has_entries else incomplete_reason(answer)):
            if reason:
                _print_error(reason)
        for text in output.warnings:
            _print_error(text)
        print_lines(output.lines, kept="\t")
        if not answer.has_data:
            return empty_message(view)
        if view == "graph" and options.output.type == TIMELINE and options.step < 0:
            return empty_message(view)
        return message(answer)


class OpenStore:
    """A store of profiles, opened for reading only.

    A collector may write to it at the same time.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._store = open_reader(path)

    def jobs(self) -> list[JobRow]:
        """Return the records of all jobs, in the order in which they were opened."""
        return job_rows([job.info for job in self._store.jobs()], time.time_ns())

    def __repr__(self) -> str:
        number = len(self._store.jobs())
        return f"OpenStore({number} job{'s' * (number != 1)})"

    def _repr_html_(self) -> str:
        """Return the last jobs as a table, with the figures of `tfprof jobs`, for notebooks."""
        now_ns = time.time_ns()
        listed = [
            job.row if job.traced is None else replace(job.row, traced=job.traced)
            for job in job_listing(self._store, now_ns).jobs
        ]
        return str(load("tfprof.collector.render.html:jobs_table")(listed, now_ns))

    def job(self, selector: str, *, compat: str = COMPAT[0], exact: bool = False) -> Profiler:
        """Return the job that ``selector`` names: by the start of its id, by its name, or `last`.

        ``compat``: the version of TensorFlow, 2.21 or 1.15, whose order and texts the views follow.
        ``exact``: reproduce the TF profiler's errors and omissions, too. Raises NoSuchJobError and
        UsageError.
        """
        return self.select([selector], compat=compat, exact=exact)

    def select(
        self,
        jobs: str | Sequence[str] = (),
        *,
        host: str | Sequence[str] = (),
        pid: int | Sequence[int] = (),
        device: str | None = None,
        kind: str | Sequence[str] | None = None,
        steps: tuple[int, int] | None = None,
        since: str | None = None,
        compat: str = COMPAT[0],
        exact: bool = False,
    ) -> Profiler:
        """Return several jobs, merged by the names of their nodes.

        Without ``jobs``, return all jobs of ``host`` and ``pid``. Without any of the three, return
        all jobs of the store. ``kind``: the kinds of traced steps, spelled as for `--kind`; None
        means the main kind of the jobs. ``device``: only ops on devices with this text in their
        names (`*` and `?` are wildcards). ``steps``: only the traced steps from the first to the
        last number. ``since``: only steps that began later than this, such as 5m (that long ago),
        14:30 or 2026-01-31. Raises NoSuchJobError and UsageError.
        """
        parity = _parity(compat, exact)
        if not isinstance(device, str | None):
            raise UsageError(f"device={device!r}: give a part of the names of devices, such as 'GPU:0'")
        selectors = _list("jobs", jobs, str, "the start of an id, a name or 'last'")
        hosts, pids = _list("host", host, str, "the name of a host"), _list("pid", pid, Integral, "a process id")
        chosen_jobs = choose(self._store, selectors, hosts, pids) if selectors or hosts or pids else self._store.jobs()
        kinds = None if kind is None else parse_kinds(",".join(_list("kind", kind, str, "the name of a kind")))
        return Profiler(Selection(tuple(chosen_jobs), _steps(steps), device, parity, kinds, _moment(since)))


def open_store(path: str | os.PathLike[str] | None = None) -> OpenStore:
    """Open the store at ``path``; the default is the store of the commands.

    That is $TFPROF_STORE, else the store in a settings file, else $XDG_STATE_HOME/tfprof, else
    ~/.local/state/tfprof. Raises StoreError if there is no store, SettingsFileError or FolderError
    if the default path cannot be determined.
    """
    return OpenStore(
        runtime_dir.require_absolute(settings_files.store_without_side_effects()) if path is None else path
    )
