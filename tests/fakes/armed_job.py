"""Starts a job with the shim armed, as `tfprof-run` does, and opens its channel."""

import os
import subprocess
import sys
from pathlib import Path

from fakes.channel_reader import ChannelReader, channels

ROOT = Path(__file__).resolve().parents[2]
FAKE_TENSORFLOW = ROOT / "tests/fakes/faketf"
JOBS = ROOT / "tests/integration/jobs"
LAUNCH = 0x1234


def environment(folder=None, *, fake=False, armed=True, **variables):
    """Return the environment of a job.

    ``armed`` arms the job; it announces its channel in the instance folder ``folder``. ``fake``
    puts the fake TensorFlow on the job's import path. ``variables`` are added.
    """
    result = {name: value for name, value in os.environ.items() if not name.startswith(("TFPROF_", "PYTHON"))}
    result["TF_CPP_MIN_LOG_LEVEL"] = "3"
    path = [str(FAKE_TENSORFLOW)] if fake else []
    if armed:
        path.insert(0, str(ROOT / "shim/inject"))
        result["TFPROF_RUN"] = f"{LAUNCH:016x}@{folder}"
        result["TFPROF_DEBUG"] = "1"
    if path:
        result["PYTHONPATH"] = os.pathsep.join(path)
    return {**result, **variables}


#: Code that lets the system refuse memory files to the shim. Its file name is like the shim's, so
#: that its error is not one of the job.
REFUSING_MEMORY_FILES = """import sys
exec(compile("def refuse(*_): raise PermissionError(1, 'Operation not permitted')", "<tfprof/refuse.py>", "exec"))
sys.modules["_tfprof.shim.own_os"].os.memfd_create = refuse
"""


class ArmedJob:
    """A running job that prints ``ready`` when its channel can be read, and waits for a line."""

    def __init__(self, python, script, folder, *arguments, fake=False, **variables):
        (Path(folder) / "announce").mkdir(exist_ok=True, parents=True)
        self.folder = Path(folder)
        command = [str(python), "-W", "ignore", str(script), *arguments]
        self.process = subprocess.Popen(
            command,
            env=environment(folder, fake=fake, **variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.output = []

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    @property
    def pid(self):
        """The job's process id."""
        return self.process.pid

    def until_ready(self):
        """Wait until the job prints ``ready``; its earlier lines are in ``output``."""
        for line in self.process.stdout:
            if line == "ready\n":
                return self
            self.output.append(line.rstrip("\n"))
        raise AssertionError("the job ended early: " + self.process.stderr.read())

    def reader(self):
        """Open the job's only channel."""
        return ChannelReader.of_process(self.pid)

    def channels(self):
        """Return the paths of the job's open channels."""
        return channels(self.pid)

    def announcements(self):
        """Return the announcements: {file name: text}."""
        return {path.name: path.read_text() for path in (self.folder / "announce").iterdir()}

    def go_on(self):
        """Let the job continue after ``ready``."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self

    def finish(self):
        """Let the job end, and return (status, stdout lines, stderr)."""
        out, error = self.process.communicate("\n", timeout=60)
        self.output += out.splitlines()
        return self.process.returncode, self.output, error


def run_unarmed(python, script, *arguments, **variables):
    """Run ``script`` without the shim and return (status, stdout lines, stderr)."""
    completed = subprocess.run(
        [str(python), "-W", "ignore", str(script), *arguments],
        env=environment(armed=False, **variables),
        input="\n" * 8,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return completed.returncode, [line for line in completed.stdout.splitlines() if line != "ready"], completed.stderr


INTERPRETERS = [Path(sys.executable), *sorted(Path("~/.pyenv/versions").expanduser().glob("*/bin/python"))]
MODERN = [python for python in INTERPRETERS if python.parents[1].name[:3] not in ("2.7", "3.6")]


def name_of(python):
    """Return the name of an interpreter for a test's id."""
    return Path(python).parents[1].name
