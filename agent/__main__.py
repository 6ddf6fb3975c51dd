"""The agent of a user's store: ``python -m tfprof.agent [--store DIR]``."""

import argparse
import sys
from collections.abc import Sequence

from ..commands import daemons, settings_files, streams
from ..formats import runtime_dir
from ..formats.errors import TfprofError
from ..formats.settings import SETTINGS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the agent of a store until it is stopped or idle."""
    parser = argparse.ArgumentParser(prog="python -m tfprof.agent", description=main.__doc__)
    parser.add_argument("--store", default=None, help="folder for the results")
    store_option = parser.parse_args(arguments).store
    try:
        store = settings_files.store() if store_option is None else runtime_dir.store_path(store_option)
    except TfprofError as error:
        streams.say(f"tfprof: {error}")
        return error.exit_code
    return daemons.run("agent", store, lambda: _serve(store))


def _serve(store: str) -> int:
    settings_files.load_into_environment()
    idle_s = SETTINGS["agent-idle"].read()
    from .daemon.service import serve  # noqa: PLC0415 - imported only after the lock is taken

    return serve(store, idle_s)


if __name__ == "__main__":
    sys.exit(main())
