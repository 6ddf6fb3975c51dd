"""The copy of `os` has the system's functions, also if it is made while a test mocks them."""

import importlib
import inspect
import os
import pkgutil
import posix
import runpy
from unittest import mock

from tfprof import shim
from tfprof.shim import own_os

#: Modules that pyfakefs replaces by its own, with their functions, where a module refers to them.
FAKED = {"os", "posix", "io", "_io", "fcntl", "shutil", "pathlib", "posixpath", "genericpath", "tempfile"}
#: References that are used while the module is imported only, or are no functions of files.
HARMLESS = {
    *(f"tfprof.shim.own_os.{name}" for name in ("_os", "_path", "_posix")),
    *(f"tfprof.shim.{name}.posix" for name in ("pacing.ordinals", "process_events")),
    *(f"tfprof.shim.{name}.getpid" for name in ("channel.ring", "clock")),
    "tfprof.shim.descriptors.fcntl",
}


def test_functions_that_are_replaced_at_the_import_are_the_originals() -> None:
    with mock.patch("os.open") as replacement:
        copy = runpy.run_path(own_os.__file__)["os"]
        assert os.open is replacement
    assert copy.open is posix.open
    assert copy.environ is os.environ


def test_a_mock_of_the_original_does_not_change_the_copy() -> None:
    with mock.patch("os.getpid"), mock.patch("os.path.basename"):
        assert own_os.os.getpid() == posix.getpid()
        assert own_os.os.path.basename("/a/b") == "b"


def test_pyfakefs_finds_nothing_to_replace():
    assert own_os.os.__name__ != "os"
    modules = [each.name for each in pkgutil.walk_packages(shim.__path__, "tfprof.shim.") if ".inject" not in each.name]
    references = {
        f"{module}.{name}"
        for module in modules
        for name, value in vars(importlib.import_module(module)).items()
        if (inspect.ismodule(value) and value.__name__ in FAKED)
        or (inspect.isroutine(value) and getattr(value, "__module__", None) in FAKED)
    }
    assert references == HARMLESS
