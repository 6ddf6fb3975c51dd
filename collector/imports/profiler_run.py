"""Reads the files of TensorFlow's own profiler: an XSpace for each host of a run."""

import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa

from ...formats import layout
from ..decoders.columns import from_rows
from ..decoders.compiled import program_rows
from ..decoders.interner import Interner, NamesFullError
from ..decoders.session import Session, xspace_errors
from ..decoders.session_ops import executions, markers
from ..decoders.xspace import step_rows
from ..errors import DecodeError, TfprofError
from ..ingest.parsing import trace_of, trace_rows
from ..store.columns import as_table
from .files import BYTES_MAX, BadFileError, NotRepresentableError, contents
from .session_steps import SessionStep, session_steps

#: End of the name of a file; the part before it is the host.
SUFFIX: Final = ".xplane.pb"
_RUNS: Final = "plugins/profile"
#: Maximum number of events of a file: an execution takes some hundred bytes while it is imported.
_EVENTS_MAX: Final = 1 << 23
#: The last time (real time, ns), in the year 2116.
_TIME_MAX: Final = 1 << 62
_GZIP_START: Final = b"\x1f\x8b"


class RunFile(NamedTuple):
    """The file of one host."""

    path: Path
    run: str
    host: str


def run_files(folder: str) -> list[RunFile]:
    """Return the files of all runs in ``folder``: one of logs, of runs, or of a run; or one file.

    TfprofError ``io`` if it cannot be read; BadFileError if there is none.
    """
    path = Path(folder)
    try:
        if not path.is_dir():
            paths = [path] if path.stat() else []
        else:
            files = sorted(_files_below(path))
            paths = [file for file in files if file.parent == path] or [
                file for file in files if file.absolute().match(f"{_RUNS}/*/*")
            ]
    except (OSError, ValueError) as error:
        place, reason = getattr(error, "filename", None) or folder, getattr(error, "strerror", None) or error
        raise TfprofError(f"cannot read {place}: {reason}", slug="io") from None
    if not paths:
        raise BadFileError(f"{folder} has no profile of TensorFlow: no {_RUNS}/RUN/HOST{SUFFIX}")
    return [RunFile(path, path.absolute().parent.name, path.name.removesuffix(SUFFIX)) for path in paths]


def _files_below(folder: Path, above: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """Yield the files of hosts in ``folder`` and below it, also behind links.

    ``above``: the folders around it, which a link may lead to. OSError if a folder is unreadable.
    """
    place = folder.resolve()
    for path in folder.iterdir() if place not in above else ():
        if path.is_dir():
            yield from _files_below(path, above | {place})
        elif path.name.endswith(SUFFIX):
            yield path


class ImportedRun(NamedTuple):
    """The content of one file.

    ``tables``: the rows by table, step by step. ``functions``: names of functions by key. The job
    is from ``start_ns`` to ``end_ns`` (real time); ``counts``: number of steps by span kind.
    """

    file: RunFile
    tables: Iterator[Mapping[str, pa.Table]]
    functions: Mapping[str, str]
    start_ns: int
    end_ns: int
    counts: Mapping[str, int]


def read_run(file: RunFile) -> ImportedRun:
    """Return the content of ``file``.

    TfprofError ``io`` if it cannot be read, BadFileError if it is no XSpace or has no op,
    NotRepresentableError if it is too large.
    """
    path = str(file.path)
    with _file_errors(path), xspace_errors():
        mode = file.path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise BadFileError(f"{path} is not a regular file")
        modified_ns = file.path.stat().st_mtime_ns
        data = contents(path)
        if data.startswith(_GZIP_START):
            raise BadFileError(f"{path} is not a valid XSpace: it is compressed; decompress it with gunzip")
        session = Session(data, BYTES_MAX, _EVENTS_MAX)
        programs: dict[bytes, bytes] = {}
        ops = list(executions(session, modified_ns, programs=programs))
        if not ops:
            raise BadFileError(f"{path} has no executions of ops")
        steps = session_steps(list(markers(session, modified_ns)), ops)
    starts, ends = zip(*((step.start_ns, step.start_ns + step.duration_ns) for step, _, _ in steps), strict=True)
    first_ns = min(chain(starts, (op.start_ns for op in ops)))
    last_ns = max(chain(ends, (op.start_ns + op.own_ns for op in ops)))
    if not 0 <= first_ns <= last_ns <= _TIME_MAX:
        raise BadFileError(f"{path} is damaged: a time in it cannot be right")
    counts: dict[str, int] = {}
    for step, _, _ in steps:
        kind = layout.SPAN_NAMES[step.kind]
        counts[kind] = counts.get(kind, 0) + 1
    functions = {str(step.key): function for step, function, _ in steps if function}
    return ImportedRun(file, _tables(path, steps, len(data), programs), functions, min(starts), max(ends), counts)


def _tables(
    path: str, steps: list[SessionStep], size: int, programs: Mapping[bytes, bytes]
) -> Iterator[Mapping[str, pa.Table]]:
    """Yield the rows of the programs that XLA compiled, then those of each step.

    ``size``: bytes of the file, which its first step has.
    """
    for module, program in programs.items():
        parts = program_rows(module, program)
        if parts.num_rows:
            yield {"programs": as_table(parts)}
    interner = Interner()
    for number, (step, _, ops) in enumerate(steps):
        try:
            rows, decoded = step_rows(ops, number, interner)
        except NamesFullError as error:
            raise NotRepresentableError(f"{path}: {error.args[0]}") from None
        trace = trace_of(layout.XSPACE, step, number, decoded, 0 if number else size)
        total = step.duration_ns
        span = (step.kind, layout.FLAG_TRACED, step.ordinal, 1, step.start_ns, total, total, total)
        tables: dict[str, pa.Table | pa.RecordBatch] = {
            "ops": rows,
            "names": interner.new_names(),
            "traces": trace_rows([trace]),
            "spans": from_rows([(*span, step.key, step.thread, 0)], "spans"),
        }
        yield {name: as_table(table) for name, table in tables.items() if table.num_rows}


@contextmanager
def _file_errors(path: str) -> Iterator[None]:
    try:
        yield
    except DecodeError as error:
        text = str(error.args[0])
        if text == "not an XSpace":
            raise BadFileError(f"{path} is not a valid XSpace: its bytes do not parse as one") from None
        raise NotRepresentableError(f"{path}: {text}") from None
    except (OSError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or "no memory for it"
        raise TfprofError(f"cannot read {path}: {reason}", slug="io") from None
