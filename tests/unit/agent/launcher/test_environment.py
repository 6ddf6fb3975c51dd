"""The environment of a job."""

from pathlib import Path

import pytest
from tfprof.agent.launcher.environment import INJECT, isolating_option, job_environment


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (None, INJECT),
        ("", INJECT),
        ("/a", f"{INJECT}:/a"),
        ("/a:/b", f"{INJECT}:/a:/b"),
        (f"{INJECT}:/a", f"{INJECT}:/a"),
        (":/a", f"{INJECT}::/a"),
    ],
)
def test_the_shim_comes_first_on_the_path_and_no_empty_entry_is_added(old: str | None, new: str) -> None:
    environ = {} if old is None else {"PYTHONPATH": old}
    assert job_environment(environ, "1@/place", {})["PYTHONPATH"] == new


def test_other_variables_stay_and_the_settings_are_added() -> None:
    made = job_environment({"HOME": "/h", "TFPROF_RUN": "outer"}, "1@/place", {"TFPROF_TRACE": "all"})
    assert made == {"HOME": "/h", "TFPROF_RUN": "1@/place", "TFPROF_TRACE": "all", "PYTHONPATH": INJECT}


def test_the_shim_folder_holds_the_one_file_that_python_loads() -> None:
    assert Path(INJECT, "sitecustomize.py").exists()


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("python -I x.py", "-I"),
        ("/usr/bin/python3.11 -sE x.py", "-E"),
        ("python3 -W ignore -S x.py", "-S"),
        ("python -Xdev -S", "-S"),
        ("python -WS x.py", None),
        ("python x.py -I", None),
        ("python -c pass -I", None),
        ("python -cI", None),
        ("python -m mod -S", None),
        ("python - -S", None),
        ("python -- -S", None),
        ("python --version -S", None),
        ("bash -S", None),
        ("python", None),
    ],
)
def test_a_python_that_will_not_load_the_shim_is_detected(command: str, option: str | None) -> None:
    assert isolating_option(command.split()) == option
