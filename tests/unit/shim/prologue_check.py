"""Adds a call in front of functions of the standard library, compares their code, and runs some.

It runs in Python 3.7 and later.
"""

import argparse
import configparser
import dis
import inspect
import json
import sys
import textwrap
import traceback
import types
import xml.dom.minidom
from typing import Any

calls: "list[int]" = []
ends: "list[int]" = []
keeps = sys.argv[2] == "keeps"


class Ending:
    def __del__(self):
        ends.append(1)


def called(_first):
    calls.append(1)
    return Ending() if keeps else None


def load(shim):
    package = types.ModuleType("ours")
    package.__path__ = [shim]
    sys.modules["ours"] = package
    return __import__("ours.prologue").prologue


def instructions(code):
    """Return name, argument, line, and whether it is a jump, of each instruction.

    The argument of a jump is the number of its target.
    """
    found = [each for each in dis.get_instructions(code) if each.opname != "EXTENDED_ARG"]
    begins = [0] + [each.offset + 2 for each in found]  # a jump may lead to the extension of its target
    numbers = {at: number for number, each in enumerate(found) for at in range(begins[number], each.offset + 2)}
    lines, line, result = dict(dis.findlinestarts(code)), None, []
    at = 0
    for each in found:
        while at <= each.offset:
            line = lines.get(at, line)
            at += 2
        jumps = each.opcode in dis.hasjabs or each.opcode in dis.hasjrel
        result.append([each.opname, numbers.get(each.argval) if jumps else each.argval, line, jumps])
    return result


def without_release(found):
    """Return ``found`` without the instructions that release the kept value before each return.

    Jumps to these instructions lead to the return.
    """
    numbers: list[int] = []
    kept: list[Any] = []
    for number, each in enumerate(found):
        numbers.append(len(kept))
        if [other[0] for other in found[number : number + 3]] != ["ROT_TWO", "POP_TOP", "RETURN_VALUE"] and (
            [other[0] for other in found[max(number - 1, 0) : number + 2]] != ["ROT_TWO", "POP_TOP", "RETURN_VALUE"]
        ):
            kept.append(each)
    return [[name, numbers[to] if jumps and to is not None else to, line, jumps] for name, to, line, jumps in kept]


def check(code, changed):
    """Compare ``code`` with ``changed``, except for the call in front."""
    old, new = instructions(code), instructions(changed)
    if keeps and sys.version_info[:2] in ((3, 9), (3, 10)):
        new = without_release(new)
    more = len(new) - len(old)
    begin = [each[0] for each in old].index("RESUME") + 1 if sys.version_info >= (3, 11) else 0
    for one, other in zip(old, new[:begin] + new[begin + more :]):  # noqa: B905 - Python 3.7 has no strict
        argument = one[1] + more if one[3] and one[1] is not None and one[1] >= begin else one[1]
        assert one[0] == other[0], (code, one, other)
        assert argument is other[1] or repr(argument) == repr(other[1]), (code, one, other)
        assert one[2] == other[2], (code, one, other)
    if hasattr(code, "co_positions"):
        old, new = list(code.co_positions()), list(changed.co_positions())
        more = len(new) - len(old)
        begin = next(
            at for at, each in enumerate(dis.get_instructions(code, show_caches=True)) if each.opname == "RESUME"
        )
        assert new[: begin + 1] + new[begin + 1 + more :] == old, code


def functions():
    """Yield the functions of the modules that are changed."""
    for module in (argparse, configparser, inspect, json.encoder, json.decoder, textwrap, traceback, xml.dom.minidom):
        for holder in [module] + [each for each in vars(module).values() if isinstance(each, type)]:
            for each in list(vars(holder).values()):
                if isinstance(each, types.FunctionType) and each.__module__ == module.__name__:
                    yield each


def use():
    """Run many of the changed functions."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--number", type=int, help="a number of things")
    assert parser.parse_args(["--number", "3"]).number == 3
    assert "--number" in parser.format_help()
    config = configparser.ConfigParser()
    config.read_string("[a]\nb = 1\nc = %(b)s2\n")
    assert config.get("a", "c") == "12"
    assert config.get("a", "nothing", fallback="x") == "x"
    assert "in main" in "".join(traceback.format_stack())
    assert str(inspect.signature(textwrap.wrap)).startswith("(text, width=70")
    assert "def wrap" in inspect.getsource(textwrap.wrap)
    assert json.loads(json.dumps({"a": [1, 2.5, None]}, indent=1)) == {"a": [1, 2.5, None]}
    assert textwrap.fill("a word " * 20, 20).count("\n") == 6
    assert "<b/>" in xml.dom.minidom.parseString("<a><b/></a>").toprettyxml()


def main():
    prologue = load(sys.argv[1])
    changed = tried = 0
    for function in functions():
        code = function.__code__
        if not code.co_argcount or code.co_flags & prologue._GENERATORS:
            continue
        tried += 1
        made = prologue.with_call(code, called, 1, keeps)
        if made is not None:
            check(code, made)
            function.__code__ = made
            changed += 1
    use()
    print(changed, len(calls), tried, len(ends))


main()
