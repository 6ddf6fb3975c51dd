"""Checks whether a module of the job has the names that the shim relies on.

A name is written like this:

- `Class.name`: the class or one of its bases has the attribute, or a method of theirs assigns it.
  Attributes of modules, and of objects in them, are written in the same way.
- `Class.name()`: the class itself has this function, which tfprof replaces or observes. `*.name()`
  stands for that of any class that the module defines.
- `Class.name(3)`: the function has three positional parameters.
- `name > other`: the code of the function uses the name `other`, or has a variable of that name.
- `module:name`: the name is in another module. `module:` is that module, loaded and with content.
- `one | other`: either is enough.
- `Class.{one other}`: each of the names.
- `name!`: if it differs, the module must not be patched. If a function, or the owner of a name,
  does not exist, nothing is patched there.
- `name since 2.4`: earlier versions of the framework do not have it.

A module that only imports names of other modules needs none of its own. Nothing here runs code of
the job's.
"""

from __future__ import annotations

import re
import sys
import types
from typing import Any, Sequence

from .cpython.codes import assigns_attribute, names_in

_NAME = re.compile(
    r"(?:(?P<module>[\w.]+):)?(?P<path>[\w.*]*)(?P<call>\((?P<count>\d*)\))?(?: > (?P<used>\w+))?(?P<mark>!?)\Z"
)
_VARARGS = 0x04  # flag of code that takes any number of positional arguments
_ABSENT, _ASSIGNED = object(), object()  # stand for no attribute, and for one that a method assigns


def check(module: types.ModuleType, names: Sequence[str], version: str | None) -> tuple[list[str], bool]:
    """Return the ``names`` that ``module`` lacks, and whether it can be patched.

    ``version`` is that of the framework, None if it is unknown.
    """
    missing: dict[str, None] = {}
    can_be_patched, is_empty = True, not _has_content(module)
    for written_name in (each for name in names for each in _expanded(name)):
        name, _, since = written_name.partition(" since ")
        if (since and _numbers(version or "") < _numbers(since)) or (is_empty and ":" not in name):
            continue
        alternatives = [_look_up(part, module) for part in name.split(" | ")]
        if not any(is_right for is_right, _, _ in alternatives):
            missing[" or ".join(dict.fromkeys(text for _, text, _ in alternatives))] = None
            can_be_patched &= not any(is_harmful for _, _, is_harmful in alternatives)
    return list(missing), can_be_patched


def _expanded(text: str) -> list[str]:
    """Return a name for each word in the braces of ``text``."""
    before, _, rest = text.partition("{")
    words, _, after = rest.partition("}")
    return [before + word + after for word in words.split()] or [text]


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)[:2]]


def _look_up(text: str, module: types.ModuleType) -> tuple[bool, str, bool]:
    """Return whether a written name is right, what is not, and whether patching is harmful."""
    match = _NAME.match(text)
    assert match is not None, text
    name, parts = match.groupdict(), match["path"].split(".") if match["path"] else []
    start = sys.modules.get(match["module"]) if match["module"] else module
    found: Any = _ABSENT if start is None or not (parts or _has_content(start)) else start
    depth = 0  # number of parts of the path up to ``found``
    while found is not _ABSENT and depth < len(parts):
        is_function = name["call"] and depth == len(parts) - 1
        find = _defined_function if is_function and parts[0] == "*" else _own_function if is_function else _attribute
        found, depth = find(found, parts[depth]), depth + 1
    path = ".".join(filter(None, [name["module"], *parts[:depth]]))
    if found is _ABSENT:
        # Nothing is patched where a function, or the owner of a name, does not exist.
        return False, path, bool(name["mark"]) and not name["call"] and depth == len(parts)
    function, used = _function(found), name["used"]
    takes_arguments = function is None or not name["count"] or _takes(function.__code__, int(name["count"]))
    is_right = takes_arguments and (not used or (function is not None and used in names_in(function.__code__)))
    return is_right, ("%s in %s" % (used, path) if used else "the parameters of %s" % path), bool(name["mark"])


def _takes(code: types.CodeType, count: int) -> bool:
    """Return whether ``code`` has ``count`` positional parameters, or takes any number."""
    return code.co_argcount == count or bool(code.co_flags & _VARARGS and code.co_argcount < count)


def _defined_function(module: Any, name: str) -> Any:
    """Return the function ``name`` of any class that ``module`` defines."""
    classes = [value for value in list(vars(module).values()) if _is_class(value) and _defines(module, value)]
    return next((vars(cls)[name] for cls in classes if name in vars(cls)), _ABSENT)


def _own_function(owner: Any, name: str) -> Any:
    """Return the function ``name`` of ``owner``: of a class itself, not of its bases."""
    return vars(owner).get(name, _ABSENT) if _is_class(owner) else _attribute(owner, name)


def _attribute(owner: Any, name: str) -> Any:
    """Return the attribute ``name`` of a module, a class, or an object of a class."""
    if owner is _ASSIGNED or name == "*":
        return owner
    if issubclass(type(owner), types.ModuleType):
        return vars(owner).get(name, _ABSENT)
    bases = (owner if _is_class(owner) else type(owner)).__mro__
    for base in bases:
        if name in vars(base):
            return vars(base)[name]
    functions = filter(None, (_function(value) for base in bases for value in list(vars(base).values())))
    return _ASSIGNED if any(assigns_attribute(function.__code__, name) for function in functions) else _ABSENT


def _function(value: Any) -> types.FunctionType | None:
    """Return the Python function behind an attribute of a class, without its decorators."""
    kind = type(value)
    value = value.fget if kind is property else value.__func__ if kind in (staticmethod, classmethod) else value
    while type(value) is types.FunctionType and type(vars(value).get("__wrapped__")) is types.FunctionType:
        value = vars(value)["__wrapped__"]
    return value if type(value) is types.FunctionType else None


def _has_content(module: types.ModuleType) -> bool:
    return any(_defines(module, value) for value in list(vars(module).values()))


def _defines(module: types.ModuleType, value: Any) -> bool:
    if _is_class(value):
        return bool(vars(value).get("__module__") == module.__name__)
    return type(value) is types.FunctionType and value.__module__ == module.__name__


def _is_class(value: Any) -> bool:
    return issubclass(type(value), type)
