"""The environment of a job."""

from pathlib import Path

import pytest
from tfprof.agent.launcher.job_environment import INJECT_FOLDER, job_environment


@pytest.mark.parametrize(
    ("old_path", "new_path"),
    [
        (None, INJECT_FOLDER),
        ("", INJECT_FOLDER),
        ("/a", f"{INJECT_FOLDER}:/a"),
        ("/a:/b", f"{INJECT_FOLDER}:/a:/b"),
        (f"{INJECT_FOLDER}:/a", f"{INJECT_FOLDER}:/a"),
        (":/a", f"{INJECT_FOLDER}::/a"),
    ],
)
def test_the_shim_comes_first_on_the_path_and_no_empty_entry_is_added(old_path: str | None, new_path: str) -> None:
    environ = {} if old_path is None else {"PYTHONPATH": old_path}
    assert job_environment(environ, "1@/place", {})["PYTHONPATH"] == new_path


def test_other_variables_stay_and_the_settings_are_added() -> None:
    environ = job_environment({"HOME": "/h", "TFPROF_RUN": "outer"}, "1@/place", {"TFPROF_TRACE": "all"})
    assert environ == {"HOME": "/h", "TFPROF_RUN": "1@/place", "TFPROF_TRACE": "all", "PYTHONPATH": INJECT_FOLDER}


def test_the_shim_folder_holds_the_file_that_python_loads() -> None:
    assert Path(INJECT_FOLDER, "sitecustomize.py").exists()
