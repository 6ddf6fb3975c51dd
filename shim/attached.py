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


class _Importer(object):
    """Finds and loads the modules of one folder among ``sources``, which are texts by path.

    The file names of the modules look like those of frozen modules.
    """

    def __init__(self, sources: Mapping[str, str], folder: str) -> None:
        self._sources = sources
        self._folder = folder

    def find_spec(self, name: str, _target: object = None) -> Any:
        """Return the spec of module ``name``, None where there is none."""
        is_ours = self._path(name) in self._sources
        return sys.modules["_frozen_importlib"].ModuleSpec(name, self) if is_ours else None

    def create_module(self, _spec: object) -> None:
        """Let the import system make the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code."""
        path = self._path(module.__name__)
        code = compile(self._sources[path], "<tfprof/%s>" % path.rpartition("/")[2], "exec", 0, True)
        exec(code, module.__dict__)  # noqa: S102 - ours

    def _path(self, name: str) -> str:
        return "%s/%s.py" % (self._folder, name.rpartition(".")[2])


def _make_packages(sources: Mapping[str, str]) -> None:
    folders = {path.rpartition("/")[0] for path in sources}
    for folder in sorted(folders | {""}):
        name = "%s/%s" % (_ROOT, folder) if folder else _ROOT
        package: Any = type(sys)(name.replace("/", "."))
        path = "%s/%s" % (_PATH_ROOT, folder)
        package.__path__ = [path]
        sys.path_importer_cache[path] = _Importer(sources, folder)
        sys.modules[package.__name__] = package


def _remove_modules() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == _ROOT]:
        del sys.modules[name]
    for path in [path for path in sys.path_importer_cache if str(path).startswith(_PATH_ROOT)]:
        del sys.path_importer_cache[path]


def _core() -> Any:
    return sys.modules.get(_ROOT + ".shim.core")


def _arm(request: dict[str, Any]) -> dict[str, Any]:
    """Arm the process; return the fields of `ShimAnswer` (agent/attach/payload.py)."""
    before = _core() is not None and _core().state() is not None
    if not before:
        _remove_modules()
        _make_packages(request["sources"])
        vars(sys.modules[_ROOT + ".shim.pacing"])["compiled"] = request["compiled"]
        try:
            __import__(_ROOT + ".shim.arming", fromlist=["arm"]).arm(request["environ"], True)
        except BaseException:
            if _core() is not None:
                _core().disarm()
            _remove_modules()
            raise
    state = _core().state()
    if state is None:
        _remove_modules()
        return {"armed": False, "before": False}
    loaded, channel = bool(state.loaded_frameworks), state.channel is not None
    return {"armed": True, "before": before, "loaded": loaded, "channel": channel, "refused": state.refused}


def _disarm(request: dict[str, Any]) -> dict[str, Any]:
    """Disarm the process if the launch that ``request`` names armed it; return whether it did."""
    core = _core()
    if core is None or core.state() is None or core.state().launch != request["launch"]:
        return {"armed": False, "before": False}
    core.disarm()
    return {"armed": False, "before": True}


_ACTIONS = {"arm": _arm, "disarm": _disarm}


def act(request: dict[str, Any]) -> str:
    """Run the action that ``request`` names; return its result as JSON."""
    import json

    return json.dumps(_ACTIONS[request["action"]](request))
