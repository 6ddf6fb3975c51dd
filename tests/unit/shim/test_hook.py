"""Listed modules are reported once after their import, and are otherwise unchanged."""

import importlib
import sys
import threading
import time
from pathlib import Path

import pytest
from tfprof.shim import hook

NAME = "waited_for_by_a_test"


@pytest.fixture
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The reports of ``NAME``: (name, whether the module has run to its last line)."""
    (tmp_path / f"{NAME}.py").write_text("loader_at_start = __loader__\nif FAILS: raise ValueError\ndone = True\n")
    (tmp_path / "beside_it.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    new_reports: list[tuple[str, bool]] = []
    before = list(sys.meta_path)
    hook.install({NAME}, lambda name, module: new_reports.append((name, hasattr(module, "done"))))
    yield new_reports
    hook.remove()
    for name in (NAME, "beside_it"):
        sys.modules.pop(name, None)
    assert sys.meta_path == before


@pytest.fixture
def _set_fails(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Let the module ``NAME`` fail, or not."""
    monkeypatch.setattr("builtins.FAILS", request.param, raising=False)


without_failure = pytest.mark.parametrize("_set_fails", [False], indirect=True)


@without_failure
@pytest.mark.usefixtures("_set_fails")
def test_a_module_is_reported_once_after_its_last_line(reports: list[tuple[str, bool]]) -> None:
    importlib.import_module("beside_it")
    assert reports == []
    importlib.import_module(NAME)
    importlib.import_module(NAME)
    assert reports == [(NAME, True)]


@without_failure
@pytest.mark.usefixtures("_set_fails")
def test_a_module_sees_its_own_loader_from_its_first_line_on(reports: list[tuple[str, bool]]) -> None:
    module = importlib.import_module(NAME)
    assert module.loader_at_start is module.__loader__ is module.__spec__.loader
    assert not type(module.__loader__).__module__.startswith("tfprof")
    assert importlib.reload(module) is module


@without_failure
@pytest.mark.usefixtures("_set_fails")
def test_a_module_that_another_thread_imports_is_reported_afterwards(
    reports: list[tuple[str, bool]], tmp_path: Path
) -> None:
    hook.remove()
    (tmp_path / f"{NAME}.py").write_text("import time\nbegun = True\ntime.sleep(0.3)\ndone = True\n")
    thread = threading.Thread(target=importlib.import_module, args=(NAME,))
    thread.start()
    while not hasattr(sys.modules.get(NAME), "begun"):
        time.sleep(0.001)
    hook.install({NAME}, lambda name, module: reports.append((name, hasattr(module, "done"))))
    thread.join()
    assert reports == [(NAME, True)]


@without_failure
@pytest.mark.usefixtures("_set_fails", "reports")
def test_a_loaded_module_is_reported_at_once() -> None:
    hook.remove()
    importlib.import_module(NAME)
    reports: list[str] = []
    hook.install({NAME}, lambda name, _module: reports.append(name))
    assert reports == [NAME]


@pytest.mark.parametrize("_set_fails", [True], indirect=True)
@pytest.mark.usefixtures("_set_fails")
def test_a_failing_module_is_reported_only_after_a_successful_import(
    reports: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError):
        importlib.import_module(NAME)
    assert reports == []
    assert NAME not in sys.modules
    monkeypatch.setattr("builtins.FAILS", False)
    importlib.import_module(NAME)
    assert reports == [(NAME, True)]


@without_failure
@pytest.mark.usefixtures("_set_fails")
def test_other_finders_still_work_and_invalid_finders_are_skipped(
    reports: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    searched_names: list[str] = []

    class RecordingFinder:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> None:
            searched_names.append(name)

    with monkeypatch.context() as patched:
        patched.setattr(sys, "meta_path", [sys.meta_path[0], object(), RecordingFinder, *sys.meta_path[1:]])
        importlib.import_module(NAME)
    assert searched_names.count(NAME) == 1
    assert reports == [(NAME, True)]


@without_failure
@pytest.mark.usefixtures("_set_fails")
def test_nothing_is_reported_after_the_hook_is_removed(reports: list[tuple[str, bool]]) -> None:
    spec = sys.meta_path[0].find_spec(NAME, None)
    assert spec is not None
    hook.remove()
    hook.remove()
    importlib.util.module_from_spec(spec)
    importlib.import_module(NAME)
    assert reports == []
