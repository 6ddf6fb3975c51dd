"""The files of every format of a job."""

from collections.abc import Iterator
from pathlib import Path

from fakes.command import output_of
from tfprof.formats.exports import FORMATS

#: Formats whose files have the time of the export, and one whose packages may be missing.
LEFT_OUT = {"tfprof", "memory-flow-png"}


def exports(store: Path | str, job: str, folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of each file that `tfprof export` writes below ``folder``."""
    folder.mkdir()
    for name in FORMATS.keys() - LEFT_OUT:
        target = folder / name
        output_of("export", job, "--format", name, "-o", target, "--store", store)
        for path in sorted(target.rglob("*") if target.is_dir() else [target]):
            if path.is_file():
                yield path.relative_to(folder).as_posix(), path.read_bytes().replace(str(store).encode(), b"")
