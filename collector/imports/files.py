"""Reads protocol buffers, binary or text, from a user's files."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from google.protobuf import text_format
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from ..errors import TfprofError

#: Maximum size of a protocol buffer.
BYTES_MAX: Final = (1 << 31) - 1
BINARY, TEXT = "binary", "text"
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_BEGINNING_BYTES: Final = 65_536


class BadFileError(TfprofError):
    """A file has another format than expected, or is truncated, damaged or too large."""

    slug = "bad-file"


class NotRepresentableError(TfprofError):
    """A file has content that the store cannot represent; no part of it is imported."""

    slug = "not-representable"


def contents(path: str) -> bytes:
    """Return the bytes of the file at ``path``.

    TfprofError ``io`` if it cannot be read, BadFileError if it is too large.
    """
    try:
        with Path(path).open("rb") as file:
            if file.seekable() and file.seek(0, 2) > BYTES_MAX:
                raise _too_large(path)
            if file.seekable():
                file.seek(0)
            data = file.read(BYTES_MAX + 1)
    except (OSError, MemoryError) as error:
        raise TfprofError(
            f"cannot read {path}: {getattr(error, 'strerror', None) or 'no memory for it'}", slug="io"
        ) from None
    if len(data) > BYTES_MAX:
        raise _too_large(path)
    return data


def is_text(data: bytes) -> bool:
    """Whether ``data`` may be text: its beginning has no control characters.

    A binary message usually contains control characters, since small tags and lengths are such
    characters.
    """
    return not _CONTROL.search(data[:_BEGINNING_BYTES])


def parse(data: bytes, message_type: type[Message], path: str, formats: Sequence[str] = (BINARY,)) -> Any:
    """Return the message of ``message_type`` in ``data``, trying ``formats`` in order.

    BadFileError if ``data`` parses in none of them.
    """
    errors = {}
    for format_ in formats:
        message = message_type()
        try:
            _PARSERS[format_](data, message)
        except (DecodeError, text_format.ParseError, UnicodeDecodeError, RecursionError) as error:
            errors[format_] = error
        else:
            return message
    is_invalid_text = TEXT in errors and is_text(data)
    reason = _text_error(errors[TEXT], message_type) if is_invalid_text else "its bytes do not parse as one"
    raise BadFileError(f"{path} is not a valid {message_type.DESCRIPTOR.name}: {reason}")


def has_unknown_fields(messages: Iterable[Message]) -> bool:
    """Whether any of ``messages`` has unknown fields.

    If the bytes are those of another kind of message, they may parse by accident, and then have
    unknown fields.
    """
    return any(len(UnknownFieldSet(message)) for message in messages)


def text_of(data: bytes, path: str) -> str:
    """Decode a text in a message; BadFileError if it is not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise BadFileError(f"{path} is damaged: a text in it is not UTF-8: {data[:40]!r}") from None


def _parse_binary(data: bytes, message: Message) -> None:
    message.ParseFromString(data)


def _parse_text(data: bytes, message: Message) -> None:
    text_format.Parse(data.decode("utf-8"), message)


_PARSERS: Final = {BINARY: _parse_binary, TEXT: _parse_text}


def _text_error(error: Exception, message_type: type[Message]) -> str:
    """Return the reason why a text does not parse, with line and column if known."""
    if not isinstance(error, text_format.ParseError):
        return "it is text, but not UTF-8, or nested too deeply"
    package: str = message_type.DESCRIPTOR.file.package
    return str(error).splitlines()[0].replace(f"{package}.", "")[:200]


def _too_large(path: str) -> BadFileError:
    return BadFileError(f"{path} is larger than 2 GiB, the limit of a protocol buffer")
