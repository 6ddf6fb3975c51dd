"""Names as bytes: names are UTF-8 text, with surrogate escapes for other bytes."""

import re
from typing import Final

#: Surrogates that are no escapes of bytes.
_OTHER_SURROGATES: Final = re.compile("[\ud800-\udc7f\udd00-\udfff]")


def octets(text: str) -> bytes:
    """Return the original bytes of ``text``. Names are sorted by these bytes."""
    return text.encode("utf-8", "surrogateescape")


def valid_utf8(text: str) -> str:
    """Return ``text`` as valid UTF-8; invalid bytes are replaced.

    A truncated name may end with invalid bytes, the first half of a character.
    """
    return text if text.isascii() else octets(_OTHER_SURROGATES.sub("\ufffd", text)).decode("utf-8", "replace")
