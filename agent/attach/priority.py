"""The priority of the calling thread while it holds a thread of another process."""

import contextlib
import os
import resource
from collections.abc import Iterator
from typing import Final

_HIGHEST: Final = -20
#: An ordinary user may set a nice value of this number minus RLIMIT_NICE.
_LIMIT_ORIGIN: Final = 20


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """Raise the priority of the calling thread for a `with` block, as far as the user may."""
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    for nice in (_HIGHEST, _LIMIT_ORIGIN - resource.getrlimit(resource.RLIMIT_NICE)[0]):
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, min(nice, usual))
            break
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, usual)
