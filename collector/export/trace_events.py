"""Chrome's trace events, byte for byte as the TF profiler's JSON writer writes them."""

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
        self._names_and_bars: list[str] = []
        self._flows_and_counters: list[str] = []

    def process(self, pid: int, name: str) -> None:
        """Add the name of a process."""
        self._names_and_bars.append(f'{{"args":{{"name":{quoted(name)}}},"name":"process_name","ph":"M","pid":{pid}}}')

    def bar(self, name: str, pid: int, tid: int, start: int, duration: int, args: Iterable[str] = ("name",)) -> None:
        """Add a bar; ``args``: names of its arguments, all with the value ``name``."""
        text = quoted(name)
        arguments = ",".join(f'"{arg}":{text}' for arg in args)
        self._names_and_bars.append(
            f'{{"args":{{{arguments}}},"cat":"Op","dur":{duration},"name":{text},'
            f'"ph":"X","pid":{pid},"tid":{tid},"ts":{start}}}'
        )

    def flow(self, name: str, number: int, source: tuple[int, int, int], target: tuple[int, int, int]) -> None:
        """Add an arrow from ``source`` to ``target``, each (pid, tid, µs)."""
        text = quoted(name)
        for phase, (pid, tid, time_us) in (("s", source), ("t", target)):
            self._flows_and_counters.append(
                f'{{"cat":"DataFlow","id":{number},"name":{text},'
                f'"ph":"{phase}","pid":{pid},"tid":{tid},"ts":{time_us}}}'
            )

    def counter(self, name: str, pid: int, time_us: int, args: Mapping[str, int | str]) -> None:
        """Add the values of a counter at ``time_us``."""
        arguments = ",".join(
            f"{quoted(key)}:{quoted(value) if isinstance(value, str) else value}" for key, value in sorted(args.items())
        )
        self._flows_and_counters.append(
            f'{{"args":{{{arguments}}},"cat":"Memory","name":{quoted(name)},"ph":"C","pid":{pid},"tid":0,"ts":{time_us}}}'
        )

    def json(self) -> bytes:
        """Return the file."""
        return f'{{"traceEvents":[{",".join(self._names_and_bars + self._flows_and_counters)}]}}\n'.encode()


def quoted(text: str) -> str:
    """Return ``text`` as a JSON string in ASCII; invalid UTF-8 is converted as jsoncpp does it."""
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    return '"' + "".join(map(_escaped, _characters(text.encode("utf-8", "surrogateescape")))) + '"'


def _escaped(code_point: int) -> str:
    if code_point < 0x80:
        character = chr(code_point)
        return _ESCAPES.get(character) or (character if character >= " " else f"\\u{code_point:04x}")
    if code_point < 0x10000:
        return f"\\u{code_point:04x}"
    code_point -= 0x10000
    return f"\\u{0xD800 + (code_point >> 10):04x}\\u{0xDC00 + (code_point & 0x3FF):04x}"


def _characters(data: bytes) -> Iterable[int]:
    """Yield the code points of ``data`` as jsoncpp decodes them.

    Jsoncpp uses six bits of every continuation byte without checking it.
    """
    offset = 0
    while offset < len(data):
        first_byte = data[offset]
        length, mask, lowest_code_point = next((rule for bound, *rule in _LENGTHS if first_byte < bound), (1, 0, 1))
        if offset + length > len(data):
            length, lowest_code_point = 1, 1 << 30
        code_point = first_byte & mask
        for byte in data[offset + 1 : offset + length]:
            code_point = code_point << 6 | byte & 0x3F
        yield _REPLACEMENT if code_point < lowest_code_point or code_point in _SURROGATES else code_point
        offset += length
