"""Adds a call in front of functions of the standard library, checks their code, and runs some.

This script runs in Python 3.7 and later. Usage: prologue_check.py SHIM_FOLDER keeps|drops
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
keeps_result = sys.argv[2] == "keeps"


class EndRecorder:
    def __del__(self):
        ends.append(1)


def callback(_first):
    calls.append(1)
    return EndRecorder() if keeps_result else None


def load_prologue(shim_folder):
    package = types.ModuleType("ours")
    package.__path__ = [shim_folder]
    sys.modules["ours"] = package
    return __import__("ours.prologue").prologue


def instructions(code):
    """Return [name, argument, line, whether it is a jump] of each instruction.

    The argument of a jump is the number of its target.
    """
    plain_instructions = [
        instruction for instruction in dis.get_instructions(code) if instruction.opname != "EXTENDED_ARG"
    ]
    # A jump may lead to the EXTENDED_ARG before its target.
    starts = [0] + [instruction.offset + 2 for instruction in plain_instructions]
    numbers = {
        at: number
        for number, instruction in enumerate(plain_instructions)
        for at in range(starts[number], instruction.offset + 2)
    }
    lines, line, result = dict(dis.findlinestarts(code)), None, []
    at = 0
    for instruction in plain_instructions:
        while at <= instruction.offset:
            line = lines.get(at, line)
            at += 2
        is_jump = instruction.opcode in dis.hasjabs or instruction.opcode in dis.hasjrel
        result.append(
            [instruction.opname, numbers.get(instruction.argval) if is_jump else instruction.argval, line, is_jump]
        )
    return result


def without_release(rows):
    """Return ``rows`` without the instructions that release the kept value before each return.

    Jumps to these instructions lead to the return.
    """
    numbers: list[int] = []
    remaining: list[Any] = []
    for number, row in enumerate(rows):
        numbers.append(len(remaining))
        if [neighbour[0] for neighbour in rows[number : number + 3]] != ["ROT_TWO", "POP_TOP", "RETURN_VALUE"] and (
            [neighbour[0] for neighbour in rows[max(number - 1, 0) : number + 2]]
            != ["ROT_TWO", "POP_TOP", "RETURN_VALUE"]
        ):
            remaining.append(row)
    return [
        [name, numbers[target] if is_jump and target is not None else target, line, is_jump]
        for name, target, line, is_jump in remaining
    ]


def check(code, new_code):
    """Check that ``new_code`` is ``code`` with a call in front."""
    old, new = instructions(code), instructions(new_code)
    if keeps_result and sys.version_info[:2] in ((3, 9), (3, 10)):
        new = without_release(new)
    added_count = len(new) - len(old)
    start = [instruction[0] for instruction in old].index("RESUME") + 1 if sys.version_info >= (3, 11) else 0
    for before, after in zip(old, new[:start] + new[start + added_count :]):  # noqa: B905 - Python 3.7 has no strict
        argument = before[1] + added_count if before[3] and before[1] is not None and before[1] >= start else before[1]
        assert before[0] == after[0], (code, before, after)
        assert argument is after[1] or repr(argument) == repr(after[1]), (code, before, after)
        assert before[2] == after[2], (code, before, after)
    if hasattr(code, "co_positions"):
        old, new = list(code.co_positions()), list(new_code.co_positions())
        added_count = len(new) - len(old)
        start = next(
            at
            for at, instruction in enumerate(dis.get_instructions(code, show_caches=True))
            if instruction.opname == "RESUME"
        )
        assert new[: start + 1] + new[start + 1 + added_count :] == old, code


def functions():
    """Yield the functions of some modules, which `main` changes."""
    for module in (argparse, configparser, inspect, json.encoder, json.decoder, textwrap, traceback, xml.dom.minidom):
        for holder in [module] + [value for value in vars(module).values() if isinstance(value, type)]:
            for value in list(vars(holder).values()):
                if isinstance(value, types.FunctionType) and value.__module__ == module.__name__:
                    yield value


def run_functions():
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
    prologue = load_prologue(sys.argv[1])
    changed_count = tried_count = 0
    for function in functions():
        code = function.__code__
        if not code.co_argcount or code.co_flags & prologue._GENERATORS:
            continue
        tried_count += 1
        new_code = prologue.with_call(code, callback, 1, keeps_result)
        if new_code is not None:
            check(code, new_code)
            function.__code__ = new_code
            changed_count += 1
    run_functions()
    print(changed_count, len(calls), tried_count, len(ends))


main()
