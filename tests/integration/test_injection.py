"""The injected sitecustomize in every installed interpreter.

It leaves no trace, does no harm, and runs the sitecustomize that it shadows.
"""

import os
import shutil
import subprocess

import pytest
from fakes.armed_job import INTERPRETERS, MODERN, ROOT, environment, name_of

everywhere = pytest.mark.parametrize("python", INTERPRETERS, ids=name_of)
where_jobs_run = pytest.mark.parametrize("python", MODERN, ids=name_of)

SHOW_STATE = """
import sys
print(sys.version)
print([place for place in sys.path if 'inject' in place or 'tfprof' in place])
print([place for place in sys.path_importer_cache if 'inject' in place])
print(len(sys.path))
print(sorted(name for name in ('shim', 'tfprof', 'hook', 'layout', '_tfprof_shim') if name in sys.modules))
"""
#: Packages that the injected file creates.
ROOMS = ("formats", "shim", "shim.channel", "shim.pacing", "shim.tensorflow")
FLAGS = [[], ["-I"], ["-E"], ["-S"], ["-s"], ["-B"], ["-O"], ["-E", "-S"]]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A copy of the shim, since Python 2 writes bytecode beside its files."""
    return copied(tmp_path_factory.mktemp("installed"))


def copied(folder):
    """Copy the packages that run in jobs to ``folder``; return the copy of the shim."""
    for room in ("formats", "shim"):
        shutil.copytree(ROOT / room, folder / room, ignore=shutil.ignore_patterns("__pycache__"))
    return folder / "shim"


@pytest.fixture
def run(installed):
    """Return a function that runs an interpreter and returns (status, output, errors).

    ``path`` are folders to add to the interpreter's path.
    """

    def run(python, *arguments, path=(), armed=True, **more):
        environ = environment("/nowhere", armed=armed, **more)
        places = [str(installed / "inject")] if armed else []
        environ["PYTHONPATH"] = os.pathsep.join([*places, *map(str, path)])
        if not environ["PYTHONPATH"]:
            del environ["PYTHONPATH"]
        done = subprocess.run(
            [str(python), *arguments], env=environ, capture_output=True, text=True, timeout=60, check=False
        )
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.fixture
def theirs(tmp_path):
    """Return a function that makes a folder with the job's own sitecustomize."""

    def make(text):
        (tmp_path / "theirs").mkdir()
        (tmp_path / "theirs/sitecustomize.py").write_text(text)
        return tmp_path / "theirs"

    return make


def usable(python, flags):
    return not (name_of(python).startswith("2.7") and "-I" in flags)


@everywhere
def test_an_interpreter_runs_as_without_tfprof_under_every_flag(run, python):
    for flags in FLAGS:
        if usable(python, flags):
            script = SHOW_STATE if "-S" not in flags else "print(1)"  # without site the folder stays on the path
            assert run(python, *flags, "-c", script) == run(python, *flags, "-c", script, armed=False), flags


@everywhere
def test_the_shadowed_sitecustomize_runs_and_stays_imported(run, python, theirs):
    place = theirs("import sys\nsys.stdout.write('theirs ' + __file__.rpartition('.')[0] + chr(10))\n")
    script = "import sys, sitecustomize; print(sitecustomize.__file__ == sys.modules['sitecustomize'].__file__)"
    found = run(python, "-c", script, path=[place])
    assert found == run(python, "-c", script, path=[place], armed=False)
    assert found[1].startswith("theirs ")


@pytest.mark.parametrize(
    "text",
    [
        "raise ValueError('theirs')",
        "import nothing_of_this_name",
        "raise ImportError('theirs')",
        "import sys\nsys.exit(7)",
        "raise KeyboardInterrupt",
        "this is no Python",
    ],
)
@everywhere
def test_an_error_in_the_shadowed_sitecustomize_is_reported_as_without_tfprof(run, python, theirs, text):
    place = theirs(text + "\n")
    ours, alone = (run(python, "-c", "print('ran')", path=[place], armed=armed) for armed in (True, False))
    assert ours[:2] == alone[:2]
    assert ours[2].strip().splitlines()[-1:] == alone[2].strip().splitlines()[-1:]


@everywhere
def test_an_error_in_the_shim_is_silent(python, tmp_path):
    broken = copied(tmp_path)
    (broken / "core.py").write_text("raise RuntimeError('broken')\n")
    environ = environment("/nowhere", PYTHONPATH=str(broken / "inject"))
    del environ["TFPROF_DEBUG"]
    command = [str(python), "-c", "import sys; print([name for name in sys.modules if name.startswith('_tfprof')])"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")
    environ["TFPROF_DEBUG"] = "1"
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=True)
    assert ("broken" in done.stderr) == (python in MODERN)


@everywhere
def test_a_missing_shim_is_silent(python, tmp_path):
    broken = tmp_path / "shim"
    shutil.copytree(ROOT / "shim/inject", broken / "inject")
    environ = environment("/nowhere", PYTHONPATH=str(broken / "inject"))
    del environ["TFPROF_DEBUG"]
    done = subprocess.run(
        [str(python), "-c", "print(1)"], env=environ, capture_output=True, text=True, timeout=60, check=True
    )
    assert (done.stdout, done.stderr) == ("1\n", "")


@everywhere
def test_nothing_is_armed_without_a_launch(run, python):
    script = "import sys; print(len(sys.meta_path))"
    for launch in ("", "nonsense", "12@/tmp", "zzzzzzzzzzzzzzzz@/tmp"):
        assert run(python, "-c", script, TFPROF_RUN=launch) == run(python, "-c", script, armed=False)


@where_jobs_run
def test_an_armed_interpreter_loads_little_and_keeps_bytecode(run, python, tmp_path):
    copy = copied(tmp_path)
    environ = environment("/nowhere", PYTHONPATH=str(copy / "inject"))
    script = (
        "import sys; print(len(set(sys.modules)), sorted(name for name in sys.modules if name.startswith('_tfprof')))"
    )
    command = [str(python), "-c", script]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=True)
    loaded = done.stdout.partition(" ")[2]
    own = ["shim.clock", "shim.core", "shim.guard", "shim.hook", "shim.process_events", "shim.tensorflow.patches"]
    if name_of(python).startswith("3.7"):
        own.append("shim.codes")  # it replaces code there, as later versions of Python do themselves
    assert loaded.strip() == str(sorted(["_tfprof", *("_tfprof." + name for name in (*ROOMS, *own))]))
    alone = run(python, "-c", script, armed=False)[1]
    # The shim's, sitecustomize, time.
    assert int(done.stdout.split()[0]) <= int(alone.split()[0]) + len(own) + 8
    assert len(list((copy / "__pycache__").glob("core.*.pyc"))) == 1


@where_jobs_run
def test_children_inherit_the_environment_that_arms_them(run, python):
    child = "import sys; print('_tfprof.shim.core' in sys.modules)"
    script = f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', {child!r}]))"
    assert run(python, "-c", script) == (0, "True\n", "")


@where_jobs_run
def test_a_setuid_program_is_not_armed(python):
    script = (
        "import os, sys; os.geteuid = lambda: 12345\n"
        f"package = type(sys)('_tfprof'); package.__path__ = [{str(ROOT)!r}]; sys.modules['_tfprof'] = package\n"
        "from _tfprof.shim import core; core.arm(os.environ); print(core.state(), len(sys.meta_path))\n"
        "import posix; os.geteuid = posix.geteuid\n"
        "core.arm(os.environ); print(core.state() is None, len(sys.meta_path))"
    )
    environ = environment("/nowhere", armed=False, TFPROF_RUN="0000000000000001@/nowhere")
    done = subprocess.run(
        [str(python), "-c", script], env=environ, capture_output=True, text=True, timeout=60, check=True
    )
    (none, before), (armed, after) = (line.split() for line in done.stdout.splitlines())
    assert (none, armed, int(after) - int(before)) == ("None", "False", 1)
