"""What receives, stores and shows profiles: the daemon, the store and everything read from it.

`open_store` reads profiles from Python (docs/api.md).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import OpenStore, Profiler, open_store

__all__ = ["OpenStore", "Profiler", "open_store"]


def __getattr__(name: str) -> Any:
    """Import what is called for: the daemon and most commands need none of it."""
    if name in __all__:
        from . import api  # noqa: PLC0415

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
