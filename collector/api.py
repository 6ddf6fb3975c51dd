"""The Python API: the views, messages and options of the TF profiler, without TensorFlow.

docs/api.md describes it.
"""

import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..commands import settings_files
from ..formats import runtime_dir
from .errors import NoSuchStepError, RefusedOutputError, UsageError
from .forms import advice_lines, empty_message, message
from .loader import load
from .query.engine import QueryEngine, Selection
from .query.explanations import incomplete_reason, left_out
from .query.selection import choose
from .render.wrapper_text import AFTER, BEFORE, BETWEEN, table
from .store.reader import open_reader
from .summaries.jobs import JobRow, job_rows
from .summaries.kinds import parse_kinds
from .tfviews.options import Options, from_dict, warnings
from .tfviews.output_option import STDOUT, TIMELINE, InvalidOutputError
from .tfviews.parity import COMPAT, Parity
from .tfviews.tree import ROOT
from .write_output import write_output


def invalid_argument(parity: Parity, message: str) -> str:
    """Return ``message`` with the name of its status in front, as TensorFlow prints it."""
    return f"{parity.invalid_argument}: {message}"


def not_found(error: NoSuchStepError) -> str:
    """Return TensorFlow's message about a step that was not traced."""
    message = str(error.args[0]).partition(". ")[0]
    return f"{message}.\nAvailable steps: {''.join(f'{step} ' for step in error.steps)}"


def _print_error(text: str) -> None:
    print(text, file=sys.stderr)


def _print(lines: Iterable[str]) -> None:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    for line in lines:
        print(line.encode(encoding, "replace").decode(encoding))


def _parity(compat: str, exact: bool) -> Parity:
    if compat not in COMPAT:
        raise UsageError(f"compat={compat!r} is none of {' '.join(COMPAT)}")
    return Parity(compat, exact)


class Profiler:
    """One job, or several merged, with the reporting methods of tf.compat.v1.profiler.Profiler.

    Options are dicts as ProfileOptionBuilder's `build` returns them. Each call includes what a
    running job has recorded since the last call. Errors such as a bad `output` or a step that was
    not traced are printed to standard error, and the call returns an empty message, as TensorFlow
    does. A value of the wrong type raises UsageError.
    """

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._engine = QueryEngine()

    @property
    def jobs(self) -> tuple[str, ...]:
        """The ids of the jobs."""
        return tuple(job.info.hex for job in self._selection.jobs)

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
        _print(advice_lines(advice, self._selection.parity))
        return load("tfprof.collector.export.messages:advice_message")(
            [checker_advice for job in advice for checker_advice in job.advice]
        )

    def serialize_to_string(self) -> bytes:
        """Return a serialized ProfileProto for TensorFlow's tools.

        UsageError if several jobs or a device were selected.
        """
        selection = self._selection
        if len(selection.jobs) != 1 or selection.device is not None:
            raise UsageError("a ProfileProto holds one job with all its devices")
        return b"".join(
            load("tfprof.collector.exporters.profile_proto:pieces")(
                selection.jobs[0], selection.steps, selection.parity.compat, selection.kinds
            )
        )

    # -- views -------------------------------------------------------------------------------------

    def _profile(self, view: str, option_dict: Mapping[str, Any]) -> Any:
        try:
            options = from_dict(option_dict)
        except InvalidOutputError as error:
            _print_error(invalid_argument(self._selection.parity, str(error.args[0])))
            return empty_message(view)
        for text in warnings(options):
            _print_error(text)
        if options.output.type != STDOUT:
            return self._print_answer(view, options)
        _print([BEFORE, *table(options), BETWEEN])
        result = self._print_answer(view, options)
        _print([AFTER])
        return result

    def _print_answer(self, view: str, options: Options) -> Any:
        try:
            output = write_output(self._engine, self._selection, view, options, for_message=True)
        except NoSuchStepError as error:
            _print_error(not_found(error))
            return empty_message(view)
        except RefusedOutputError as error:
            _print_error(str(error.args[0]))
            return empty_message(view, ROOT)
        answer = output.answer
        for reason in (left_out(answer), None if answer.has_entries else incomplete_reason(answer)):
            if reason:
                _print_error(reason)
        for text in output.warnings:
            _print_error(text)
        _print(output.lines)
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

    def job(self, selector: str, *, compat: str = COMPAT[0], exact: bool = False) -> Profiler:
        """Return the job that ``selector`` names: by the start of its id, by its name, or `last`.

        ``compat``: the version of TensorFlow, 2.21 or 1.15, whose order and texts the views follow.
        ``exact``: reproduce the TF profiler's errors and omissions, too. Raises NoSuchJobError and
        UsageError.
        """
        return self.select(selector, compat=compat, exact=exact)

    def select(
        self,
        jobs: str | Sequence[str] = (),
        *,
        host: str | Sequence[str] = (),
        pid: int | Sequence[int] = (),
        device: str | None = None,
        kind: str | Sequence[str] | None = None,
        steps: tuple[int, int] | None = None,
        compat: str = COMPAT[0],
        exact: bool = False,
    ) -> Profiler:
        """Return several jobs, merged by the names of their nodes.

        Without ``jobs``, return all jobs of ``host`` and ``pid``. Without any of the three, return
        all jobs of the store. ``kind``: the kinds of traced steps, spelled as for `--kind`; None
        means the main kind of the jobs. ``device``: only ops on devices with this text in their
        names (`*` and `?` are wildcards). ``steps``: only the traced steps from the first to the
        last number. Raises NoSuchJobError and UsageError.
        """
        parity = _parity(compat, exact)
        selectors = [jobs] if isinstance(jobs, str) else list(jobs)
        hosts = [host] if isinstance(host, str) else list(host)
        pids = [pid] if isinstance(pid, int) else list(pid)
        chosen_jobs = choose(self._store, selectors, hosts, pids) if selectors or hosts or pids else self._store.jobs()
        kinds = None if kind is None else parse_kinds(kind if isinstance(kind, str) else ",".join(kind))
        return Profiler(Selection(tuple(chosen_jobs), steps, device, parity, kinds))


def open_store(path: str | os.PathLike[str] | None = None) -> OpenStore:
    """Open the store at ``path``; the default is the store of the commands.

    That is $TFPROF_STORE, else the store in a settings file, else $XDG_STATE_HOME/tfprof, else
    ~/.local/state/tfprof. Raises StoreError if there is no store, SettingsFileError or FolderError
    if the default path cannot be determined.
    """
    return OpenStore(
        runtime_dir.require_absolute(settings_files.store_without_side_effects()) if path is None else path
    )
