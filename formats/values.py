"""Parsers of settings and options: numbers, sizes, times, names."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

#: Bytes by unit of size.
SIZE_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
#: Seconds by unit of time.
TIME_UNITS = {"": 1, "ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86400}
#: Maximum digits of a number: more than any sensible number has, fewer than Python's own limit.
DIGITS_MAX = 18
#: Maximum of a time in seconds and days: a hundred years.
SECONDS_MAX = 100 * 365.25 * 86400
DAYS_MAX = SECONDS_MAX / 86400
NAME_MAX = 200


class InvalidValueError(ValueError):
    """A text that is invalid for its parser; the message describes valid ones."""


def whole_number(text: str) -> int | None:
    """Return the number in ``text``; None unless ``text`` is 1 to 18 of the digits 0 to 9."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX else None


def size(text: str) -> int:
    """Return the size in ``text``, a number with or without K, M or G, in bytes.

    InvalidValueError if it is invalid.
    """
    word = text.strip().lower()
    unit = SIZE_UNITS.get(word[-1:], 1)
    number = whole_number(word[:-1] if unit != 1 else word)
    if not number:
        raise InvalidValueError("%r is not a size: give a number from 1, optionally with K, M or G" % text)
    return number * unit


def size_or_zero(text: str) -> int:
    """Return the size in ``text`` as `size` does, or 0 for `0`."""
    return 0 if text.strip() == "0" else size(text)


def count(text: str) -> int:
    """Return the number in ``text``; InvalidValueError if it is not a whole number from 0."""
    number = whole_number(text.strip())
    if number is None:
        raise InvalidValueError("%r is not a whole number from 0" % text)
    return number


def seconds(text: str) -> float:
    """Return the seconds in ``text``.

    InvalidValueError unless it is a number above 0 and at most a hundred years.
    """
    return _time(text, "seconds", SECONDS_MAX)


def days(text: str) -> float:
    """Return the days in ``text``.

    InvalidValueError unless it is a number above 0 and at most a hundred years.
    """
    return _time(text, "days", DAYS_MAX)


def _time(text: str, unit: str, maximum: float) -> float:
    number = decimal(text)
    if not 0 < number <= maximum:
        raise InvalidValueError("%r is not a time in %s: give a number above 0" % (text, unit))
    return number


def duration(text: str) -> float:
    """Return the duration in ``text`` in seconds; InvalidValueError if it is invalid.

    ``text`` is a number above 0, with the unit ms, s, m, h or d. Without a unit it is in seconds.
    """
    word = text.strip().lower()
    unit = next((unit for unit in ("ms", "s", "m", "h", "d") if word.endswith(unit)), "")
    number = decimal(word[: len(word) - len(unit)]) * TIME_UNITS[unit]
    if not 0 < number <= SECONDS_MAX:
        raise InvalidValueError("%r is not a time: give a number above 0, such as 5s, 500ms, 10m or 1h" % text)
    return number


def decimal(text: str) -> float:
    """Return the number in ``text``, such as 0.5 or 1e3; -1 if it is not a number."""
    word = text.strip().lower()
    digits, has_exponent, exponent = word.partition("e")
    is_number = digits.replace(".", "", 1).isdigit() and (not has_exponent or exponent.lstrip("+-").isdigit())
    return float(word) if is_number and word.isascii() and exponent.count("-") + exponent.count("+") < 2 else -1.0


def job_name(text: str) -> str:
    """Return the job name ``text``.

    InvalidValueError if it is empty, not printable, too long or reserved.
    """
    if not text.strip() or not text.isprintable() or len(text) > NAME_MAX:
        raise InvalidValueError("%r is not a name for a job: give 1 to %d printable characters" % (text, NAME_MAX))
    if text == "last":
        raise InvalidValueError("'last' cannot be the name of a job: it stands for the last one")
    return text


def job_names(text: str) -> tuple[str, ...]:
    """Return the job names in ``text``, with commas between.

    InvalidValueError if one is invalid.
    """
    return tuple([job_name(name.strip()) for name in text.split(",")]) if text.strip() else ()


def flag(text: str) -> bool:
    """Return whether ``text`` means yes; InvalidValueError if it means neither yes nor no."""
    word = text.strip().lower()
    if word in ("1", "yes", "true", "on"):
        return True
    if word in ("", "0", "no", "false", "off"):
        return False
    raise InvalidValueError("%r is neither yes nor no" % text)


def optional_engine_url(text: str) -> str:
    """Return ``text``, the URL of a store in ClickHouse, or an empty text.

    InvalidValueError if it is neither.
    """
    url = text.strip()
    if "@" in url.partition("?")[0]:
        raise InvalidValueError("the URL of a store names neither user nor password, which others could read")
    if url and not url.startswith("clickhouse://"):
        raise InvalidValueError("%r is not the URL of a store in ClickHouse: give clickhouse://HOST/DATABASE" % text)
    return url


def optional_limit(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a parser like ``parse`` that also accepts an empty text: None, for no limit."""
    return lambda text: parse(text) if text.strip() else None
