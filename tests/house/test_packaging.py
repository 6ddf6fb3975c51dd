"""What is installed is what is in the tree."""

import configparser
from pathlib import Path

from house.tree import PARTS, ROOT
from tfprof.shim.version import VERSION


def _setup() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser


def test_the_package_list_is_the_list_of_folders() -> None:
    listed = set(_setup()["options"]["packages"].split())
    folders = {
        "tfprof." + ".".join(path.parent.relative_to(ROOT).parts)
        for part in PARTS
        for path in (ROOT / part).rglob("__init__.py")
    }
    assert listed == folders


def test_the_changelog_begins_with_the_version() -> None:
    headings = [line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## ")]
    assert VERSION in headings[0]


def test_every_command_that_is_installed_exists() -> None:
    import importlib

    for line in _setup()["options.entry_points"]["console_scripts"].strip().splitlines():
        module, function = line.split("=")[1].strip().split(":")
        assert callable(getattr(importlib.import_module(module), function))


def test_the_inject_folder_holds_one_file() -> None:
    files = [path.name for path in Path(ROOT / "shim" / "inject").iterdir() if path.suffix == ".py"]
    assert files == ["sitecustomize.py"]
