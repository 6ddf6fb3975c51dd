"""Variables that steer a Python reach the job unchanged, and no Python of tfprof itself."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.forks import ForkServer
from fakes.numbered_job import numbered_job
from fakes.polling import until
from house.tree import ROOT

BIN = Path(sys.executable).parent
LOOP = Path(__file__).parent / "jobs/attach_loop.py"
#: The variables that CPython 3.7 to 3.14 and its standard library read, by documentation and source
#: (`getenv`, `config_get_env`, `env_to_dict`, `os.environ`), without their first six letters.
NAMES = """
    ASYNCIODEBUG BREAKPOINT CASEOK COERCECLOCALE DEBUG DEVMODE DOCS DONTWRITEBYTECODE DUMPREFS DUMPREFSFILE EXECUTABLE
    FAULTHANDLER HASHSEED HOME INSPECT INTMAXSTRDIGITS IOENCODING LEGACYWINDOWSFSENCODING LEGACYWINDOWSSTDIO MALLOC
    MALLOCSTATS NODEBUGRANGES NOUSERSITE OLDPARSER OPTIMIZE PERFSUPPORT PLATLIBDIR PROFILEIMPORTTIME
    PYCACHEPREFIX SAFEPATH SHOWALLOCCOUNT SHOWREFCOUNT STARTUP THREADDEBUG TRACEMALLOC TZPATH UNBUFFERED USERBASE UTF8
    VERBOSE WARNDEFAULTENCODING WARNINGS _BASIC_REPL _COLORS _CONTEXT_AWARE_WARNINGS _CPU_COUNT _DISABLE_REMOTE_DEBUG
    _FROZEN_MODULES _GIL _HISTORY _JIT _PERF_JIT_SUPPORT _PRESITE _THREAD_INHERIT_CONTEXT _TLBC
"""
VARIABLES = (
    *("PYTHON" + name for name in NAMES.split()),
    "_PYTHON_HOSTRUNNER",
    "_PYTHON_HOST_PLATFORM",
    "_PYTHON_PROJECT_BASE",
    "_PYTHON_SYSCONFIGDATA_NAME",
    "_PYTHON_SYSCONFIGDATA_PATH",
    "__PYVENV_LAUNCHER__",
    "MIMALLOC_SHOW_STATS",
    "MIMALLOC_VERBOSE",
    "mimalloc_verbose",
)
#: No Python works with this value of PYTHONHOME, PYTHONEXECUTABLE, PYTHONMALLOC, ….
VALUE = "/nowhere/python  'x' \"y\" $HOME\nsecond line"

STEPS = numbered_job(100)

#: The tests of this file share a store, so that its daemons start once.
pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("shared_store")]


def run(program: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *arguments], env={**os.environ, **variables}, capture_output=True, text=True, timeout=120, check=False
    )


def environment_of_job(program: Path, **variables: str) -> dict[str, str]:
    completed = run(program, "--quiet", "env", "-0", **variables)
    assert (completed.returncode, completed.stderr) == (0, "")
    return dict(entry.split("=", 1) for entry in completed.stdout.split("\0") if entry)


@pytest.fixture(scope="module", params=["compiled", "shell"])
def launcher(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The launcher with each of the two starters."""
    if request.param == "compiled":
        return BIN / "tfprof-run"
    folder: Path = tmp_path_factory.mktemp("bin")
    shutil.copy2(BIN / "tfprof-isolated", folder)
    shutil.copy2(BIN / "tfprof-run", folder)  # for its mode
    shutil.copyfile(ROOT / "commands/starter.sh", folder / "tfprof-run")
    return folder / "tfprof-run"


@pytest.mark.parametrize("name", VARIABLES)
def test_a_job_starts_and_gets_the_variable_unchanged(launcher: Path, name: str) -> None:
    assert environment_of_job(launcher, **{name: VALUE})[name] == VALUE


@pytest.mark.parametrize("value", ["", VALUE])
def test_a_job_gets_all_variables_unchanged_and_no_other_ones(launcher: Path, value: str) -> None:
    variables = dict.fromkeys((*VARIABLES, "OTHER", "NOT_PYTHON", "MULTILINE"), value)
    variables["MULTILINE"] = "first\nexport PYTHONNOTSET='x'"
    given = environment_of_job(launcher)
    assert environment_of_job(launcher, **variables).keys() == given.keys() | variables.keys()
    assert environment_of_job(launcher, **variables).items() >= variables.items()


def test_commands_daemons_and_report_run_with_all_variables_set() -> None:
    variables = dict.fromkeys(VARIABLES, VALUE)
    unset = [word for name in VARIABLES for word in ("-u", name)]
    completed = run(BIN / "tfprof-run", "env", *unset, sys.executable, "-c", STEPS, **variables)
    assert completed.returncode == 0
    assert re.fullmatch(r"tfprof: job .* 100 steps .* 0 lost\n.*", completed.stderr, re.DOTALL)
    jobs = json.loads(run(BIN / "tfprof", "jobs", "--json", **variables).stdout)["jobs"]
    assert [(row["steps"], row["lost"]) for row in jobs] == [(100, 0)]


def test_the_interpreter_that_doctor_starts_gets_the_variables(tmp_path: Path) -> None:
    """As in the job, PYTHONHOME keeps this interpreter from starting."""
    assert "does not run" in run(BIN / "tfprof", "doctor", sys.executable, PYTHONHOME=str(tmp_path)).stdout
    assert "CPython" in run(BIN / "tfprof", "doctor", sys.executable, PYTHONPATH=str(tmp_path)).stdout


@pytest.mark.tf
def test_attach_works_with_all_variables_set(plain_forks: Callable[[str], ForkServer], tmp_path: Path) -> None:
    loop = plain_forks("tf2").start(LOOP, "function", tmp_path, CUDA_VISIBLE_DEVICES="")
    until((tmp_path / "running").exists, "the loop")
    completed = run(BIN / "tfprof", "attach", str(loop.pid), "--steps", "2", **dict.fromkeys(VARIABLES, VALUE))
    (tmp_path / "stop").touch()
    assert loop.finish().status == 0
    assert completed.returncode == 0, completed.stderr


@pytest.mark.parametrize("base", [None, "the installation", "elsewhere"])
def test_an_installation_for_one_user_is_found_wherever_the_variable_says_that_it_is(
    tmp_path: Path, base: str | None
) -> None:
    """`pip install --user` obeys PYTHONUSERBASE, which may also be set for the job alone."""
    programs = tmp_path / "the installation/bin"
    packages = tmp_path / "the installation/lib/python{}.{}/site-packages".format(*sys.version_info)
    programs.mkdir(parents=True)
    packages.mkdir(parents=True)
    shutil.copy2(BIN / "tfprof", programs)
    isolated = (BIN / "tfprof-isolated").read_text().split("\n", 1)[1]
    (programs / "tfprof-isolated").write_text(f"#!{Path(sys.base_prefix, 'bin/python3')}\n{isolated}")
    (packages / "tfprof.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    variables = {} if base is None else {"PYTHONUSERBASE": str(tmp_path / base)}
    assert run(programs / "tfprof", "--version", **variables).stdout.startswith("tfprof ")
