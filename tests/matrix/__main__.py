"""Runs the matrix, or a part of it, and prints the table.

python -m matrix [--rows a,b] [--versions 2.4,2.15] [--markdown]
"""

import argparse
import sys
import time

from . import table
from .cell import Outcome, missing_environment, run
from .instance import instance
from .rows import ROWS
from .versions import VERSIONS


def main() -> int:
    """Run the cells that the command line selects; return the exit status."""
    parser = argparse.ArgumentParser(prog="matrix", description=__doc__)
    parser.add_argument("--rows", default="", help="names of rows (default: all)")
    parser.add_argument("--versions", default="", help="versions (default: all)")
    parser.add_argument("--markdown", action="store_true", help="print the table of the documentation and run nothing")
    arguments = parser.parse_args()
    if arguments.markdown:
        print(table.markdown(), end="")
        return 0
    versions = [
        version for version in VERSIONS if not arguments.versions or version.name in arguments.versions.split(",")
    ]
    missing = list(filter(None, map(missing_environment, versions)))
    if missing:
        sys.exit("\n".join(missing))
    outcomes: dict[tuple[str, str], Outcome] = {}
    with instance() as private_instance:
        for version in versions:
            for row in ROWS:
                if row.runs_on(version) and (not arguments.rows or row.name in arguments.rows.split(",")):
                    start_s = time.monotonic()
                    outcome = outcomes[row.name, version.name] = run(row, version, private_instance)
                    elapsed = f"{time.monotonic() - start_s:.1f} s"
                    print(row.name, version.name, elapsed, *outcome.problems() or ["as expected"], sep="  ", flush=True)
    print(table.terminal(outcomes))
    return int(any(outcome.problems() for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
