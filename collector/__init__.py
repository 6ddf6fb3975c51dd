"""Receives, stores and shows profiles: the daemon, the store, and the readers of the store.

`open_store` reads profiles from Python (docs/api.md).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import OpenStore, Profiler, open_store

__all__ = ["OpenStore", "Profiler", "open_store"]


def __getattr__(name: str) -> Any:
    """Import a public name on first use: the daemon and most commands use none of them."""
    if name in __all__:
        from . import api  # noqa: PLC0415

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
