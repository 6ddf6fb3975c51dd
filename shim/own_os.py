"""A copy of the module `os`: the job's tests may replace functions of the original, at any time.

Mocks of `os` and `os.path` then neither see our calls nor change their results. Also the file names
of our code in frames and tracebacks.
"""

TYPE_CHECKING = False  # importing typing would slow down every interpreter's start
if TYPE_CHECKING:
    import os as os  # noqa: PLC0414 - exported
else:
    import os as _os
    import posix as _posix

    os, _path = type(_os)("os"), type(_os)("posixpath")
    vars(_path).update(vars(_os.path))
    # An attach may fall into such a test; the module `posix` has the originals.
    _originals = {name: value for name, value in vars(_posix).items() if type(value) is type(_posix.stat)}
    vars(os).update({**vars(_os), **_originals, "path": _path, "__name__": "_tfprof.os"})  # pyfakefs looks for `os`

_FOLDER = os.path.dirname((lambda: 0).__code__.co_filename)
_ROOT, _NAME = os.path.split(_FOLDER)
#: The prefixes of these names. In jobs there is only `<tfprof/`, as if the modules were frozen.
OUR_FILE_PREFIXES = tuple(os.path.join(_ROOT, name, "") for name in ((_NAME, "formats") if _ROOT else (_NAME,)))
