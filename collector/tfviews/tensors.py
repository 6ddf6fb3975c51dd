"""Values of variables: decoded from a checkpoint, formatted like the TF profiler."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from ...formats.pb_wire import varint

#: Types of elements, with TensorFlow's numbers.
FLOAT, DOUBLE, INT32, STRING, INT64 = 1, 2, 3, 7, 9
#: Bytes of a number, by type.
SIZES: Final = {FLOAT: 4, DOUBLE: 8, INT32: 4, INT64: 8}
_FORMATS: Final[dict[int, Any]] = {FLOAT: "f", DOUBLE: "d", INT32: "i", INT64: "q"}
#: Maximum characters of a tensor's text, without the note that the rest is left out.
TEXT_MAX: Final = 10_000
_OMITTED: Final = "...omitted from display\n\n"

Value = float | int | str


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of a checkpoint: type, shape, and its bytes in row-major order."""

    dtype: int
    shape: tuple[int, ...]
    data: bytes

    def values(self) -> Iterator[Value]:
        """Yield the elements; floats are rounded to 6 digits, like the output of a C++ stream."""
        if self.dtype == STRING:
            yield from _texts(self.data, prod(self.shape))
        elif self.dtype in (FLOAT, DOUBLE):
            yield from (float(f"{number:g}") for number in memoryview(self.data).cast(_FORMATS[self.dtype]))
        else:
            yield from memoryview(self.data).cast(_FORMATS[self.dtype])

    def text(self) -> str:
        """Return the text below a node's row."""
        pieces, size = [], 0
        for piece in _pieces(self.shape, 0, self.values()):
            pieces.append(piece)
            size += len(piece)
            if size > TEXT_MAX:
                break
        text = "".join(pieces)[:TEXT_MAX] + "],\n"
        return text + _OMITTED if len(text) >= TEXT_MAX else text


ValueLookup = Callable[[str], Tensor | None]


def no_value(_name: str) -> None:
    """Return None: no values are known."""
    return


def _pieces(shape: tuple[int, ...], depth: int, values: Iterator[Value]) -> Iterator[str]:
    """Yield the text of a tensor without its last closing bracket."""
    yield "["
    if depth == len(shape) - 1 or not shape:
        for _ in range(shape[-1] if shape else 1):
            yield _element_text(next(values))
        return
    for _ in range(shape[depth]):
        yield from _pieces(shape, depth + 1, values)
        yield "],\n"


def _element_text(value: Value) -> str:
    return f"{value:.2f} " if isinstance(value, float) else f"{value} " if isinstance(value, int) else f"'{value}' "


def _texts(data: bytes, count: int) -> Iterator[str]:
    """Yield the strings of a checkpoint, which stores all lengths, a checksum, then all strings."""
    lengths, at = [], 0
    for _ in range(count):
        length, at = varint(data, at)
        lengths.append(length)
    at += 4
    for length in lengths:
        yield data[at : at + length].decode("utf-8", "replace")
        at += length
