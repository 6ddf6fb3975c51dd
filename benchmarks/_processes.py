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
