"""A folder of files as one zip file, which is made while it is read."""

from collections.abc import Iterator
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from .folders import Folder
from .sink import Sink

MEDIA_TYPE: Final = "application/zip"
SUFFIX: Final = ".zip"


def pieces(folder: Folder) -> Iterator[bytes]:
    """Yield the zip file with ``folder``; files have no date."""
    sink = Sink()
    with ZipFile(sink, "w") as archive:
        for name, content in folder.files:
            entry = ZipInfo(f"{folder.name}/{name}" if folder.name else name)
            entry.compress_type = ZIP_DEFLATED
            with archive.open(entry, "w", force_zip64=True) as file:
                for piece in content:
                    file.write(piece)
                    yield sink.take()
    yield sink.take()
