"""The bytes of names, which are UTF-8 text; other bytes are surrogate escapes."""


def octets(text: str) -> bytes:
    """Return the original bytes of ``text``, by which names are sorted."""
    return text.encode("utf-8", "surrogateescape")
