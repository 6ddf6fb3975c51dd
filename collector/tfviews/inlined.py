"""Original names of nodes that were inlined from a function's body."""

import re
from typing import Final

#: Name of a node that was inlined at a call, loop or branch; the group is the original name.
_INLINED_NAME: Final = re.compile(r".*/_\d+/(.+)")


def original_name(name: str) -> str:
    """Return the name of a node in the function's body; ``name`` itself if it was not inlined."""
    match = _INLINED_NAME.fullmatch(name) if "/_" in name else None
    return match[1] if match else name
