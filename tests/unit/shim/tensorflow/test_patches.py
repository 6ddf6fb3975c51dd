"""The table of frameworks names existing functions; the hello names the framework and its kinds."""

import ast
import importlib
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
from tfprof.formats import layout
from tfprof.shim import arming, core, name_check


@pytest.mark.parametrize("row", arming.FRAMEWORKS, ids=lambda row: row.NAME)
def test_every_patch_names_a_function_of_one_argument(row):
    folder = Path(row.__file__).parent
    for patch_module, function_name, _ in set(row.PATCHES.values()):
        functions = {
            node.name: node
            for node in ast.parse((folder / f"{patch_module}.py").read_text()).body
            if isinstance(node, ast.FunctionDef)
        }
        assert len(functions[function_name].args.args) == 1, (patch_module, function_name)


@pytest.mark.parametrize("row", arming.FRAMEWORKS, ids=lambda row: row.NAME)
def test_every_row_has_names_in_the_notation_of_the_check(row):
    table = importlib.import_module(f"{row.__package__}.{row.NAMES}")
    used = {*(names for _, _, names in row.PATCHES.values()), *row.PACKAGES.values()}
    assert used == {name for name in vars(table) if name.isupper() and not name.startswith("_")}
    nothing = ModuleType("nothing")
    for names in used:
        name_check.check(nothing, [f"nothing:x | {name}" for name in getattr(table, names)], "99.0")


def test_no_module_of_a_job_is_in_two_rows():
    names = [name for row in arming.FRAMEWORKS for name in [*row.PATCHES, *row.PACKAGES]]
    assert len(names) == len(set(names))


def add_module(monkeypatch, name, **attributes):
    """Add a fake module to `sys.modules` and return it."""
    fake_module = ModuleType(name)
    vars(fake_module).update(attributes)
    monkeypatch.setitem(sys.modules, name, fake_module)
    return fake_module


@pytest.mark.parametrize("version", ["3.1", None])
def test_the_hello_names_the_framework_that_was_patched_its_version_and_kinds(armed, read, monkeypatch, version):
    package = "tfprof.shim.other"
    add_module(monkeypatch, f"{package}.names", TRAINING=("Trainer.fit()",))
    add_module(monkeypatch, f"{package}.kinds", KINDS={3: ("forward", "step", 2)}, COUNTED_NS={3: 1000})
    patched_modules: list[ModuleType] = []
    add_module(monkeypatch, f"{package}.loop", patch=patched_modules.append)
    row = add_module(
        monkeypatch,
        f"{package}.patches",
        __package__=package,
        NAME="other",
        VERSION=("other.about", "__version__"),
        NAMES="names",
        KINDS="kinds",
        PATCHES={"other.training": ("loop", "patch", "TRAINING")},
        PACKAGES={},
        MARKS=(),
    )
    if version is not None:
        add_module(monkeypatch, "other.about", __version__=version)
    training = add_module(monkeypatch, "other.training")
    core._patch(row, "other.training", training)
    assert patched_modules == [training]
    hello = json.loads(bytes(read().map[layout.HELLO_AT :][: read().word("hello_size")]))
    assert (hello["framework"], hello["framework_version"]) == ("other", version)
    assert hello["kinds"] == {"3": ["forward", "step", 2]}
