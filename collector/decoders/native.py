"""The C walker, where there is one."""

import importlib
from types import ModuleType


def load() -> ModuleType | None:
    """Return the compiled module, None in a build without a C compiler."""
    try:
        return importlib.import_module("tfprof.collector.decoders._walker")
    except ImportError:
        return None


walker = load()
