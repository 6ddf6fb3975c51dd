"""A folder of files as one zip file, which is made while it is read."""

from collections.abc import Iterator
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from .folders import Folder

MEDIA_TYPE: Final = "application/zip"
SUFFIX: Final = ".zip"


class _Sink:
    """A file that is only written; `taken` returns what was written since the last call."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: bytes, /) -> int:
        """Keep ``data``."""
        self._parts.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def taken(self) -> bytes:
        """Return the bytes."""
        data = b"".join(self._parts)
        self._parts.clear()
        return data


def pieces(folder: Folder) -> Iterator[bytes]:
    """Yield the zip file with ``folder``; files have no date."""
    sink = _Sink()
    with ZipFile(sink, "w") as archive:
        for name, content in folder.files:
            entry = ZipInfo(f"{folder.name}/{name}" if folder.name else name)
            entry.compress_type = ZIP_DEFLATED
            with archive.open(entry, "w", force_zip64=True) as file:
                for piece in content:
                    file.write(piece)
                    yield sink.taken()
    yield sink.taken()
