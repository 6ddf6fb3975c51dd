"""What texts of settings and options mean: numbers, sizes, times, names."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
#: The longest number that is read: more digits than any that can be meant, and fewer than Python refuses.
DIGITS_MAX = 18
#: What nobody waits for to the end, in seconds and days: a hundred years.
SECONDS_MAX = 100 * 365.25 * 86400
DAYS_MAX = SECONDS_MAX / 86400
NAME_MAX = 200


class NoValueError(ValueError):
    """A text that means no value; the message says what would."""


def whole(text: str) -> int | None:
    """Return the number from 0 that ``text`` is, in the digits 0 to 9; None when it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX else None


def size(text: str) -> int:
    """Return the bytes that ``text`` means: a number with K, M or G behind it, or none; NoValueError when it is neither."""
    word = text.strip().lower()
    unit = UNITS.get(word[-1:], 1)
    number = whole(word[:-1] if unit != 1 else word)
    if not number:
        raise NoValueError("%r is no size: a number from 1, with K, M or G behind it or none" % text)
    return number * unit


def seconds(text: str) -> float:
    """Return the seconds that ``text`` means; NoValueError when it is no number above 0, or more than a hundred years."""
    number = decimal(text)
    if not 0 < number <= SECONDS_MAX:
        raise NoValueError("%r is no time in seconds: a number above 0" % text)
    return number


def days(text: str) -> float:
    """Return the days that ``text`` means; NoValueError when it is no number above 0, or more than a hundred years."""
    number = decimal(text)
    if not 0 < number <= DAYS_MAX:
        raise NoValueError("%r is no time in days: a number above 0" % text)
    return number


def decimal(text: str) -> float:
    """Return the number that ``text`` is, as 0.5 or 1e3; -1 when it is none."""
    word = text.strip().lower()
    digits, e, exponent = word.partition("e")
    is_number = digits.replace(".", "", 1).isdigit() and (not e or exponent.lstrip("+-").isdigit())
    return float(word) if is_number and word.isascii() and exponent.count("-") + exponent.count("+") < 2 else -1.0


def job_name(text: str) -> str:
    """Return the name of a job; NoValueError when a job of that name could not be shown, or asked about."""
    if not text.strip() or not text.isprintable() or len(text) > NAME_MAX:
        raise NoValueError("%r is no name for a job: 1 to %d printable characters" % (text, NAME_MAX))
    if text == "last":
        raise NoValueError("'last' is no name for a job: it stands for the last one")
    return text


def flag(text: str) -> bool:
    """Return whether ``text`` switches something on; NoValueError when it is neither yes nor no."""
    word = text.strip().lower()
    if word in ("1", "yes", "true", "on"):
        return True
    if word in ("", "0", "no", "false", "off"):
        return False
    raise NoValueError("%r is neither yes nor no" % text)


def limit(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a parser of what ``parse`` reads, or of no text at all, which is None: no limit."""
    return lambda text: parse(text) if text.strip() else None
