"""Names of nodes that were inlined from a function's body."""

import re
from typing import Final

#: A body that was inlined at a call, loop or branch: its nodes keep their names behind the call's.
_BODY: Final = re.compile(r".*/_\d+/(.+)")


def inlined(name: str) -> str:
    """Return the name that a node had in the function's body; ``name`` itself where it was not inlined."""
    match = _BODY.fullmatch(name) if "/_" in name else None
    return match[1] if match else name
