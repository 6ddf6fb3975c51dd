"""Chrome's trace events in the same bytes as the TF profiler's JSON writer."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

_PLAIN: Final = re.compile(r"[ !#-\[\]-\x7f]*")
_ESCAPES: Final = {'"': r"\"", "\\": r"\\", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t"}
_REPLACEMENT: Final = 0xFFFD
_SURROGATES: Final = range(0xD800, 0xE000)
#: For characters of 1 to 4 bytes: exclusive bound of the first byte, number of bytes, mask of the
#: data bits in the first byte, lowest code point.
_LENGTHS: Final = ((0x80, 1, 0x7F, 0), (0xE0, 2, 0x1F, 0x80), (0xF0, 3, 0x0F, 0x800), (0xF8, 4, 0x07, 0x10000))


class TraceEvents:
    """Events in the order of the file: names and bars before flows and counters."""

    def __init__(self) -> None:
        self._first: list[str] = []
        self._then: list[str] = []

    def process(self, pid: int, name: str) -> None:
        """Add the name of a process."""
        self._first.append(f'{{"args":{{"name":{quoted(name)}}},"name":"process_name","ph":"M","pid":{pid}}}')

    def bar(self, name: str, pid: int, tid: int, start: int, lasted: int, args: Iterable[str] = ("name",)) -> None:
        """Add a bar; all of ``args`` have its name."""
        text = quoted(name)
        inner = ",".join(f'"{arg}":{text}' for arg in args)
        self._first.append(
            f'{{"args":{{{inner}}},"cat":"Op","dur":{lasted},"name":{text},'
            f'"ph":"X","pid":{pid},"tid":{tid},"ts":{start}}}'
        )

    def flow(self, name: str, number: int, source: tuple[int, int, int], target: tuple[int, int, int]) -> None:
        """Add an arrow from ``source`` to ``target``, each (pid, tid, µs)."""
        text = quoted(name)
        for phase, (pid, tid, at) in (("s", source), ("t", target)):
            self._then.append(
                f'{{"cat":"DataFlow","id":{number},"name":{text},"ph":"{phase}","pid":{pid},"tid":{tid},"ts":{at}}}'
            )

    def counter(self, name: str, pid: int, at: int, args: Mapping[str, int | str]) -> None:
        """Add the values of a counter at time ``at`` (µs)."""
        inner = ",".join(
            f"{quoted(key)}:{quoted(value) if isinstance(value, str) else value}" for key, value in sorted(args.items())
        )
        self._then.append(
            f'{{"args":{{{inner}}},"cat":"Memory","name":{quoted(name)},"ph":"C","pid":{pid},"tid":0,"ts":{at}}}'
        )

    def json(self) -> bytes:
        """Return the file."""
        return f'{{"traceEvents":[{",".join(self._first + self._then)}]}}\n'.encode()


def quoted(text: str) -> str:
    """Return ``text`` as a JSON string in ASCII; invalid UTF-8 is converted as jsoncpp does it."""
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    return '"' + "".join(map(_escaped, _characters(text.encode("utf-8", "surrogateescape")))) + '"'


def _escaped(point: int) -> str:
    if point < 0x80:
        character = chr(point)
        return _ESCAPES.get(character) or (character if character >= " " else f"\\u{point:04x}")
    if point < 0x10000:
        return f"\\u{point:04x}"
    point -= 0x10000
    return f"\\u{0xD800 + (point >> 10):04x}\\u{0xDC00 + (point & 0x3FF):04x}"


def _characters(data: bytes) -> Iterable[int]:
    """Yield the code points of ``data`` as jsoncpp decodes them.

    Jsoncpp uses six bits of every continuation byte without checking it.
    """
    at = 0
    while at < len(data):
        first = data[at]
        length, mask, least = next((rest for below, *rest in _LENGTHS if first < below), (1, 0, 1))
        if at + length > len(data):
            length, least = 1, 1 << 30
        point = first & mask
        for byte in data[at + 1 : at + length]:
            point = point << 6 | byte & 0x3F
        yield _REPLACEMENT if point < least or point in _SURROGATES else point
        at += length
