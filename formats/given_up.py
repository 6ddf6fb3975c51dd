"""Files about ended jobs whose remaining data an agent has given up, for the next collector.

The data is lost, but the collector counts it, and stores how the job ended.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from .ids import hex_id
from .private_files import read_json, write_json
from .runtime_dir import GIVEN_UP

if TYPE_CHECKING:
    from collections.abc import Iterator

_SUFFIX = ".json"
_VALUE_TYPES: dict[str, type] = {"uid": int, "identity": dict, "end": dict}


def write(
    instance_dir: str, uid: int, identity: dict[str, Any], end: dict[str, Any], event: dict[str, Any] | None = None
) -> None:
    """Write the bodies of the last OPEN, EVENT (if any) and CLOSE of job ``uid``.

    OSError on failure.
    """
    path = os.path.join(instance_dir, GIVEN_UP, hex_id(uid) + _SUFFIX)
    optional = {} if event is None else {"event": event}
    write_json(path, {"uid": uid, "identity": identity, "end": end, **optional})


def pending(instance_dir: str) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Yield (path, values) of each file. The values of an invalid file are None.

    The values are uid, identity, end and, if there was one, event. The caller removes the file.
    OSError on failure.
    """
    folder = os.path.join(instance_dir, GIVEN_UP)
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(_SUFFIX))
    except FileNotFoundError:
        return
    for path in (os.path.join(folder, name) for name in names):
        values = read_json(path)
        is_valid = values is not None and all(
            isinstance(values.get(key), value_type) for key, value_type in _VALUE_TYPES.items()
        )
        yield path, values if is_valid else None
