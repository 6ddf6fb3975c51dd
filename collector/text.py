"""Makes texts from jobs safe to print."""

import re
from typing import Final

#: Characters that a terminal could take as commands, or that change the order of text; lone
#: surrogates.
CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """Return ``text`` with control characters replaced."""
    return CONTROL.sub("?", text)
