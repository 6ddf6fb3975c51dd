"""For benchmarks of reading: a job is written once, and several new processes read it."""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


def run_in_processes(
    script: str,
    parser: argparse.ArgumentParser,
    write: Callable[[Path, argparse.Namespace], None],
    read: Callable[[str], Any],
) -> tuple[argparse.Namespace, list[Any]]:
    """Return the parsed command line of ``script``, and the results of ``read``.

    ``write`` writes the store. ``read`` gets its path in each of `--processes` new processes, and
    returns a value that JSON can represent.
    """
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--read", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.read:
        print(json.dumps(read(args.read)))
        sys.exit()
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        write(store, args)
        command = [sys.executable, script, "--read", str(store)]
        return args, [json.loads(subprocess.check_output(command)) for _ in range(args.processes)]


def limit_ratio(time_ms: float, limit_ms: float) -> str:
    """Return the ratio of a time to its limit, as text."""
    return f"{time_ms / limit_ms:5.2f} of the limit of {limit_ms:.0f} ms"
