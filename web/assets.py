"""The files of the page, by the names under which they are served."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parent / "static"
#: Media types by suffix; other files, such as licences, are not served.
MEDIA_TYPES: Final = {".css": "text/css", ".html": "text/html", ".js": "text/javascript", ".svg": "image/svg+xml"}
#: The page itself.
PAGE: Final = "index.html"


@cache
def names() -> tuple[str, ...]:
    """Return the names of all files that are served, such as `pages/job/page.js`."""
    paths = (path for path in _FOLDER.rglob("*") if path.suffix in MEDIA_TYPES)
    return tuple(sorted(path.relative_to(_FOLDER).as_posix() for path in paths))


@cache
def text(name: str) -> str:
    """Return the content of the file ``name``, one of `names`; KeyError for any other."""
    if name not in names():
        raise KeyError(name)
    return (_FOLDER / name).read_text("utf-8")


def contents() -> Mapping[str, tuple[bytes, str]]:
    """Return the bytes and the media type of each file."""
    return {name: (text(name).encode(), MEDIA_TYPES[Path(name).suffix]) for name in names()}
