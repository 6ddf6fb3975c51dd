"""Runs the exporters of formats/exports.py."""

import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from ...commands.new_outputs import check_installed, no_format_error
from ...formats.exports import (
    DEVICE,
    FORMATS,
    JOB,
    KIND,
    SINCE,
    STEPS,
    TABLE,
    VIEW,
    VIEW_EXPORTERS,
    Exporter,
    exporter_of,
    uncompressed,
)
from ..errors import UsageError
from ..export import folders, zipped
from ..export.files import check_is_new, write
from ..loader import load
from ..query.engine import Answer, QueryEngine
from ..tfviews.option_values import NONE, STDOUT, File
from .request import Request

#: Path of standard output.
STDOUT_PATH: Final = "-"
#: Parameter of zlib: the gzip format, with the largest window.
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
#: Level of the compression. At this level, compressing takes less time than formatting.
_LEVEL: Final = 1

#: A function that gets the path and the content of each file, and yields the content.
Watch = Callable[[str, Iterable[bytes]], Iterable[bytes]]


def _function(exporter: Exporter) -> Any:
    """Return the function that makes the file, the files or the folder."""
    name = "files" if exporter.subject == VIEW else "folder" if exporter.is_folder else "pieces"
    return load(f"{__package__}.{exporter.module}:{name}")


def outputs(view: str) -> frozenset[str]:
    """Return the types of `-output` that ``view`` supports."""
    return frozenset({STDOUT, NONE, *(row.name for row in VIEW_EXPORTERS.values() if view in row.views)})


def files(engine: QueryEngine, answer: Answer) -> Iterator[File]:
    """Yield the files of the exporter that the answer's options name.

    RefusedOutputError if the exporter cannot make them.
    """
    make: Callable[[QueryEngine, Answer], Iterator[File]] = _function(VIEW_EXPORTERS[answer.options.output.type])
    return make(engine, answer)


def exporter_for(path: str, name: str | None = None) -> Exporter:
    """Return the exporter called ``name``, else the one that the end of ``path`` means.

    UsageError ``no-such-format`` if there is none.
    """
    if name is not None:
        if name not in FORMATS:
            raise UsageError(f"no format is called '{name}': {', '.join(FORMATS)}", slug="no-such-format")
        return FORMATS[name]
    exporter = exporter_of(path)
    if exporter is None:
        raise no_format_error(path, ", or give --format")
    return exporter


def check(exporter: Exporter, request: Request) -> None:
    """Raise UsageError if the exporter does not support an option or the number of jobs.

    Also raise it if a package that the exporter needs is not installed.
    """
    check_installed(exporter)
    selection = request.selection
    given = {
        STEPS: selection.steps,
        SINCE: selection.since_ns or None,
        KIND: selection.kinds,
        DEVICE: selection.device,
        TABLE: request.table,
    }
    unknown = [name for name, value in given.items() if value is not None and name not in exporter.options]
    if unknown:
        raise UsageError(f"the format {exporter.name} has no option --{unknown[0]}")
    if exporter.subject == JOB and len(selection.jobs) != 1:
        raise UsageError(f"a file of the format {exporter.name} holds one job: name one")


def content_of(exporter: Exporter, request: Request) -> Iterable[bytes]:
    """Return the content of an uncompressed file, or of a zip file if the format is a folder.

    The bytes are made while they are read. UsageError as in `check`, and the errors of the
    exporter.
    """
    check(exporter, request)
    if exporter.is_folder:
        return zipped.pieces(_function(exporter)(request))
    make: Callable[[Request], Iterable[bytes]] = _function(exporter)
    return make(request)


def file_type(exporter: Exporter) -> tuple[str, str]:
    """Return the media type and the file suffix of what `content_of` makes."""
    if exporter.is_folder:
        return zipped.MEDIA_TYPE, f".{exporter.name}{zipped.SUFFIX}"
    return exporter.media_type, next(iter(exporter.suffixes), f".{exporter.name}")


def _pieces(exporter: Exporter, request: Request, path: str) -> Iterable[bytes]:
    """Return the content of the file ``path``, compressed if its name says so.

    The bytes are made while they are read.
    """
    make: Callable[[Request], Iterable[bytes]] = _function(exporter)
    content = make(request)
    return content if uncompressed(exporter, path) == path else _compressed(content)


def _unwatched(_path: str, content: Iterable[bytes]) -> Iterable[bytes]:
    return content


def write_exports(
    request: Request,
    paths: Sequence[str],
    name: str | None = None,
    *,
    overwrite: bool = False,
    watch: Watch = _unwatched,
) -> None:
    """Write a file of ``request`` to each of ``paths``; `-` is standard output.

    ``name``: the format of all files, None for those of their names. Nothing is written if an
    argument is wrong, or if a file exists and ``overwrite`` is false: TfprofError ``file-exists``.
    ``watch``: gets each file's path and content, and yields the content. Other errors are
    those of `exporter_for`, `check`, `write` and the exporter.
    """
    outputs = [_Output(path, exporter_for(path, name)) for path in paths]
    for output in outputs:
        check(output.exporter, request)
        output.prepare(request, overwrite=overwrite)
    for output in outputs:
        output.write(request, watch)


class _Output:
    """A file or folder to write; ``path`` is `-` for standard output."""

    def __init__(self, path: str, exporter: Exporter) -> None:
        self._path, self.exporter = path, exporter
        self._folder: folders.Folder | None = None

    def prepare(self, request: Request, *, overwrite: bool) -> None:
        """Raise the errors that are known before anything is written."""
        if self._path == STDOUT_PATH:
            if self.exporter.is_folder:
                raise UsageError(f"the format {self.exporter.name} is a folder: name one")
            _check_standard_output()
        elif self.exporter.is_folder:
            self._folder = _function(self.exporter)(request)
            if not overwrite:
                folders.check_is_new(self._path, self._folder)
        elif not overwrite:
            check_is_new(self._path)

    def write(self, request: Request, watch: Watch) -> None:
        """Write the file or folder."""
        if self._folder is not None:
            files = ((name, watch(f"{self._path}/{name}", content)) for name, content in self._folder.files)
            folders.write_folder(self._path, self._folder._replace(files=files))
        elif self._path == STDOUT_PATH:
            sys.stdout.buffer.writelines(_pieces(self.exporter, request, self._path))
        else:
            write(self._path, watch(self._path, _pieces(self.exporter, request, self._path)))


def _check_standard_output() -> None:
    """Raise UsageError if standard output is a terminal, since a job's texts could control it."""
    if sys.stdout.isatty():
        raise UsageError("standard output is a terminal: redirect it, or name a file")


def _compressed(content: Iterable[bytes]) -> Iterator[bytes]:
    compressor = zlib.compressobj(_LEVEL, wbits=_GZIP_WINDOW)
    yield from map(compressor.compress, content)
    yield compressor.flush()
