"""Overhead of short steps, of 20 µs to 1 ms.

The steps run on several paths: sessions, callables, functions, tapes and Keras. One process
alternates between blocks of steps with and without hooks, since two processes of the same program
can differ in speed permanently. The launcher and the daemons are on the first core, the job is on
the last one. Each turn has one block with hooks and two blocks without. For each path, version,
length and mode, the script prints the median overhead of the hooks, in percent and in µs a step,
and the median difference between the two blocks without hooks (the noise). If a path cannot have
steps as short as requested, its shortest steps are measured.

usage: benchmarks/short_steps.py [--versions tf2,tf1]
[--paths session,callable,function,concrete,tape,train,fit]
[--lengths 20,50,100,1000] [--modes untraced,default]
[--starts 3] [--turns 300] [--seconds 10]. Environments: .venvs, or $TFPROF_TEST_VENVS.
"""

import argparse
import json
import statistics
import subprocess
import tempfile

from _jobs import HERE, RUN, VENVS, environment, is_installed, stop
from _limits import report

#: By mode: how the job is started. In the mode untraced, tracing selects only a step that the job
#: does not reach: steps are timed or only counted, and none is traced.
MODES = {"untraced": [*RUN, "--trace", "steps=1000000000-1000000000"], "default": RUN}
#: Paths that can be measured with each version. The job does not enable eager execution in TF 1.15,
#: and functions and tapes need it. The batches of Keras are runs of callables there.
PATHS = {
    "tf2": ("session", "callable", "function", "concrete", "tape", "train", "fit"),
    "tf1": ("session", "callable", "train"),
}
LIMIT_PERCENT = 1.0


def one_start(version: str, path: str, length: int, mode: str, turns: int, seconds: float) -> dict[str, list[float]]:
    """Return the time of a step in each block (µs), by kind of block."""
    with tempfile.TemporaryDirectory() as folder:
        job = [str(VENVS / version / "bin/python"), str(HERE / "jobs/short_steps.py"), path, str(length), str(turns)]
        try:
            run = subprocess.run(
                ["taskset", "-c", "0", *MODES[mode], *job, str(seconds)],
                env=environment(folder),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                check=True,
            )
        finally:
            stop(folder)
        times: dict[str, list[float]] = json.loads(run.stdout.splitlines()[-1])
        return times


def compare(version: str, path: str, length: int, mode: str, args: argparse.Namespace) -> float:
    """Print the overhead for one combination; return it in percent, less the noise."""
    starts = [one_start(version, path, length, mode, args.turns, args.seconds) for _ in range(args.starts)]
    percents = {
        name: [100 * (a / b - 1) for start in starts for a, b in zip(start[name], start["bare"], strict=True)]
        for name in ("hooked", "bare_again")
    }
    differences_us = [a - b for start in starts for a, b in zip(start["hooked"], start["bare"], strict=True)]
    per_start = " ".join(
        f"{statistics.median(100 * (a / b - 1) for a, b in zip(start['hooked'], start['bare'], strict=True)):+.2f}"
        for start in starts
    )
    bare_us = statistics.median(time for start in starts for time in start["bare"])
    overhead, noise = (statistics.median(percents[name]) for name in ("hooked", "bare_again"))
    print(
        f"{version} {path:9} {length:5} µs {mode:8} bare {bare_us:7.1f} µs"
        f"  {overhead:+6.2f} %"
        f" ({statistics.median(differences_us):+5.2f} µs)  noise {noise:+5.2f} %"
        f"  (starts: {per_start})",
        flush=True,
    )
    return overhead - abs(noise)


def main() -> None:
    """Measure the selected combinations."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--versions", default=",".join(PATHS))
    parser.add_argument("--paths", default=",".join(PATHS["tf2"]))
    parser.add_argument("--lengths", default="20,50,100,1000")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=10)
    args = parser.parse_args()
    report(
        [
            (f"{version} {path} {length} µs {mode}", compare(version, path, length, mode, args), "%", LIMIT_PERCENT)
            for version in args.versions.split(",")
            if is_installed(version)
            for path in args.paths.split(",")
            if path in PATHS[version]
            for length in map(int, args.lengths.split(","))
            for mode in args.modes.split(",")
        ]
    )


if __name__ == "__main__":
    main()
