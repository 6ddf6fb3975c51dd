"""`tfprof import`: imports files of the TF profiler as a job."""

import socket
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import click

from ..collector.documents.imported import import_document, import_runs_document
from ..collector.errors import StoreError, TfprofError, UsageError
from ..collector.imports import steps as run_metadata
from ..collector.imports.files import BINARY, TEXT, contents, parse
from ..collector.imports.graph import graph
from ..collector.imports.op_log import op_log
from ..collector.imports.profile import ProfileFile
from ..collector.imports.stacks import ImportedRows
from ..collector.imports.steps import Coverage, ImportedStep
from ..collector.imports.writing import ImportResult, ImportSource, store_job
from ..collector.proto.tfprof_log_pb2 import OpLogProto
from ..collector.store.columns import column_list
from ..commands.streams import note, print_lines
from ..formats.ids import hex_id
from ..formats.values import job_name
from .command import folder_option, json_option, print_json
from .selection_options import TfprofCommand
from .values import NAME, NON_EMPTY


def _imported_steps(paths: Sequence[str], notes: list[str]) -> Iterator[ImportedStep]:
    for number, path in enumerate(paths):
        step = run_metadata.step(number, contents(path), path)
        if step is None:
            notes.append(f"Invalid RunMetadata for step {number}: {path} has no step_stats; the step was not traced")
        else:
            yield step


def _profile_source(path: str, name: str) -> ImportSource:
    file = ProfileFile(contents(path), path)
    return ImportSource(name, file.graph(), [file.op_log()], file.steps(), {"op_log": True, "slots": True})


def _graph_source(paths: Mapping[str, str], name: str, notes: list[str]) -> ImportSource:
    nodes = graph(contents(paths["graph_path"]), paths["graph_path"])
    names = frozenset(column_list(nodes, "name"))
    node_rows: list[Iterable[ImportedRows]] = []
    if "op_log_path" in paths:
        node_rows.append([_op_log_rows(paths["op_log_path"], names, notes)])
    if "checkpoint_path" in paths:
        node_rows.append(_checkpoint_rows(paths["checkpoint_path"], names, notes))
    steps = _imported_steps(_split_paths(paths.get("run_meta_path")), notes)
    return ImportSource(name, nodes, chain.from_iterable(node_rows), steps, {"op_log": "op_log_path" in paths})


def _split_paths(paths: str | None) -> list[str]:
    """Return the files in a comma-separated list.

    UsageError for an empty name: the position of a file is the number of its step.
    """
    files = paths.split(",") if paths is not None else []
    if "" in files:
        raise UsageError(f"--run_meta_path {paths!r} contains an empty file name")
    return files


def _op_log_rows(path: str, names: Collection[str], notes: list[str]) -> ImportedRows:
    log = op_log(parse(contents(path), OpLogProto, path, (BINARY, TEXT)), names, path)
    if log.ignored:
        notes.append(f"{log.ignored} entries of {path} have no node in the graph and are left out")
    return log.rows


def _checkpoint_rows(path: str, names: Collection[str], notes: list[str]) -> Iterator[ImportedRows]:
    from ..collector.imports.checkpoint import Checkpoint, values  # noqa: PLC0415  # few imports have one

    checkpoint = Checkpoint(path)
    ignored = [name for name in checkpoint.names if name not in names]
    if ignored:
        notes.append(
            f"{len(ignored)} tensors of {path} have no node in the graph, for example {ignored[0]}, and are left out"
        )
    return values(checkpoint, names, lambda skipped: notes.append(f"no value of {skipped.name}: {skipped.reason}"))


@click.command("import", cls=TfprofCommand)
@click.argument("file", metavar="[FILE]", required=False, type=NON_EMPTY)
@click.option(
    "--profile-path", metavar="FILE", type=NON_EMPTY, help="A profile that the TF profiler wrote (ProfileProto)."
)
@click.option("--graph-path", metavar="FILE", type=NON_EMPTY, help="A GraphDef, text or binary.")
@click.option(
    "--run-meta-path",
    metavar="FILE,…",
    type=NON_EMPTY,
    help="RunMetadata of the steps 0, 1, …, separated by commas; binary or text.",
)
@click.option(
    "--op-log-path", metavar="FILE", type=NON_EMPTY, help="An op log with facts about the graph's nodes (OpLogProto)."
)
@click.option(
    "--checkpoint-path",
    metavar="PREFIX",
    type=NON_EMPTY,
    help="A checkpoint, for -select tensor_value: the common prefix of its files, without .index.",
)
@click.option("--name", metavar="NAME", type=NAME, help="Name of the job (default: the file's name).")
@json_option
@folder_option
def import_(file: str | None, store: str, as_json: bool, name: str | None, **paths: str | None) -> None:
    """Import jobs: a FILE of `tfprof export JOB -o FILE.tfprof`, or files of TensorFlow.

    FILE may also be a LOGDIR with the runs of TensorBoard's profile page, one of these runs, or one
    file HOST.xplane.pb: each file becomes a job. Of the TF profiler, give either --profile_path, or
    --graph_path with the other files. All commands then treat the result like a job that ran.
    """
    given_paths = {option: text for option, text in paths.items() if text}
    if file is not None:
        if _is_run(file):
            if given_paths:
                raise UsageError(f"{file} has runs of TensorFlow's profiler: it cannot be combined with other files")
            _import_runs(Path(store), file, name, as_json=as_json)
            return
        if given_paths or name:
            raise UsageError(f"{file} contains everything, also the job's name: it cannot be combined with options")
        _import_archive(Path(store), file, as_json=as_json)
        return
    profile_path, graph_path = given_paths.get("profile_path", ""), given_paths.get("graph_path", "")
    if profile_path and len(given_paths) > 1:
        raise UsageError("--profile_path contains everything: it cannot be combined with the other paths")
    if not profile_path and not graph_path:
        raise UsageError("nothing to import: give a file of `tfprof export`, --profile_path, or --graph_path")
    source_name = name or _default_name(profile_path or graph_path)
    notes: list[str] = []
    source = (
        _profile_source(profile_path, source_name) if profile_path else _graph_source(given_paths, source_name, notes)
    )
    _store_and_summarize(source, Path(store), as_json=as_json)
    for text in notes:
        note(text)


def _import_archive(store: Path, file: str, *, as_json: bool) -> None:
    from ..collector.store.archive_import import import_archive  # noqa: PLC0415  # other imports do not need it

    job = import_archive(store, file, socket.gethostname())
    _print_job(ImportResult(job.info.uid, job.nodes, job.steps), job.info.name, (), as_json=as_json)


def _is_run(file: str) -> bool:
    """Whether the argument is for `_import_runs`."""
    return file.endswith(".xplane.pb") or Path(file).is_dir()


def _import_runs(store: Path, folder: str, name: str | None, *, as_json: bool) -> None:
    """Import each file of TensorFlow's own profiler as a job.

    A bad file does not keep the others out; its error is raised at the end.
    """
    from ..collector.imports.profiler_run import read_run, run_files  # noqa: PLC0415  # as above
    from ..collector.imports.writing import store_run  # noqa: PLC0415

    jobs, errors = [], []
    for file, job in [(file, name or _default_name(file.run)) for file in run_files(folder)]:
        try:
            imported = store_run(store, socket.gethostname(), job, read_run(file))
        except StoreError:
            raise
        except TfprofError as error:
            errors.append(error)
            continue
        jobs.append((imported, job, file.host, file.run))
        if not as_json:
            print_lines([f"{hex_id(imported.uid)} {job} on {file.host}: {imported.steps} steps"])
    if as_json and jobs:
        print_json(import_runs_document(jobs))
    for earlier in errors[:-1]:
        note(str(earlier))
    if errors:
        raise errors[-1]


def _default_name(path: str) -> str:
    """Return the default name of a job imported from ``path``."""
    try:
        return job_name(Path(path).name or path)
    except ValueError as error:
        raise UsageError(f"{error}: give a name with --name NAME") from None


def _store_and_summarize(source: ImportSource, store: Path, *, as_json: bool) -> None:
    """Store the job and print a summary."""
    coverage, shares = Coverage(column_list(source.graph, "name")), []
    is_profile = bool(source.facts.get("slots"))

    def print_coverage(step: ImportedStep) -> None:
        if not is_profile:
            shares.append(coverage.add(step.message))
            if not as_json:
                print_lines([f"run graph coverage: {shares[-1]:.2f}"])

    imported = store_job(store, socket.gethostname(), source, print_coverage)
    _print_job(imported, source.name, shares, as_json=as_json)


def _print_job(imported: ImportResult, name: str, coverage: Sequence[float], *, as_json: bool) -> None:
    """Print the imported job; ``coverage``: shares of the graph's nodes that ran."""
    if as_json:
        print_json(import_document(imported, name, coverage))
    else:
        print_lines([f"{hex_id(imported.uid)} {name}: {imported.nodes} nodes, {imported.steps} steps"])
