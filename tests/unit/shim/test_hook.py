"""Listed modules are reported once after their import, and are otherwise unchanged."""

import importlib
import sys
from pathlib import Path

import pytest
from tfprof.shim import hook

NAME = "waited_for_by_a_test"


@pytest.fixture
def reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The reports of ``NAME``: (name, whether the module has run to its last line)."""
    (tmp_path / f"{NAME}.py").write_text("began = __loader__\nif FAILS: raise ValueError\ndone = True\n")
    (tmp_path / "beside_it.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    reports: list[tuple[str, bool]] = []
    before = list(sys.meta_path)
    hook.install({NAME}, lambda name, module: reports.append((name, hasattr(module, "done"))))
    yield reports
    hook.remove()
    for name in (NAME, "beside_it"):
        sys.modules.pop(name, None)
    assert sys.meta_path == before


@pytest.fixture
def _fails(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.setattr("builtins.FAILS", request.param, raising=False)


works = pytest.mark.parametrize("_fails", [False], indirect=True)


@works
@pytest.mark.usefixtures("_fails")
def test_a_module_is_reported_once_after_its_last_line(reported: list[tuple[str, bool]]) -> None:
    importlib.import_module("beside_it")
    assert reported == []
    importlib.import_module(NAME)
    importlib.import_module(NAME)
    assert reported == [(NAME, True)]


@works
@pytest.mark.usefixtures("_fails")
def test_a_module_sees_its_own_loader_from_its_first_line_on(reported: list[tuple[str, bool]]) -> None:
    module = importlib.import_module(NAME)
    assert module.began is module.__loader__ is module.__spec__.loader
    assert not type(module.__loader__).__module__.startswith("tfprof")
    assert importlib.reload(module) is module


@works
@pytest.mark.usefixtures("_fails", "reported")
def test_a_loaded_module_is_reported_at_once() -> None:
    hook.remove()
    importlib.import_module(NAME)
    reports: list[str] = []
    hook.install({NAME}, lambda name, _module: reports.append(name))
    assert reports == [NAME]


@pytest.mark.parametrize("_fails", [True], indirect=True)
@pytest.mark.usefixtures("_fails")
def test_a_failing_module_is_reported_only_after_a_successful_import(
    reported: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError):
        importlib.import_module(NAME)
    assert reported == []
    assert NAME not in sys.modules
    monkeypatch.setattr("builtins.FAILS", False)
    importlib.import_module(NAME)
    assert reported == [(NAME, True)]


@works
@pytest.mark.usefixtures("_fails")
def test_other_finders_still_work_and_invalid_finders_are_skipped(
    reported: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    searched_names: list[str] = []

    class Recorder:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> None:
            searched_names.append(name)

    with monkeypatch.context() as patched:
        patched.setattr(sys, "meta_path", [sys.meta_path[0], object(), Recorder, *sys.meta_path[1:]])
        importlib.import_module(NAME)
    assert searched_names.count(NAME) == 1
    assert reported == [(NAME, True)]


@works
@pytest.mark.usefixtures("_fails")
def test_nothing_is_reported_after_the_hook_is_removed(reported: list[tuple[str, bool]]) -> None:
    spec = sys.meta_path[0].find_spec(NAME, None)
    assert spec is not None
    hook.remove()
    hook.remove()
    importlib.util.module_from_spec(spec)
    importlib.import_module(NAME)
    assert reported == []
