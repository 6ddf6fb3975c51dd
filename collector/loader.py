"""Imports objects by name, so that a module can be imported on first use."""

import importlib
from typing import Any


def load(target: str) -> Any:
    """Return the object called ``module:name``."""
    module, name = target.split(":")
    return getattr(importlib.import_module(module), name)
