"""The environment of a job: the given one, with the shim on the module path."""

import os
from collections.abc import Mapping
from typing import Final

#: The folder that is added to a job's module path.
INJECT_FOLDER: Final = os.path.join(os.path.abspath(__file__).rsplit(os.sep, 3)[0], "shim", "inject")


def job_environment(environ: Mapping[str, str], run: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return ``environ`` with the shim on the module path, ``run`` and ``settings``.

    ``run`` is the value of TFPROF_RUN.
    """
    entries = [entry for entry in environ.get("PYTHONPATH", "").split(os.pathsep) if entry != INJECT_FOLDER]
    # An empty entry means the working folder: an empty entry of the user stays, and none is added.
    path = os.pathsep.join([INJECT_FOLDER, *entries]) if entries != [""] else INJECT_FOLDER
    return {**environ, **settings, "PYTHONPATH": path, "TFPROF_RUN": run}
