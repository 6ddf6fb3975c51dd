"""Names in the jobs of a shell for completion, read on first use."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from ..collector.errors import TfprofError
from ..collector.query.kind_selection import traces_by_kind, traces_of_job
from ..collector.store.protocols import JobReader
from ..collector.store.schema import DEVICE, NODE
from ..collector.summaries.jobs import functions_of
from ..collector.summaries.kinds import ALL, kind_name
from ..collector.tfviews.nodes import interned_texts


class JobNames:
    """Nodes, op types, devices, lines of code, steps and kinds of steps of jobs, each sorted."""

    def __init__(self, jobs: Sequence[JobReader]) -> None:
        self._jobs = jobs
        self._cached_names = cache(self._read)

    def __call__(self, view: str, option: str) -> Iterable[str]:
        """Return names for the values of ``option`` in ``view``; none if they cannot be read."""
        try:
            if option == "step":
                return ["-1", *self._cached_names("step")]
            if option == "kind":
                return [ALL, *self._cached_names("kind")]
            if option == "account_type_regexes":
                return [*self._cached_names("op"), *self._cached_names("device")]
            return (
                self._cached_names({"op": "op", "code": "line"}.get(view, "node")) if option.endswith("regexes") else ()
            )
        except TfprofError:
            return ()

    def _read(self, category: str) -> list[str]:
        """Return the names of a category, such as `node`, in all jobs."""
        names: set[Any] = set()
        for job in self._jobs:
            names.update(getattr(self, f"_{category}s")(job))
        return [str(name) for name in sorted(names)]

    @staticmethod
    def _ops(job: JobReader) -> Iterable[str]:
        return [str(op) for op in job.table("graph_nodes", ["op"])["op"].unique().to_pylist()]

    @staticmethod
    def _nodes(job: JobReader) -> Iterable[str]:
        graph_names: list[Any] = job.table("graph_nodes", ["name"])["name"].to_pylist()
        return [*graph_names, *interned_texts(job.table("names"), NODE).values()]

    @staticmethod
    def _devices(job: JobReader) -> Iterable[str]:
        return [text.lower() for text in interned_texts(job.table("names"), DEVICE).values()]

    @staticmethod
    def _lines(job: JobReader) -> Iterable[str]:
        frames = job.table("frames", ["file", "line", "function"]).group_by(["file", "line", "function"]).aggregate([])
        rows: list[dict[str, Any]] = frames.to_pylist()
        return [f"{row['file'].rpartition('/')[2]}:{row['line']}:{row['function']}" for row in rows]

    @staticmethod
    def _steps(job: JobReader) -> Iterable[int]:
        steps: list[Any] = traces_of_job(job, ["step"])[0]["step"].to_pylist()
        return steps

    @staticmethod
    def _kinds(job: JobReader) -> Iterable[str]:
        names = functions_of(job.info)
        return [kind_name(kind, names) for kind in traces_by_kind([job.table("traces", ["kind", "key"])])]
