"""Names as bytes: names are UTF-8, and bytes that are not become surrogate escapes."""


def octets(text: str) -> bytes:
    """Return the original bytes of ``text``, by which names are sorted."""
    return text.encode("utf-8", "surrogateescape")
