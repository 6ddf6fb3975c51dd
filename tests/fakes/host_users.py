"""Other users of this host, for tests that root runs: commands and Python code as them."""

import os
import shutil
import site
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
#: Numbers of users that have no account here.
SERVICE, ADA, BOB, PAT = 12_000, 12_345, 12_346, 12_347


def as_user(uid, *words, groups=()):
    """Return a command that runs ``words`` as the user ``uid``, in further ``groups``."""
    further = f"--groups={','.join(map(str, groups))}" if groups else "--clear-groups"
    return ["setpriv", "--reuid", str(uid), "--regid", str(uid), further, *map(str, words)]


def readable_installation(folder):
    """Make a folder ``bin`` with Python and this tfprof that all users may run.

    None if there is no such Python. The Python that runs the tests may be in the home of root.
    """
    packages = next(path for path in site.getsitepackages() if path.startswith(sys.prefix))
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/{version}"):
        code = f"import sys; sys.path.append({packages!r}); import zmq"
        command = as_user(ADA, "sh", "-c", f'exec {python} -c "{code}"')  # setpriv itself may still do what root may
        if os.path.exists(python) and not subprocess.run(command, capture_output=True, check=False).returncode:
            break
    else:
        return None
    libraries = folder / f"lib/{version}/site-packages"
    libraries.mkdir(parents=True)
    (folder / "bin").mkdir()
    (libraries / "here.pth").write_text(f"import site; site.addsitedir({packages!r})\n")
    (folder / "pyvenv.cfg").write_text(f"home = {os.path.dirname(os.path.realpath(python))}\n")
    for name in ("python", "python3", version):
        (folder / "bin" / name).symlink_to(os.path.realpath(python))
    own = Path(sys.executable).parent
    for path in own.glob("tfprof*"):
        shutil.copy(path, folder / "bin" / path.name)
    isolated = folder / "bin/tfprof-isolated"
    isolated.write_text(isolated.read_text().replace(str(own), str(folder / "bin")))
    return folder / "bin"


class HostUser:
    """One user with a home of their own below ``folder``, who uses ``store``."""

    def __init__(self, folder, programs, store, uid, groups=(), **variables):
        self.uid, self.groups, self.programs, self.store = uid, groups, programs, store
        self.home = folder / f"home{uid}"
        for path in (self.home, self.home / "run"):
            path.mkdir(mode=0o700)
            os.chown(path, uid, uid)
        self.environment = {
            "PATH": f"{programs}:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(self.home / "run"),
            "PYTHONPATH": str(TESTS),
            "TFPROF_STORE": str(store),
            **variables,
        }

    def start(self, *words, **options):
        """Start a program beside tfprof, or one of the system."""
        program = self.programs / words[0]
        command = as_user(self.uid, program if program.exists() else words[0], *words[1:], groups=self.groups)
        return subprocess.Popen(command, env=self.environment, text=True, cwd="/", **options)

    def run(self, *words, timeout_s=120):
        """Run a program; return what it did."""
        process = self.start(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            out, errors = process.communicate(timeout=timeout_s)
        finally:
            process.kill()
        return subprocess.CompletedProcess(words, process.returncode, out, errors)

    def python(self, code, **options):
        """Run Python code, which can import `fakes` and `tfprof`; return its output."""
        done = self.run("python", "-c", code, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def stop(self):
        """Stop the user's daemons."""
        self.run("tfprof", "stop")
