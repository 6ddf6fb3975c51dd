"""Pages in files: they are written, read and removed, and only some processes can open them."""

import os
import resource
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fakes.polling import until
from tfprof.agent.attach.page import Page, WorkState, pack
from tfprof.agent.attach.page_file import FOLDER, PageFile
from tfprof.formats import runtime_dir


@pytest.fixture
def page() -> Page:
    return Page(pack({"code": "answer = 'given ' + data['word']", "word": "é"}))


def run(script: str) -> None:
    """Run a script as the interpreter of a job does, and wait for its thread."""
    code = (
        f"exec(open({script!r}).read(), {{}})\nimport _thread, time\n"
        "time.sleep(0.3)\nwhile _thread._count(): time.sleep(0.01)"
    )
    subprocess.run([sys.executable, "-I", "-c", code], check=True, timeout=60)


def test_a_script_runs_the_work_and_writes_the_answer(private_store: Path, page: Page) -> None:
    file = PageFile(page)
    run(file.script)
    assert page.wait(5.0) == (WorkState.DONE, "given é")
    assert {stat.S_IMODE(path.stat().st_mode) for path in Path(file.script).parent.iterdir()} == {0o600}
    folder = Path(file.script).parent
    file.remove()
    assert not list(folder.iterdir())


def test_the_page_is_mapped_until_the_garbage_collector_is_on(private_store: Path, page: Page) -> None:
    file = PageFile(page)
    code = (
        "import gc, sys, time\nexec(open(sys.argv[1]).read(), {})\npage = sys.argv[1].replace('.py', '.page')\n"
        "while open(page, 'rb').read(1) < bytes([2]): pass\n"
        "while page in open('/proc/self/maps').read(): pass\n"
        "assert gc.isenabled()\nprint(1)\ninput()"
    )
    job = subprocess.Popen([sys.executable, "-c", code, file.script], stdin=-1, stdout=-1, text=True)
    assert page.wait(30.0).state == WorkState.DONE
    file.wait_until_freed(job.pid)
    output, _ = job.communicate("\n", timeout=60)
    assert output == "1\n"
    assert job.returncode == 0
    file.wait_until_freed(job.pid)
    file.remove()


def test_files_that_cannot_be_written_are_removed(private_store: Path, page: Page) -> None:
    PageFile(page).remove()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            PageFile(page)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list((Path(runtime_dir.runtime_root()) / FOLDER).iterdir())


def test_the_work_of_a_released_page_does_nothing(private_store: Path, page: Page) -> None:
    file = PageFile(page)
    page.release()
    run(file.script)
    assert page.wait(0.0).state == WorkState.BEGUN
    file.remove()


def test_an_error_of_the_work_is_the_answer(private_store: Path) -> None:
    page = Page(pack({"code": "1 / 0"}))
    file = PageFile(page)
    run(file.script)
    assert page.wait(5.0) == (WorkState.FAILED, "ZeroDivisionError: division by zero")
    file.remove()


def test_a_truncated_page_is_no_answer_and_ends_no_process(private_store: Path, page: Page) -> None:
    file = PageFile(page)
    os.truncate(file.script.replace(".py", ".page"), 0)
    run(file.script)
    assert page.wait(0.1).state in (WorkState.QUEUED, WorkState.BEGUN)
    file.remove()


def test_files_that_a_killed_process_left_behind_are_removed(private_store: Path, page: Page) -> None:
    stale = PageFile(page)
    old = time.time() - 3600
    os.utime(stale.script, (old, old))
    file = PageFile(page)
    assert Path(file.script).parent.name == FOLDER
    assert not os.path.exists(stale.script)
    assert os.path.exists(stale.script.replace(".py", ".page"))
    stale.remove()
    file.remove()


def test_a_process_without_descriptors_or_of_another_root_or_user_cannot_read_the_files(
    private_store: Path, page: Page
) -> None:
    file = PageFile(page)
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
    assert not file.is_readable_by(processes[0].pid)  # it has ended
    file.remove()
