"""The profiles that `--dump-steps` requests: a file profile_N for each step N.

TensorFlow's ProfileContext writes such files, too.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ..collector.errors import TfprofError
from ..collector.export import files
from ..collector.query.explanations import untraced_reason
from ..collector.query.kind_selection import traces_of_job
from ..collector.store.columns import column_list
from ..collector.store.protocols import JobReader
from ..collector.summaries.jobs import JobRow
from ..collector.summaries.kinds import kind_name


def dump(jobs: Sequence[tuple[JobReader, JobRow]], steps: Sequence[int], folder: Path) -> Iterator[tuple[str, bool]]:
    """For each of ``steps``, write a profile of the traced steps up to it.

    Yield for each profile a text and whether it was written. With several traced jobs, each
    gets a folder named by its id.
    """
    traced_jobs = [
        (job, row, kind, traced_steps)
        for job, row in jobs
        for kind, traced_steps in [_main_traced_steps(job)]
        if traced_steps
    ]
    if not traced_jobs:
        names = ", ".join(f"profile_{step}" for step in steps)
        yield f"no {names}: {untraced_reason(jobs[0][0])}", False
    for job, row, kind, traced_steps in traced_jobs:
        job_folder = folder if len(traced_jobs) == 1 else folder / row.id
        last_step = row.steps if row.step_kind == kind else None
        for step in steps:
            yield _write(
                job,
                job_folder / f"profile_{step}",
                step,
                [traced_step for traced_step in traced_steps if traced_step <= step],
                last_step,
            )


def _main_traced_steps(job: JobReader) -> tuple[str, list[int]]:
    """Return the main kind of ``job``, and the numbers of its traced steps of this kind."""
    traces, kinds = traces_of_job(job, ["step"], separate_functions=False)
    return kind_name(kinds[0]) if kinds else "", sorted(set(column_list(traces, "step")))


def _write(
    job: JobReader, path: Path, step: int, traced_steps: Sequence[int], last_step: int | None
) -> tuple[str, bool]:
    end_text = f"; the job ended after step {last_step}" if last_step is not None and last_step < step else ""
    if not traced_steps:
        return f"no {path}: no step up to {step} was traced{end_text} (--trace selects the steps)", False
    from ..collector.exporters.profile_proto import job_pieces  # noqa: PLC0415  # few launches need it

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write(path, b"".join(job_pieces(job, (0, step))))
    except OSError as error:
        return str(TfprofError(f"no {path}: {error.strerror}", slug="io")), False
    except TfprofError as error:
        return str(error), False
    steps_text = f"{len(traced_steps)} traced step{'s' * (len(traced_steps) > 1)}"
    last_text = f", the last is step {traced_steps[-1]}" if traced_steps[-1] != step else ""
    return f"wrote {path}: {steps_text}{last_text}{end_text}", True
