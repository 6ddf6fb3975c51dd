"""The injected sitecustomize in every installed interpreter.

It leaves nothing behind, does no harm, and runs the sitecustomize that it shadows.

Tests shim/inject/sitecustomize.py.
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
PACKAGES = ("formats", "shim", "shim.channel", "shim.cpython", "shim.pacing", "shim.steps", "shim.tensorflow")
FLAGS = [[], ["-I"], ["-E"], ["-S"], ["-s"], ["-B"], ["-O"], ["-E", "-S"]]


@pytest.fixture(scope="module")
def shim_copy(tmp_path_factory):
    """A copy of the shim, since Python 2 writes bytecode beside the files that it imports."""
    return copy_shim(tmp_path_factory.mktemp("installed"))


def copy_shim(folder):
    """Copy the packages that run in jobs to ``folder``; return the copy of the shim."""
    for package in ("formats", "shim"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    return folder / "shim"


@pytest.fixture
def run(shim_copy):
    """Return a function that runs an interpreter and returns (status, output, errors).

    ``path`` is a list of folders to add to the interpreter's path.
    """

    def run(python, *arguments, path=(), armed=True, **variables):
        environ = environment("/nowhere", armed=armed, **variables)
        folders = [str(shim_copy / "inject")] if armed else []
        environ["PYTHONPATH"] = os.pathsep.join([*folders, *map(str, path)])
        if not environ["PYTHONPATH"]:
            del environ["PYTHONPATH"]
        completed = subprocess.run(
            [str(python), *arguments], env=environ, capture_output=True, text=True, timeout=60, check=False
        )
        return completed.returncode, completed.stdout, completed.stderr

    return run


@pytest.fixture
def job_customization(tmp_path):
    """Return a function that makes a folder with the job's own sitecustomize."""

    def make(text):
        (tmp_path / "theirs").mkdir()
        (tmp_path / "theirs/sitecustomize.py").write_text(text)
        return tmp_path / "theirs"

    return make


def supports(python, flags):
    return not (name_of(python).startswith("2.7") and "-I" in flags)


@everywhere
def test_an_interpreter_runs_as_without_tfprof_under_every_flag(run, python):
    for flags in FLAGS:
        if supports(python, flags):
            script = SHOW_STATE if "-S" not in flags else "print(1)"  # without site the folder stays on the path
            assert run(python, *flags, "-c", script) == run(python, *flags, "-c", script, armed=False), flags


@everywhere
def test_the_shadowed_sitecustomize_runs_and_stays_imported(run, python, job_customization):
    folder = job_customization("import sys\nsys.stdout.write('theirs ' + __file__.rpartition('.')[0] + chr(10))\n")
    script = "import sys, sitecustomize; print(sitecustomize.__file__ == sys.modules['sitecustomize'].__file__)"
    result = run(python, "-c", script, path=[folder])
    assert result == run(python, "-c", script, path=[folder], armed=False)
    assert result[1].startswith("theirs ")


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
def test_an_error_in_the_shadowed_sitecustomize_is_reported_as_without_tfprof(run, python, job_customization, text):
    folder = job_customization(text + "\n")
    with_tfprof, without_tfprof = (
        run(python, "-c", "print('ran')", path=[folder], armed=armed) for armed in (True, False)
    )
    assert with_tfprof[:2] == without_tfprof[:2]
    assert with_tfprof[2].strip().splitlines()[-1:] == without_tfprof[2].strip().splitlines()[-1:]


@everywhere
def test_an_error_in_the_shim_is_silent(python, tmp_path):
    broken = copy_shim(tmp_path)
    (broken / "core.py").write_text("raise RuntimeError('broken')\n")
    environ = environment("/nowhere", PYTHONPATH=str(broken / "inject"))
    del environ["TFPROF_DEBUG"]
    command = [str(python), "-c", "import sys; print([name for name in sys.modules if name.startswith('_tfprof')])"]
    completed = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=True)
    assert (completed.stdout, completed.stderr) == ("[]\n", "")
    environ["TFPROF_DEBUG"] = "1"
    completed = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=True)
    assert ("broken" in completed.stderr) == (python in MODERN)


@everywhere
def test_a_missing_shim_is_silent(python, tmp_path):
    broken = tmp_path / "shim"
    shutil.copytree(ROOT / "shim/inject", broken / "inject")
    environ = environment("/nowhere", PYTHONPATH=str(broken / "inject"))
    del environ["TFPROF_DEBUG"]
    completed = subprocess.run(
        [str(python), "-c", "print(1)"], env=environ, capture_output=True, text=True, timeout=60, check=True
    )
    assert (completed.stdout, completed.stderr) == ("1\n", "")


@everywhere
def test_nothing_is_armed_without_a_launch(run, python):
    script = "import sys; print(len(sys.meta_path))"
    for launch in ("", "nonsense", "12@/tmp", "zzzzzzzzzzzzzzzz@/tmp"):
        assert run(python, "-c", script, TFPROF_RUN=launch) == run(python, "-c", script, armed=False)


@where_jobs_run
def test_an_armed_interpreter_loads_little_and_keeps_bytecode(run, python, tmp_path):
    copy = copy_shim(tmp_path)
    environ = environment("/nowhere", PYTHONPATH=str(copy / "inject"))
    script = (
        "import sys; print(len(set(sys.modules)), sorted(name for name in sys.modules if name.startswith('_tfprof')))"
    )
    command = [str(python), "-c", script]
    completed = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=True)
    loaded_names = completed.stdout.partition(" ")[2]
    own_modules = [
        "shim.arming",
        "shim.core",
        "shim.cpython.codes",
        "shim.cpython.version",
        "shim.guard",
        "shim.hook",
        "shim.own_os",
        "shim.process_events",
        "shim.tensorflow.patches",
    ]
    assert loaded_names.strip() == str(sorted(["_tfprof", *("_tfprof." + name for name in (*PACKAGES, *own_modules))]))
    unarmed = run(python, "-c", script, armed=False)[1]
    # Besides its own modules and packages, the shim loads sitecustomize, time and _tfprof.
    assert int(completed.stdout.split()[0]) <= int(unarmed.split()[0]) + len(own_modules) + len(PACKAGES) + 3
    assert len(list((copy / "__pycache__").glob("core.*.pyc"))) == 1


@where_jobs_run
def test_children_inherit_the_environment_that_arms_them(run, python):
    child = "import sys; print('_tfprof.shim.core' in sys.modules)"
    script = f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', {child!r}]))"
    assert run(python, "-c", script) == (0, "True\n", "")


@where_jobs_run
def test_a_setuid_program_is_not_armed(python):
    script = (
        "import os, sys\n"
        f"package = type(sys)('_tfprof'); package.__path__ = [{str(ROOT)!r}]; sys.modules['_tfprof'] = package\n"
        "from _tfprof.shim import arming, core; core.os.geteuid = lambda: 12345\n"
        "arming.arm(os.environ); print(core.state(), len(sys.meta_path)); core.os.geteuid = os.geteuid\n"
        "arming.arm(os.environ); print(core.state() is None, len(sys.meta_path))"
    )
    environ = environment("/nowhere", armed=False, TFPROF_RUN="0000000000000001@/nowhere")
    completed = subprocess.run(
        [str(python), "-c", script], env=environ, capture_output=True, text=True, timeout=60, check=True
    )
    (setuid_state, before), (is_disarmed, after) = (line.split() for line in completed.stdout.splitlines())
    assert (setuid_state, is_disarmed, int(after) - int(before)) == ("None", "False", 1)
