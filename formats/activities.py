"""Categories of activities: what the job's Python does beside the ops (docs/channel.md).

An activity is a span of the kind ACTIVITY. Its key has the category in the upper four bits, and
below them bits of the CRC-32 of its name. The parent of the span is the key of the activity around
it in the same thread, 0 if there is none.
"""

from __future__ import annotations

import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping

SHIFT = 28  # the category's position in the key
_NAME_BITS = (1 << SHIFT) - 1
#: Maximum number of names of a job's activities. Further ones have the name OTHERS.
NAMES_MAX = 80
OTHERS = "others"  # its bits in a key are 0
(
    INPUT,  # a wait for the next element of a dataset, or the start of an iteration
    CHECKPOINT,  # a checkpoint, weights or a model are written or read
    SUMMARY,  # summaries are written or flushed
    CALLBACK,  # a method of a Keras callback, named by its class
    PYTHON_FUNCTION,  # a function of the job that an op calls
    GC,  # a garbage collection
    TRACING,  # TensorFlow makes the graph of a function
    FIRST_RUN,  # the rest of the call that made a graph: TensorFlow optimizes and runs it
    MARK,  # a span that the job's code marks
    PART,  # a part of a step that the job's code marks
    FETCH,  # a tensor is made an array of NumPy
    CONVERSION,  # a value of Python is made a tensor
    THREAD,  # a thread of the job's Python: it has a name, but no spans
) = range(1, 14)
#: Categories of what the job's code marks.
MARKS = (MARK, PART)
#: The one table of categories: number -> name. The names have the order of the categories.
_NAMES = "input checkpoint summary callback python_function gc tracing first_run mark part fetch conversion thread"
CATEGORIES = dict(enumerate(_NAMES.split(), INPUT))


def key_of(category: int, name: str) -> int:
    """Return the span key of activities called ``name``."""
    return category << SHIFT | (0 if name == OTHERS else zlib.crc32(name.encode("utf-8", "replace")) & _NAME_BITS)


def number_of(key: int) -> int:
    """Return the category in a span key."""
    return key >> SHIFT


def category_of(key: int) -> str:
    """Return the name of the category in a span key; its number if it is unknown."""
    return CATEGORIES.get(number_of(key), str(number_of(key)))


def label_of(key: int, names: Mapping[int, str]) -> str:
    """Return the name of the activity ``key``; ``names`` has the known names by span key."""
    bits = key & _NAME_BITS
    return OTHERS if not bits else names.get(key, "#%x" % bits)
