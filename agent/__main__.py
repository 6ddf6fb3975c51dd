"""The agent of a user's store: ``python -m tfprof.agent [--store DIR]``."""

import argparse
import os
import sys
from collections.abc import Sequence

from tfprof.shim import daemons, places
from tfprof.shim.daemons import DaemonError
from tfprof.shim.settings import SETTINGS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run an agent until it is told to stop or has nothing to do; 0 also when one runs already."""
    parser = argparse.ArgumentParser(prog="python -m tfprof.agent", description=main.__doc__)
    parser.add_argument("--store", default=None, help="folder that results are kept in")
    store = os.path.abspath(parser.parse_args(arguments).store or places.default_store())
    return daemons.run("agent", store, lambda: _serve(store))


def _serve(store: str) -> int:
    row = SETTINGS["agent-idle"]
    try:
        idle_s = row.read()
    except ValueError as error:
        raise DaemonError(f"{row.variable}: {error}", "usage") from None
    from .daemon import serve  # noqa: PLC0415 - the lock comes first

    return serve(store, idle_s)


if __name__ == "__main__":
    sys.exit(main())
