"""Overhead of tfprof-run in the modes off, untraced, default and all, compared with the bare job.

All modes of a job are started at once, each with a separate agent and collector. They then take
turns of half a second on the last core. In a mode's turn only its job and its daemons run on that
core, which is the worst case for the job. At other times its daemons are on the first core. Other
load of the machine changes more slowly than the turns, so it affects all modes equally. Two
processes of the same program can differ in speed permanently, because of the position of their
memory. Therefore all processes are started several times.

For each mode the script prints its overhead over the bare job in percent: the mean of all turns,
the mean of the middle half of the turns (also for each start), and the overhead of its best start
over the best start of the bare job. If two processes of the same program differ by more than the
limits, the overhead "within" is more reliable: it compares the turns of a process with turns of the
same process without hooks and with its daemons on the first core. The page faults a step (in the
median turn of each start) identify a process with badly placed memory: such a process takes
thousands of them in each step, other processes take none.

With --apart the daemons are on the first core in all turns, as on a machine with free cores.

usage: benchmarks/overhead.py [--starts 5] [--rounds 25] [--turn 0.5]
[--jobs tf2-session,tf2-keras,tf1-session] [--modes "bare again,off,untraced,default,all"]
[--apart]. Environments: .venvs, or $TFPROF_TEST_VENVS.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import psutil
from _jobs import HERE, RUN, VENVS, environment, is_installed, stop
from _limits import report

JOBS = {
    "tf2-session": ("tf2", "session_cnn.py"),
    "tf2-keras": ("tf2", "keras_fit.py"),
    "tf1-session": ("tf1", "session_cnn.py"),
}
#: By mode: how the job is started, and the limit of its overhead in percent.
MODES: dict[str, tuple[list[str], float | None]] = {
    "bare": ([], None),
    "bare again": ([], None),  # shows the noise of this machine
    "off": ([*RUN, "--trace", "off"], 0.5),
    "untraced": ([*RUN, "--trace", "steps=1000000000-1000000000"], 0.5),  # a step that no job reaches
    "default": (RUN, 2.0),
    "all": ([*RUN, "--trace", "all"], None),
}
WARM_UP = 60
CORE = (os.cpu_count() or 1) - 1


class Runner:
    """One job that waits for its turns.

    Between the turns its launcher and daemons are on the first core.
    """

    turn_core = CORE  # core of the launcher and the daemons during turns

    def __init__(self, prefix: list[str], job: str, folder: str, *arguments: str) -> None:
        venv, script = JOBS[job]
        self._folder = folder
        command = [*prefix, str(VENVS / venv / "bin/python"), str(HERE / "jobs" / script), *arguments]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            ["taskset", "-c", str(CORE), *command],
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment(folder),
        )
        self.page_faults: list[float] = []  # page faults per step, a number for each turn
        self._request(f"{WARM_UP}")
        script_path = str(HERE / "jobs" / script)
        processes = [process for process in psutil.process_iter() if self._belongs(process)]
        self._helpers = [
            process for process in processes if script_path not in process.cmdline()[:2] and process.pid != os.getpid()
        ]
        self._move_helpers(0)

    def _belongs(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get("XDG_RUNTIME_DIR") == self._folder
        except psutil.Error:
            return False

    def _move_helpers(self, core: int) -> None:
        for thread in (thread for helper in self._helpers for thread in helper.threads()):
            with suppress(ProcessLookupError):
                os.sched_setaffinity(thread.id, {core})

    def _request(self, line: str) -> dict:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            sys.exit(f"{self._process.args} ended with {self._process.wait()}")
        return json.loads(answer)

    def turn(self, steps: int) -> float:
        """Run ``steps`` steps with the daemons on core ``turn_core``; return the seconds a step."""
        return self._step_time(self.run_steps(steps), steps)

    def _step_time(self, answer: dict, steps: int) -> float:
        self.page_faults.append(answer["page_faults"] / steps)
        return answer["s"] / steps

    def run_steps(self, count: int) -> dict:
        """Run ``count`` steps with the daemons on core ``turn_core``; return the job's answer."""
        self._move_helpers(self.turn_core)
        try:
            return self._request(f"{count}")
        finally:
            self._move_helpers(0)

    def bare_turn(self, steps: int) -> float:
        """Run ``steps`` steps without hooks; return the seconds a step.

        The daemons stay on the first core.
        """
        return self._step_time(self._request(f"{steps} bare"), steps)

    def end(self) -> None:
        """End the job and its daemons."""
        self._process.communicate()
        stop(self._folder)


@contextmanager
def runner(prefix: list[str], job: str, *arguments: str) -> Iterator[Runner]:
    """Start a job that takes turns, with a private store and private daemons."""
    with tempfile.TemporaryDirectory() as folder:
        job_runner = Runner(prefix, job, folder, *arguments)
        try:
            yield job_runner
        finally:
            job_runner.end()


def compare(
    job: str, modes: list[str], starts: int, rounds: int, turn_s: float
) -> Iterator[tuple[str, float, str, float]]:
    """Print the overhead of each mode over the bare job and over its processes without hooks.

    Yield the latter for the modes that have a limit.
    """
    results = [one_start(job, modes, rounds, turn_s) for _ in range(starts)]
    with_hooks = [start for start, _, _ in results]
    best_times = {mode: min(statistics.median(start[mode]) for start in with_hooks) for mode in modes}
    for mode in modes[1:]:
        start_ratios = [
            [hooked / bare for hooked, bare in zip(start[mode], start["bare"], strict=True)] for start in with_hooks
        ]
        limit = MODES[mode][1]
        per_start = " ".join(f"{middle(ratios):+.2f}" for ratios in start_ratios)
        all_ratios = [ratio for ratios in start_ratios for ratio in ratios]
        mean = 100 * (statistics.fmean(all_ratios) - 1)
        within_ratios = [
            [hooked / bare for hooked, bare in zip(start[mode], without_hooks[mode], strict=True)]
            for start, without_hooks, _ in results
        ]
        within_per_start = " ".join(f"{middle(ratios):+.2f}" for ratios in within_ratios)
        best = 100 * (best_times[mode] / best_times["bare"] - 1)
        means = f"{mean:+6.2f} %, middle {middle(all_ratios):+6.2f} %, best {best:+6.2f} %"
        print(f"{job:12} {mode:11} {means}  (starts: {per_start})", flush=True)
        within = middle([ratio for ratios in within_ratios for ratio in ratios])
        print(f"{'':24} within {within:+6.2f} %  (starts: {within_per_start})", flush=True)
        if limit is not None:
            yield f"{job} {mode}, within", within, "%", limit
    for mode in modes:
        per_start = " ".join(f"{page_faults[mode]:.0f}" for _, _, page_faults in results)
        print(f"{job:12} {mode:11} page faults a step: {per_start}", flush=True)


def middle(ratios: list[float]) -> float:
    """Return the mean of the middle half of ``ratios``, as percent above 1."""
    quarter = len(ratios) // 4
    return 100 * (statistics.fmean(sorted(ratios)[quarter : len(ratios) - quarter]) - 1)


#: Seconds a step in each turn, by mode.
Turns = dict[str, list[float]]


def one_start(job: str, modes: list[str], rounds: int, turn_s: float) -> tuple[Turns, Turns, dict[str, float]]:
    """Start a job in each mode, run turns of all modes in rounds, and return the measurements.

    They are, by mode: the seconds a step in each turn with hooks, the seconds a step in each turn
    without hooks, and the page faults a step in the median turn.
    """
    with_hooks: Turns = {mode: [] for mode in modes}
    without_hooks: Turns = {mode: [] for mode in modes}
    with ExitStack() as stack:
        runners = {mode: stack.enter_context(runner(MODES[mode][0], job)) for mode in modes}
        steps = max(2, round(turn_s / runners["bare"].turn(WARM_UP)))
        for number in range(rounds):
            first = number % len(modes)
            for mode in modes[first:] + modes[:first]:
                turns = [(with_hooks, runners[mode].turn), (without_hooks, runners[mode].bare_turn)]
                for times, turn in turns[:: 1 if number % 2 else -1]:
                    times[mode].append(turn(steps))
        return (
            with_hooks,
            without_hooks,
            {mode: statistics.median(job_runner.page_faults) for mode, job_runner in runners.items()},
        )


def compare_traced_steps(job: str, turn_s: float) -> None:
    """Print how much longer a traced step takes than an untraced one of the same run.

    One run is traced by tfprof, the other by the job itself with FULL_TRACE.
    """
    methods = {"FULL_TRACE by hand": ([], ["full"]), "tfprof-run every=2": ([*RUN, "--trace", "every=2"], [])}
    for name, (prefix, arguments) in methods.items():
        with runner(prefix, job, *arguments) as job_runner:
            steps = max(100, round(4 * turn_s / job_runner.turn(WARM_UP)) // 2 * 2)
            times = job_runner.run_steps(steps)["steps_s"]
        untraced, traced = sorted(statistics.median(times[parity::2]) for parity in (0, 1))
        print(f"{job:12} {name}: a traced step takes {100 * (traced / untraced - 1):+.1f} %", flush=True)


def main() -> None:
    """Measure the selected jobs and modes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--turn", type=float, default=0.5)
    parser.add_argument("--jobs", default=",".join(JOBS))
    parser.add_argument("--modes", default=",".join(list(MODES)[1:]))
    parser.add_argument("--apart", action="store_true")
    args = parser.parse_args()
    Runner.turn_core = 0 if args.apart else CORE
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # the exit also ends the started processes
    rows = []
    for job in (job for job in args.jobs.split(",") if is_installed(JOBS[job][0])):
        rows += compare(job, ["bare", *args.modes.split(",")], args.starts, args.rounds, args.turn)
        if job.endswith("session"):
            compare_traced_steps(job, args.turn)
    report(rows)


if __name__ == "__main__":
    main()
