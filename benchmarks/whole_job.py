"""CPU time of a whole job with tfprof-run, from its first instruction to its end.

The job trains a small convolutional network in a session, with one thread for its ops. It runs in
each mode in turns: bare, armed (no step is traced) and by default. The processor time of the job's
own process, its page faults and its context switches come from the kernel (`wait4`), so that other
load of the machine disturbs them little. For each mode the script prints the mean difference from
the bare run of the same round, with its standard error. The daemons are not part of it.

usage: benchmarks/whole_job.py [--rounds 8] [--batches 300] [--venv tf2]. Environments: .venvs, or
$TFPROF_TEST_VENVS.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from _jobs import HERE, RUN, VENVS, environment, stop

JOB = HERE / "jobs" / "lenet.py"
MODES = {"bare": [], "armed": [*RUN, "--trace", "steps=1000000000-1000000000"], "default": RUN}
#: Runs a command and writes what the kernel counted of its process into a file.
METER = """
import json, os, sys
pid = os.fork()
if not pid:
    os.execv(sys.argv[2], sys.argv[2:])
_, status, used = os.wait4(pid, 0)
with open(sys.argv[1], "w") as file:
    json.dump({"user": used.ru_utime, "system": used.ru_stime, "faults": used.ru_minflt,
               "waits": used.ru_nvcsw, "preempted": used.ru_nivcsw}, file)
sys.exit(status != 0)
"""


def run(mode: str, python: Path, batches: int) -> dict[str, float]:
    """Run the job once; return what its process used, times in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder, "figures")
        meter = [sys.executable, "-I", "-S", "-c", METER, str(figures)]
        command = [*MODES[mode], *meter, str(python), str(JOB), str(batches)]
        subprocess.run(command, check=True, env=environment(folder), stderr=subprocess.DEVNULL)
        stop(folder)
        used: dict[str, float] = json.loads(figures.read_text())
    return {"cpu": used["user"] + used["system"], **used}


def main() -> None:
    """Print the figures of all modes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--batches", type=int, default=300)
    parser.add_argument("--venv", default="tf2")
    args = parser.parse_args()
    python = VENVS / args.venv / "bin" / "python"
    names = list(MODES)
    rounds = []
    for number in range(args.rounds):
        order = names[number % len(names) :] + names[: number % len(names)]
        rounds.append({mode: run(mode, python, args.batches) for mode in order})
    bare = {name: statistics.mean(each["bare"][name] for each in rounds) for name in rounds[0]["bare"]}
    print("bare    " + "  ".join(f"{name} {value:.3f}" for name, value in bare.items()))
    for mode in names[1:]:
        texts = []
        for name, value in bare.items():
            differences = [each[mode][name] - each["bare"][name] for each in rounds]
            error = statistics.stdev(differences) / len(differences) ** 0.5 if args.rounds > 1 else float("nan")
            texts.append(f"{name} {statistics.mean(differences):+.3f} ± {error:.3f}")
            if name == "cpu":
                texts[-1] += f" ({100 * statistics.mean(differences) / value:+.2f} ± {100 * error / value:.2f} %)"
        print(f"{mode:7} " + "  ".join(texts), flush=True)


if __name__ == "__main__":
    main()
