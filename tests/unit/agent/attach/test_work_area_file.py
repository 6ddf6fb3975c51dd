"""Work areas in files are written, read and removed, and only some processes can open them.

Tests agent/attach/work_area.py.
"""

import os
import resource
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fakes.polling import until
from tfprof.agent.attach.work_area import WorkArea, WorkState, pack
from tfprof.agent.attach.work_area_file import FOLDER, WorkAreaFile
from tfprof.formats import runtime_dir


@pytest.fixture
def area() -> WorkArea:
    return WorkArea(pack({"code": "answer = 'given ' + data['word']", "word": "é"}))


def run(script: str) -> None:
    """Run a script as the interpreter of a job does, and wait for the thread that it starts."""
    code = (
        f"exec(open({script!r}).read(), {{}})\nimport _thread, time\n"
        "time.sleep(0.3)\nwhile _thread._count(): time.sleep(0.01)"
    )
    subprocess.run([sys.executable, "-I", "-c", code], check=True, timeout=60)


def test_a_script_runs_the_work_and_writes_the_answer(private_store: Path, area: WorkArea) -> None:
    file = WorkAreaFile(area)
    run(file.script)
    assert area.wait(5.0) == (WorkState.DONE, "given é")
    assert {stat.S_IMODE(path.stat().st_mode) for path in Path(file.script).parent.iterdir()} == {0o600}
    folder = Path(file.script).parent
    file.remove()
    assert not list(folder.iterdir())


def test_the_work_area_is_mapped_until_the_garbage_collector_is_on(private_store: Path, area: WorkArea) -> None:
    file = WorkAreaFile(area)
    code = (
        "import gc, sys, time\nexec(open(sys.argv[1]).read(), {})\narea = sys.argv[1].replace('.py', '.area')\n"
        "while open(area, 'rb').read(1) < bytes([2]): pass\n"
        "while area in open('/proc/self/maps').read(): pass\n"
        "assert gc.isenabled()\nprint(1)\ninput()"
    )
    job = subprocess.Popen([sys.executable, "-c", code, file.script], stdin=-1, stdout=-1, text=True)
    assert area.wait(30.0).state == WorkState.DONE
    file.wait_until_freed(job.pid)
    output, _ = job.communicate("\n", timeout=60)
    assert output == "1\n"
    assert job.returncode == 0
    file.wait_until_freed(job.pid)
    file.remove()


def test_files_that_cannot_be_written_are_removed(private_store: Path, area: WorkArea) -> None:
    WorkAreaFile(area).remove()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            WorkAreaFile(area)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list((Path(runtime_dir.runtime_root()) / FOLDER).iterdir())


def test_the_work_of_a_released_work_area_does_nothing(private_store: Path, area: WorkArea) -> None:
    file = WorkAreaFile(area)
    area.release()
    run(file.script)
    assert area.wait(0.0).state == WorkState.BEGUN
    file.remove()


def test_an_error_of_the_work_is_the_answer(private_store: Path) -> None:
    area = WorkArea(pack({"code": "1 / 0"}))
    file = WorkAreaFile(area)
    run(file.script)
    assert area.wait(5.0) == (WorkState.FAILED, "ZeroDivisionError: division by zero")
    file.remove()


def test_a_truncated_work_area_is_no_answer_and_ends_no_process(private_store: Path, area: WorkArea) -> None:
    file = WorkAreaFile(area)
    os.truncate(file.script.replace(".py", ".area"), 0)
    run(file.script)
    assert area.wait(0.1).state in (WorkState.QUEUED, WorkState.BEGUN)
    file.remove()


def test_files_that_a_killed_process_left_behind_are_removed(private_store: Path, area: WorkArea) -> None:
    stale = WorkAreaFile(area)
    old = time.time() - 3600
    os.utime(stale.script, (old, old))
    file = WorkAreaFile(area)
    assert Path(file.script).parent.name == FOLDER
    assert not os.path.exists(stale.script)
    assert os.path.exists(stale.script.replace(".py", ".area"))
    stale.remove()
    file.remove()


def test_a_process_with_few_free_descriptors_or_of_another_root_or_user_cannot_read_the_files(
    private_store: Path, area: WorkArea
) -> None:
    file = WorkAreaFile(area)
    codes = ["", "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (5, 5)); "]
    if os.geteuid() == 0:
        codes += ["import os; os.chroot('/proc'); ", "import os; os.setuid(4711); "]
    wait_code = "print(1, flush=True); input()"
    processes = [
        subprocess.Popen([sys.executable, "-c", code + wait_code], stdin=-1, stdout=-1, text=True, cwd="/")
        for code in codes
    ]
    for process in processes:
        assert process.stdout is not None
        until(process.stdout.readline, "the process")
    assert [file.is_readable_by(process.pid) for process in processes] == [True] + [False] * (len(processes) - 1)
    for process in processes:
        process.communicate("\n")
    assert not file.is_readable_by(processes[0].pid)  # the process has ended
    file.remove()
