"""Imports objects by the names in a table."""

import importlib
from typing import Any


def load(target: str) -> Any:
    """Return the object called ``module:name``."""
    module, name = target.split(":")
    return getattr(importlib.import_module(module), name)
