"""Loads the C decoder, if it was built."""

import importlib
from types import ModuleType


def load() -> ModuleType | None:
    """Return the compiled module, None if it was not built."""
    try:
        return importlib.import_module("tfprof.collector.decoders._walker")
    except ImportError:
        return None


walker = load()
