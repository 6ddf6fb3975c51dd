"""A copy of the module `os`: the job's tests may replace functions of the original.

Mocks of `os` and `os.path` then neither see our calls nor change their results. Also the file names
of our code in frames and tracebacks.
"""

TYPE_CHECKING = False  # types are quoted: importing even __future__ would slow down every interpreter's start
if TYPE_CHECKING:
    import os as os  # noqa: PLC0414 - exported
    from typing import Any
else:
    import os as _os


def _copy(module: "Any") -> "Any":
    copy = type(module)(module.__name__)
    vars(copy).update(vars(module))
    return copy


if not TYPE_CHECKING:
    os = _copy(_os)
    os.path = _copy(_os.path)

_FOLDER = os.path.dirname((lambda: 0).__code__.co_filename)
_ROOT, _NAME = os.path.split(_FOLDER)
#: The prefixes of these names. In jobs there is only `<tfprof/`, as if the modules were frozen.
OUR_FILE_PREFIXES = tuple(os.path.join(_ROOT, name, "") for name in ((_NAME, "formats") if _ROOT else (_NAME,)))
