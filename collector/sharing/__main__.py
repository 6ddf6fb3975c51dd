"""The service of a shared store, started as ``python -m tfprof.collector.sharing --store DIR``."""

import argparse
import sys
from collections.abc import Sequence

from ...commands import daemons
from ...formats.runtime_dir import store_path
from .service import serve


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve a shared store until SIGTERM; return the exit status.

    The exit status is 1 if the store is served already.
    """
    parser = argparse.ArgumentParser(prog="python -m tfprof.collector.sharing", description=main.__doc__)
    parser.add_argument("--store", required=True, type=store_path, help="folder of the shared store")
    store = parser.parse_args(arguments).store
    return daemons.run("collector", store, lambda: serve(store))


if __name__ == "__main__":
    sys.exit(main())
