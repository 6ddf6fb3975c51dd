"""What a job pays: tfprof-run off / armed / default / all against the bare job, in turn, as ratios of paired runs.

usage: benchmarks/overhead.py [--pairs 5] [--steps 600] [--jobs tf1-session,tf2-session,tf2-keras]
Limits (docs/design): armed 0.5 %, default 2 %. Environments: .venvs, or $TFPROF_TEST_VENVS.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
VENVS = Path(os.environ.get("TFPROF_TEST_VENVS", HERE.parent / ".venvs"))
RUN = [str(Path(sys.executable).parent / "tfprof-run"), "--no-report"]
JOBS = {
    "tf1-session": ("tf1", "session_cnn.py"),
    "tf2-session": ("tf2", "session_cnn.py"),
    "tf2-keras": ("tf2", "keras_fit.py"),
}
#: mode: how the job is started, limit of its overhead in percent
MODES: dict[str, tuple[list[str], float | None]] = {
    "bare again": ([], None),  # the noise of this machine
    "off": ([*RUN, "--trace", "off"], 0.5),
    "armed": ([*RUN, "--trace", "steps=1000000000-1000000000"], 0.5),
    "default": (RUN, 2.0),
    "all": ([*RUN, "--trace", "all"], None),
}


def measure(prefix: list[str], job: str, steps: int, *more: str) -> dict:
    """Run one job and return what it printed: loop_s, cpu_s, steps_s."""
    venv, script = JOBS[job]
    command = [*prefix, str(VENVS / venv / "bin/python"), str(HERE / "jobs" / script), str(steps), *more]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def per_step(result: dict) -> float:
    """Return the middle half's mean of the step times, else the loop's time: what outliers of a shared machine leave alone."""
    times = sorted(result["steps_s"])
    if not times:
        return result["loop_s"]
    quarter = len(times) // 4
    return statistics.fmean(times[quarter : len(times) - quarter])


def compare(job: str, pairs: int, steps: int) -> None:
    """Print the ratio of each mode to the bare job."""
    ratios: dict[str, list[tuple[float, float]]] = {mode: [] for mode in MODES}
    for _ in range(pairs):
        for mode, (prefix, _limit) in MODES.items():
            bare, ours = measure([], job, steps), measure(prefix, job, steps)
            ratios[mode].append((ours["loop_s"] / bare["loop_s"], per_step(ours) / per_step(bare)))
    for mode, (_, limit) in MODES.items():
        loops, middles = ([r[i] for r in ratios[mode]] for i in (0, 1))
        bound = f"limit {limit:.1f} %" if limit is not None else ""
        print(
            f"{job:12} {mode:11} loop {100 * (statistics.median(loops) - 1):+6.2f} %"
            f" ({100 * (min(loops) - 1):+.1f} … {100 * (max(loops) - 1):+.1f})"
            f"  middle steps {100 * (statistics.median(middles) - 1):+6.2f} %  {bound}"
        )


def traced_step(job: str, steps: int) -> None:
    """Print what a traced step costs beside an untraced one of the same run: ours, and FULL_TRACE by hand."""
    by_hand = measure([], job, steps, "full")["steps_s"]
    ours = measure([*RUN, "--trace", "every=2"], job, steps)["steps_s"]
    for name, times in (("FULL_TRACE by hand", by_hand), ("tfprof-run every=2", ours)):
        halves = sorted(statistics.median(times[i::2]) for i in (0, 1))
        print(f"{job:12} {name}: a traced step takes {100 * (halves[1] / halves[0] - 1):+.1f} %")


def main() -> None:
    """Measure all that is asked for, in a private instance that is stopped at the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--jobs", default=",".join(JOBS))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(XDG_RUNTIME_DIR=folder, XDG_STATE_HOME=folder)
        os.chmod(folder, 0o700)
        try:
            for job in args.jobs.split(","):
                compare(job, args.pairs, args.steps)
                if job.endswith("session"):
                    traced_step(job, args.steps)
        finally:
            subprocess.run([sys.executable, "-m", "tfprof.collector.cli.main", "stop"], check=False)


if __name__ == "__main__":
    main()
