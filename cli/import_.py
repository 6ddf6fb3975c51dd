"""`tfprof import`: imports files of the TF profiler as a job."""

import socket
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import click

from ..collector.errors import UsageError
from ..collector.imports import steps as run_metadata
from ..collector.imports.files import BINARY, TEXT, contents, parse
from ..collector.imports.graph import graph
from ..collector.imports.op_log import op_log
from ..collector.imports.profile import ProfileFile
from ..collector.imports.stacks import ImportedRows
from ..collector.imports.steps import Coverage, ImportedStep
from ..collector.imports.writing import ImportSource, store_job
from ..collector.proto.tfprof_log_pb2 import OpLogProto
from ..collector.store.columns import column_list
from ..commands.streams import note
from ..formats.ids import hex_id
from ..formats.values import job_name
from .command import json_option, print_json, print_lines, store_option
from .selection import TfprofCommand
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
@store_option
def import_(store: str, as_json: bool, name: str | None, **paths: str | None) -> None:
    """Import, as one job, files that the TF profiler reads or writes.

    Give either --profile_path, or --graph_path with the other files. All commands then treat the
    result like a job that ran.
    """
    given_paths = {option: text for option, text in paths.items() if text}
    profile_path, graph_path = given_paths.get("profile_path", ""), given_paths.get("graph_path", "")
    if profile_path and len(given_paths) > 1:
        raise UsageError("--profile_path contains everything: it cannot be combined with the other paths")
    if not profile_path and not graph_path:
        raise UsageError("nothing to import: give --profile_path, or --graph_path")
    source_name = name or _default_name(profile_path or graph_path)
    notes: list[str] = []
    source = (
        _profile_source(profile_path, source_name) if profile_path else _graph_source(given_paths, source_name, notes)
    )
    _store_and_summarize(source, Path(store), as_json=as_json)
    for text in notes:
        note(text)


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
    if as_json:
        print_json(
            {
                "job": hex_id(imported.uid),
                "name": source.name,
                "nodes": imported.nodes,
                "steps": imported.steps,
                "coverage": shares,
            }
        )
    else:
        print_lines([f"{hex_id(imported.uid)} {source.name}: {imported.nodes} nodes, {imported.steps} steps"])
