"""The packaging files, and the schedule of the tests, match the tree."""

import ast
import configparser
import re
from pathlib import Path

from fakes.scheduling import WAITING_FILES
from house.tree import PARTS, ROOT
from tfprof.commands import isolated
from tfprof.formats.version import VERSION


def _setup_cfg() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser


def test_the_package_list_is_the_list_of_folders() -> None:
    listed = set(_setup_cfg()["options"]["packages"].split())
    folders = {
        "tfprof." + ".".join(path.parent.relative_to(ROOT).parts)
        for part in PARTS
        for path in (ROOT / part).rglob("__init__.py")
    }
    assert listed == folders


def test_the_changelog_begins_with_the_current_version() -> None:
    headings = [line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## ")]
    assert VERSION in headings[0]


def test_every_command_that_is_installed_exists() -> None:
    import importlib

    for module in isolated.COMMANDS.values():
        assert callable(importlib.import_module(module).main)


def test_the_build_makes_every_command() -> None:
    (commands,) = re.findall(r"^COMMANDS = (.*)$", (ROOT / "setup.py").read_text(), re.MULTILINE)
    assert ast.literal_eval(commands) == tuple(isolated.COMMANDS)


def test_the_inject_folder_holds_one_file() -> None:
    files = [path.name for path in Path(ROOT / "shim" / "inject").iterdir() if path.suffix == ".py"]
    assert files == ["sitecustomize.py"]


def test_each_test_file_that_is_scheduled_by_name_exists() -> None:
    assert all((ROOT / file).is_file() for file in WAITING_FILES)
