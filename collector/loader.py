"""Imports by name: objects on first use, and the C extensions, which need not be there."""

import importlib
from types import ModuleType
from typing import Any


def load(target: str) -> Any:
    """Return the object called ``module:name``."""
    module, name = target.split(":")
    return getattr(importlib.import_module(module), name)


def load_extension(name: str) -> ModuleType | None:
    """Return a C extension of the collector, such as `store._rollup`; None if it was not built."""
    try:
        return importlib.import_module(f"tfprof.collector.{name}")
    except ImportError:
        return None
