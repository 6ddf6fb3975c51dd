"""What benchmarks of reading share: a job is written once, and looked at by processes that were just started."""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


def looks(
    script: str,
    parser: argparse.ArgumentParser,
    write: Callable[[Path, argparse.Namespace], None],
    look: Callable[[str], Any],
) -> tuple[argparse.Namespace, list[Any]]:
    """Return the command line of ``script``, and what ``look`` found in each of the processes that it asks for.

    ``write`` makes the store; ``look`` is given its path, in a process of its own, and returns what JSON can say.
    """
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--look", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.look:
        print(json.dumps(look(args.look)))
        sys.exit()
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        write(store, args)
        command = [sys.executable, script, "--look", str(store)]
        return args, [json.loads(subprocess.check_output(command)) for _ in range(args.processes)]


def share(took_ms: float, limit_ms: float) -> str:
    """Return what a time is of its limit, to be printed after it."""
    return f"{took_ms / limit_ms:5.2f} of the limit of {limit_ms:.0f} ms"
