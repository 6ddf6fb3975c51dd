"""Importing what a written table names."""

import importlib
from typing import Any


def load(target: str) -> Any:
    """Return what ``module:name`` means."""
    module, name = target.split(":")
    return getattr(importlib.import_module(module), name)
