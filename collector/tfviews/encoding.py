"""The bytes of names: UTF-8, with bytes of a job that are not UTF-8 as surrogate escapes."""


def octets(text: str) -> bytes:
    """Return the bytes of ``text`` as they came from the job; names sort in the order of their bytes."""
    return text.encode("utf-8", "surrogateescape")
