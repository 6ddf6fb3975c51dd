"""Python's environment variables reach the job, and do not affect the commands and daemons.

Tests commands/isolated.py.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.numbered_job import numbered_job
from fakes.polling import until
from house.tree import ROOT

pytestmark = pytest.mark.usefixtures("private_store")

BIN = Path(sys.executable).parent
FOREIGN_NAMES = ("tfprof", "psutil", "click", "zmq", "json", "site", "sitecustomize", "usercustomize", "encodings")

JOB = numbered_job(100)


@pytest.fixture
def foreign_packages(tmp_path: Path) -> Path:
    """A folder with packages that fail when they are imported."""
    folder = tmp_path / "foreign"
    for name in FOREIGN_NAMES:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(f"raise SystemExit('foreign {name}')\n")
    return folder


def run(name: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BIN / name), *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("variable", ["PYTHONPATH", "PYTHONHOME", "both"])
def test_python_variables_do_not_affect_the_commands(foreign_packages: Path, variable: str) -> None:
    variables = {name: str(foreign_packages) for name in ("PYTHONPATH", "PYTHONHOME") if variable in (name, "both")}
    # The job unsets the variables for its own interpreter.
    completed = run(
        "tfprof-run", "sh", "-c", f'exec env -u PYTHONHOME -u PYTHONPATH {sys.executable} -c "$0"', JOB, **variables
    )
    assert (completed.returncode, completed.stdout) == (0, "")
    assert "100 steps" in completed.stderr
    assert "foreign" not in completed.stderr
    jobs = run("tfprof", "jobs", "--json", **variables)
    assert [row["steps"] for row in json.loads(jobs.stdout)["jobs"]] == [100]
    assert "stopped" in run("tfprof", "stop", **variables).stdout


def test_libraries_of_the_job_do_not_affect_the_daemons(tmp_path: Path) -> None:
    """An LD_LIBRARY_PATH of conda or CUDA can replace libraries of pyarrow, DuckDB and ZeroMQ."""
    for name in ("libstdc++.so.6", "libgcc_s.so.1"):
        (tmp_path / name).write_text("no library")
    print_path = "import os; print(os.environ['LD_LIBRARY_PATH'])"
    completed = run("tfprof-run", sys.executable, "-c", f"{JOB}\n{print_path}", LD_LIBRARY_PATH=str(tmp_path))
    assert (completed.returncode, completed.stdout) == (0, f"{tmp_path}\n")
    assert "100 steps" in completed.stderr
    assert until(_ended_jobs, "the end of the job in the store") == [(100, 0)]


def test_path_files_in_a_folder_above_the_installation_do_not_run(tmp_path: Path) -> None:
    (tmp_path / "foreign.pth").write_text("import sys; sys.stdout.write('foreign')\n")
    folder = tmp_path / "environment" / "bin"
    folder.mkdir(parents=True)
    shutil.copy2(ROOT / "commands/isolated.py", folder)
    python = Path(sys.base_prefix, "bin", "python3")  # tfprof is not installed there
    completed = subprocess.run(
        [python, "-I", "-S", folder / "isolated.py", "tfprof", "--version"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode != 0
    assert completed.stdout == ""


def test_a_customization_runs_in_the_job_and_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('customized', flush=True)\n")
    completed = run("tfprof-run", "--quiet", sys.executable, "-c", "print('job')", PYTHONPATH=str(tmp_path))
    assert (completed.returncode, completed.stdout, completed.stderr) == (0, "customized\njob\n", "")
    assert run("tfprof", "--version", PYTHONPATH=str(tmp_path)).stdout.startswith("tfprof ")


def test_a_sitecustomize_in_the_environment_of_tfprof_does_not_run_in_the_commands(tmp_path: Path) -> None:
    """One environment may have both tfprof and the packages of the job."""
    code = (
        "import runpy, site, sys; main = site.main\n"
        f"site.main = lambda: (main(), site.addsitedir({str(tmp_path)!r}), site.execsitecustomize())\n"
        "sys.argv = ['isolated', 'tfprof', '--version'];"
        f" runpy.run_path({str(ROOT / 'commands/isolated.py')!r}, run_name='__main__')"
    )
    (tmp_path / "sitecustomize.py").write_text("print('customized', flush=True)\n")
    completed = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert completed.stdout.startswith("tfprof ")


def test_the_job_gets_the_given_environment_with_one_more_variable_and_a_longer_pythonpath() -> None:
    environment = {
        "HOME": "/h",
        "PATH": os.environ["PATH"],
        "XDG_RUNTIME_DIR": os.environ["XDG_RUNTIME_DIR"],
        "XDG_STATE_HOME": os.environ["XDG_STATE_HOME"],
        "PYTHONHOME": "/nowhere",
        "PYTHONPATH": "/mine:",
        "LANG": "C",
        "BASH_FUNC_module%%": "() {  true; }",
        "with.dot-and-dash": "x",
        "EMPTY": "",
    }
    completed = subprocess.run(
        [str(BIN / "tfprof-run"), "--quiet", "env", "-0"], env=environment, capture_output=True, text=True, check=True
    )
    job_environment = dict(line.split("=", 1) for line in completed.stdout.split("\0") if line)
    assert job_environment.pop("TFPROF_RUN")
    assert job_environment.pop("PYTHONPATH").endswith("/shim/inject:/mine:")
    del environment["PYTHONPATH"]
    assert job_environment == environment


@pytest.mark.parametrize("starter", ["compiled", "shell"])
@pytest.mark.parametrize("way", ["direct", "link", "link to a link", "path"])
def test_a_command_finds_its_files_wherever_it_is_called_from(tmp_path: Path, starter: str, way: str) -> None:
    folder = tmp_path / "with a blank" / "bin"
    folder.mkdir(parents=True)
    for name in ("tfprof-run", "tfprof-isolated"):
        shutil.copy2(BIN / name, folder / name)
    if starter == "shell":
        shutil.copyfile(ROOT / "commands/starter.sh", folder / "tfprof-run")
    (tmp_path / "one").symlink_to("with a blank/bin/tfprof-run")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    program = {"direct": str(folder / "tfprof-run"), "link": "./one", "link to a link": "./two", "path": "tfprof-run"}[
        way
    ]
    completed = subprocess.run(
        [program, "--quiet", "sh", "-c", 'echo "$1"; exit 3', "", "a  b"],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONHOME": "/nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (completed.returncode, completed.stdout, completed.stderr) == (3, "a  b\n", "")


@pytest.mark.parametrize("redirections", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_closed_descriptors_stay_closed_in_the_job_and_are_not_reused_by_the_launcher(
    tmp_path: Path, redirections: str
) -> None:
    code = (
        "import json, os, sys\n"
        "def link(fd):\n try: return os.readlink(f'/proc/{pid}/fd/{fd}')\n except OSError: return None\n"
        "links = {}\n"
        "for name, pid in (('job', os.getpid()), ('launcher', os.getppid())):"
        " links[name] = [link(fd) for fd in range(3)]\n"
        f"{JOB}\n"
        f"json.dump(links, open({str(tmp_path / 'links')!r}, 'w'))\nsys.exit(4)"
    )
    (tmp_path / "job.py").write_text(code)
    line = f"'{BIN}/tfprof-run' --name closed '{sys.executable}' '{tmp_path}/job.py' {redirections}"
    completed = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60, check=False)
    assert completed.returncode == 4
    links = json.loads((tmp_path / "links").read_text())
    for fd in range(3):
        if f"{fd}<&-" in redirections or f"{fd}>&-" in redirections:
            assert links["job"][fd] is None
            assert links["launcher"][fd] == "/dev/null"
        else:
            assert links["job"][fd] == links["launcher"][fd] is not None
    if "2>&-" not in redirections:
        assert "100 steps" in completed.stderr
    assert until(_ended_jobs, "the end of the job in the store") == [(100, 0)]


def _ended_jobs() -> list[tuple[int, int]]:
    """Return (number of steps, number of lost records and spans) of each ended job."""
    completed = run("tfprof", "jobs", "--json")
    jobs = json.loads(completed.stdout)["jobs"] if completed.returncode == 0 else []
    return [(row["steps"], row["lost"]) for row in jobs if row["state"] != "running"]
