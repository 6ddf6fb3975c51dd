"""Arms and disarms a running process; the source texts come from memory, not from files.

This file is sent to the process with a call of ``act`` at its end (agent/attach/payload.py). It
runs in a thread there, with `__name__` `_tfprof_attach`. Afterwards only the modules below
`_tfprof` remain.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Mapping

_ROOT = "_tfprof"
#: The path of the shim's packages; no such folder exists.
_PATH_ROOT = "/<tfprof>"


class _Loader(object):
    """Loads a module from its source text; its file name looks like that of a frozen module."""

    def __init__(self, source: str, file: str) -> None:
        self._source = source
        self._file = file

    def create_module(self, _spec: object) -> None:
        """Let the import system make the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code."""
        exec(compile(self._source, "<tfprof/%s>" % self._file, "exec", 0, True), module.__dict__)  # noqa: S102 - ours


class _Finder(object):
    """Finds the modules of one folder among ``sources``, which are texts by path."""

    def __init__(self, sources: Mapping[str, str], folder: str) -> None:
        self._sources = sources
        self._folder = folder

    def find_spec(self, name: str, _target: object = None) -> Any:
        """Return the spec of module ``name``, None where there is none."""
        file = name.rpartition(".")[2] + ".py"
        source = self._sources.get(self._folder + "/" + file)
        if source is None:
            return None
        return sys.modules["_frozen_importlib"].ModuleSpec(name, _Loader(source, file))


def _make_packages(sources: Mapping[str, str]) -> None:
    """Add the packages of ``sources`` to `sys.modules`."""
    folders = {path.rpartition("/")[0] for path in sources}
    for folder in sorted(folders | {""}):
        name = "%s/%s" % (_ROOT, folder) if folder else _ROOT
        package: Any = type(sys)(name.replace("/", "."))
        path = "%s/%s" % (_PATH_ROOT, folder)
        package.__path__ = [path]
        sys.path_importer_cache[path] = _Finder(sources, folder)
        sys.modules[package.__name__] = package


def _remove_modules() -> None:
    """Remove our modules and finders from the import system."""
    for name in [name for name in sys.modules if name.partition(".")[0] == _ROOT]:
        del sys.modules[name]
    for path in [path for path in sys.path_importer_cache if str(path).startswith(_PATH_ROOT)]:
        del sys.path_importer_cache[path]


def _core() -> Any:
    return sys.modules.get(_ROOT + ".shim.core")


def _arm(request: dict[str, Any]) -> dict[str, Any]:
    """Arm the process with the settings in ``request``.

    Return whether it is armed, whether it was before, and whether it has a channel.
    """
    core = _core()
    if core is not None and core.state() is not None:
        return {"armed": True, "before": True}
    _remove_modules()
    _make_packages(request["sources"])
    try:
        core = __import__(_ROOT + ".shim.core", fromlist=["arm"])
        core.arm(request["environ"], True)
    except BaseException:
        core = _core()
        if core is not None:
            core.disarm()
        _remove_modules()
        raise
    state = core.state()
    if state is None:
        _remove_modules()
        return {"armed": False, "before": False}
    return {"armed": True, "before": False, "channel": state.channel is not None, "refused": state.refused}


def _disarm(_request: dict[str, Any]) -> dict[str, Any]:
    """Disarm the process; return whether it was armed."""
    core = _core()
    if core is None or core.state() is None:
        return {"armed": False, "before": False}
    core.disarm()
    return {"armed": False, "before": True}


_ACTIONS = {"arm": _arm, "disarm": _disarm}


def act(request: dict[str, Any]) -> str:
    """Run the action that ``request`` names; return its result as JSON."""
    import json

    return json.dumps(_ACTIONS[request["action"]](request))
