"""Arms this process for the frameworks that tfprof knows."""

from . import core
from .tensorflow import patches as tensorflow

TYPE_CHECKING = False  # types are quoted: importing even __future__ would slow down every interpreter's start
if TYPE_CHECKING:
    from typing import Mapping

#: Modules like tensorflow/patches.py.
FRAMEWORKS = (tensorflow,)


def arm(environ: "Mapping[str, str]", attached: bool = False) -> None:
    """Arm the shim with the settings in ``environ`` (core.py)."""
    core.arm(environ, FRAMEWORKS, attached)
