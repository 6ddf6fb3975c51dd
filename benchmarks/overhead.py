"""What a job pays: tfprof-run off / armed / default / all against the bare job, as ratios of paired runs.

Each pair runs at the same time, the bare job on one core, ours with the daemons that it starts on another, and then the other way
round: what else the machine does hits both. usage: benchmarks/overhead.py [--pairs 2] [--steps 1500]
[--jobs tf1-session,tf2-session,tf2-keras] [--modes off,armed,default,all]. Environments: .venvs, or $TFPROF_TEST_VENVS.
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


def begin(prefix: list[str], job: str, steps: int, core: int, folder: str, *more: str) -> subprocess.Popen:
    """Start one job on ``core`` with an instance of its own in ``folder``."""
    venv, script = JOBS[job]
    command = [*prefix, str(VENVS / venv / "bin/python"), str(HERE / "jobs" / script), str(steps), *more]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "XDG_RUNTIME_DIR": folder, "XDG_STATE_HOME": folder}
    return subprocess.Popen(
        ["taskset", "-c", str(core), *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )


def end(process: subprocess.Popen) -> dict:
    """Return what the job printed: loop_s, cpu_s, steps_s."""
    out, _ = process.communicate()
    if process.returncode:
        sys.exit(f"{process.args} ended with {process.returncode}")
    return json.loads(out.splitlines()[-1])


def pair(prefix: list[str], job: str, steps: int, core: int) -> tuple[dict, dict]:
    """Run the bare job and ours at the same time, the bare one on ``core``; return what both printed."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o700)
        ours = begin(prefix, job, steps, 1 - core, folder)
        bare = begin([], job, steps, core, folder)
        results = end(bare), end(ours)
        stop = [sys.executable, "-m", "tfprof.collector.cli.main", "stop", "--store", f"{folder}/tfprof"]
        subprocess.run(stop, env={**os.environ, "XDG_RUNTIME_DIR": folder}, capture_output=True, check=False)
        return results


def per_step(result: dict) -> float:
    """Return the middle half's mean of the step times, else the loop's time: what outliers of a shared machine leave alone."""
    times = sorted(result["steps_s"])
    if not times:
        return result["loop_s"]
    quarter = len(times) // 4
    return statistics.fmean(times[quarter : len(times) - quarter])


def compare(job: str, modes: list[str], pairs: int, steps: int) -> None:
    """Print the ratio of each mode to the bare job."""
    ratios: dict[str, list[tuple[float, float]]] = {mode: [] for mode in modes}
    for number in range(2 * pairs):
        for mode in modes:
            bare, ours = pair(MODES[mode][0], job, steps, number % 2)
            ratios[mode].append((ours["loop_s"] / bare["loop_s"], per_step(ours) / per_step(bare)))
    for mode in modes:
        limit = MODES[mode][1]
        loops, middles = ([r[i] for r in ratios[mode]] for i in (0, 1))
        bound = f"limit {limit:.1f} %" if limit is not None else ""
        print(
            f"{job:12} {mode:11} loop {100 * (statistics.median(loops) - 1):+6.2f} %"
            f" ({100 * (min(loops) - 1):+.1f} … {100 * (max(loops) - 1):+.1f})"
            f"  middle steps {100 * (statistics.median(middles) - 1):+6.2f} %  {bound}"
        )


def traced_step(job: str, steps: int) -> None:
    """Print what a traced step costs beside an untraced one of the same run: ours, and FULL_TRACE by hand."""
    by_hand, ours = (times["steps_s"] for times in traced_pair(job, steps))
    for name, times in (("FULL_TRACE by hand", by_hand), ("tfprof-run every=2", ours)):
        halves = sorted(statistics.median(times[i::2]) for i in (0, 1))
        print(f"{job:12} {name}: a traced step takes {100 * (halves[1] / halves[0] - 1):+.1f} %")


def traced_pair(job: str, steps: int) -> tuple[dict, dict]:
    """Run the job with every second step traced by hand, and by us, one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o700)
        return end(begin([], job, steps, 0, folder, "full")), end(
            begin([*RUN, "--trace", "every=2"], job, steps, 0, folder)
        )


def main() -> None:
    """Measure all that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=2)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--jobs", default=",".join(JOBS))
    parser.add_argument("--modes", default=",".join(MODES))
    args = parser.parse_args()
    for job in args.jobs.split(","):
        compare(job, args.modes.split(","), args.pairs, args.steps)
        if job.endswith("session"):
            traced_step(job, args.steps)


if __name__ == "__main__":
    main()
