"""Names as bytes: names are UTF-8 text, with surrogate escapes for other bytes."""


def octets(text: str) -> bytes:
    """Return the original bytes of ``text``, by which names are sorted."""
    return text.encode("utf-8", "surrogateescape")
