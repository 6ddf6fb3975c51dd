"""Calls a function after the import of certain modules; it neither changes nor imports them."""

import _imp
import sys

TYPE_CHECKING = False  # types are quoted: importing even __future__ would slow down every interpreter's start
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Callable, Collection


_IMPORT_NS = 30000000000  # maximum wait for an import
_PAUSE_S = 0.01  # seconds between two looks at it


class _Loader(object):
    """Wraps a module's loader until the module is executed."""

    def __init__(self, real_loader: "Any", name: str) -> None:
        self._real_loader = real_loader
        self._name = name

    def __getattr__(self, name: str) -> "Any":
        return getattr(self._real_loader, name)

    def exec_module(self, module: "ModuleType") -> None:  # tracebacks leave it out, as Python's own loaders
        # Before its first line, the module gets its own loader back.
        spec: "Any" = module.__spec__
        if spec is not None and spec.loader is self:
            spec.loader = self._real_loader
        if getattr(module, "__loader__", None) is self:
            module.__loader__ = self._real_loader
        self._real_loader.exec_module(module)
        if _callback is not None:
            _callback(self._name, module)


_imp._fix_co_filename(_Loader.exec_module.__code__, "<frozen importlib._bootstrap>")  # type: ignore[attr-defined]


class _Finder(object):
    """Asks the other finders for the listed modules, and wraps the loaders that they return."""

    @staticmethod
    def find_spec(name: str, path: "Any" = None, target: "Any" = None) -> "ModuleSpec | None":
        if name not in _targets or name in _in_search:
            return None
        _in_search.add(name)
        try:
            for finder in list(sys.meta_path):
                find: "Any" = None if finder is _Finder else getattr(finder, "find_spec", None)
                spec: "Any" = None if find is None else find(name, path, target)
                if spec is not None:
                    if hasattr(spec.loader, "exec_module"):
                        spec.loader = _Loader(spec.loader, name)
                    return spec  # type: ignore[no-any-return]
        finally:
            _in_search.discard(name)
        return None


_targets: "Collection[str]" = ()  # names of the listed modules
_in_search: "set[str]" = set()  # names that the other finders are being asked for
_callback: "Callable[[str, ModuleType], object] | None" = None


def install(targets: "Collection[str]", callback: "Callable[[str, ModuleType], object]") -> None:
    """Call ``callback(name, module)`` for each module in ``targets``, now or after its import."""
    global _callback, _targets
    _callback, _targets = callback, targets
    known = [(name, sys.modules[name]) for name in list(targets) if sys.modules.get(name) is not None]
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
    for name, module in known:
        _wait_for_import(module)
        callback(name, module)


def _wait_for_import(module: "ModuleType") -> None:
    """Wait until ``module`` is imported: another thread of an attached process may be at it."""
    from .clock import mono, sleep

    deadline = mono() + _IMPORT_NS
    while getattr(getattr(module, "__spec__", None), "_initializing", False) and mono() < deadline:
        sleep(_PAUSE_S)


def remove() -> None:
    """Remove the hook."""
    global _callback, _targets
    _callback, _targets = None, ()
    if _Finder in sys.meta_path:
        sys.meta_path.remove(_Finder)
