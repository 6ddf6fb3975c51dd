"""Imported jobs."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, TypedDict

from ...formats.ids import hex_id
from ..imports.writing import ImportResult


class ImportDocument(TypedDict):
    """An imported job."""

    schema: Annotated[Literal["tfprof.import/1"], "The format and its version."]
    job: Annotated[str, "The id of the job."]
    name: Annotated[str, "The name of the job."]
    nodes: Annotated[int, "The number of nodes of its graph."]
    steps: Annotated[int, "The number of its traced steps."]
    coverage: Annotated[list[float], "For each RunMetadata, the share of the graph's nodes that ran so far."]


def import_document(imported: ImportResult, name: str, coverage: Iterable[float]) -> ImportDocument:
    """Return an imported job; ``coverage``: shares of the graph's nodes that ran."""
    return {
        "schema": "tfprof.import/1",
        "job": hex_id(imported.uid),
        "name": name,
        "nodes": imported.nodes,
        "steps": imported.steps,
        "coverage": list(coverage),
    }


class ImportedRunRow(TypedDict):
    """An imported file of TensorFlow's own profiler."""

    job: Annotated[str, "The id of the job."]
    name: Annotated[str, "The name of the job."]
    host: Annotated[str, "The host, from the name of the file."]
    run: Annotated[str, "The run, which is the folder of the file."]
    steps: Annotated[int, "The number of its traced steps."]


class ImportRunsDocument(TypedDict):
    """The imported files of a folder with runs of TensorBoard's profile page."""

    schema: Annotated[Literal["tfprof.import-runs/1"], "The format and its version."]
    jobs: Annotated[list[ImportedRunRow], "The imported jobs, one for each file."]


def import_runs_document(jobs: Sequence[tuple[ImportResult, str, str, str]]) -> ImportRunsDocument:
    """Return imported files; each is (result, name of the job, host, run)."""
    return {
        "schema": "tfprof.import-runs/1",
        "jobs": [
            {"job": hex_id(imported.uid), "name": name, "host": host, "run": run, "steps": imported.steps}
            for imported, name, host, run in jobs
        ],
    }
