"""The format `memory-flow-png`: the picture of `memory_flow.py` as pixels, with the extra `png`."""

import importlib
from collections.abc import Iterator
from typing import Final

from . import memory_flow
from .request import Request

_ZOOM: Final = 2


def pieces(request: Request) -> Iterator[bytes]:
    """Yield the file; errors are those of `memory_flow`."""
    resvg = importlib.import_module("resvg_py")
    picture = b"".join(memory_flow.pieces(request)).decode()
    yield bytes(resvg.svg_to_bytes(svg_string=picture, zoom=_ZOOM))
