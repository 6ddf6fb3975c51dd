"""Adds a call in front of functions of the standard library, checks their code, and runs some.

This script runs in Python 3.7 and later. Usage:

    prologue_check.py SHIM_FOLDER drops|keeps

The mode says what happens with the result of the call. drops: it is dropped. keeps: it is kept
until the function ends.
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
VERSION = sys.version_info[:2]
SINCE_311 = VERSION >= (3, 11)
#: Instructions that are added before each return, by the return's instruction.
ADDED: "dict[str, list[str]]" = {"RETURN_VALUE": []}
if keeps_result and SINCE_311:
    ADDED = {"RETURN_VALUE": ["SWAP", "POP_TOP"], "RETURN_CONST": ["POP_TOP"]}
elif keeps_result and VERSION >= (3, 9):
    ADDED["RETURN_VALUE"] += ["ROT_TWO", "POP_TOP"]


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
    return __import__("ours.cpython.prologue", fromlist=["with_call"])


def instructions(code):
    """Return [name, argument, line, whether it is a jump, positions] of each instruction.

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
            [
                instruction.opname,
                numbers.get(instruction.argval) if is_jump else instruction.argval,
                line,
                is_jump,
                getattr(instruction, "positions", None),
            ]
        )
    return result


def without_release(rows):
    """Return ``rows`` without the instructions that were added before each return.

    Jumps to these instructions lead to the return.
    """
    names = [row[0] for row in rows]
    removed: set[int] = set()
    for number, name in enumerate(names):
        added = ADDED.get(name, [])
        if added and names[number - len(added) : number] == added:
            removed.update(range(number - len(added), number))
    numbers: list[int] = []
    remaining: list[Any] = []
    for number, row in enumerate(rows):
        numbers.append(len(remaining))
        if number not in removed:
            remaining.append(row)
    return [
        [name, numbers[target] if is_jump and target is not None else target, line, is_jump, positions]
        for name, target, line, is_jump, positions in remaining
    ]


def head_size(rows, start):
    """Return the number of instructions that were inserted from row ``start`` on."""
    call = next(number for number in range(start, len(rows)) if rows[number][0] in ("CALL", "CALL_FUNCTION"))
    return call - start + (1 if keeps_result else 2)


def check(code, new_code):
    """Check that ``new_code`` is ``code`` with a call in front."""
    old, new = instructions(code), without_release(instructions(new_code))
    start = [instruction[0] for instruction in old].index("RESUME") + 1 if SINCE_311 else 0
    added_count = head_size(new, start)
    assert added_count + len(old) == len(new)
    for before, after in zip(old, new[:start] + new[start + added_count :]):  # noqa: B905 - Python 3.7 has no strict
        argument = before[1] + added_count if before[3] and before[1] is not None and before[1] >= start else before[1]
        assert before[0] == after[0], (code, before, after)
        assert argument is after[1] or repr(argument) == repr(after[1]), (code, before, after)
        assert (before[2], before[4]) == (after[2], after[4]), (code, before, after)


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


class Item:
    """A value with methods that return in several ways."""

    def plain(self, fails):
        if fails:
            raise ValueError(self)
        return 1

    def in_block(self, fails):
        try:
            for number in range(3):
                try:
                    if number:
                        return number // (0 if fails else 1)
                finally:
                    len(sys.argv)
        finally:
            len(sys.argv)

    def handled(self, fails):
        try:
            try:
                return vars(self)["nothing"]
            except KeyError:
                return 1
        finally:
            if fails:
                raise ValueError(self)

    def with_all(self, fails, *args, key=2, **keywords):
        with open(sys.argv[0]) as file:
            values = [value // (not fails) for value in (1, 2)] + [self, args, key, keywords, file]
            return values[0]


def failure_of(function):
    """Return the exception of ``function``, which is called while another exception is handled."""
    try:
        try:
            next(iter(()))
        except StopIteration:
            function(Item(), True)
    except (ValueError, ZeroDivisionError) as error:
        return error
    raise AssertionError(function)


def check_failures(prologue):
    """Check that exceptions pass as before, and that the result of the call is released."""
    for name in ("plain", "in_block", "handled", "with_all"):
        function = vars(Item)[name]
        copy = types.FunctionType(function.__code__, globals(), name, None, function.__closure__)
        copy.__kwdefaults__ = function.__kwdefaults__
        function.__code__ = prologue.with_call(function.__code__, callback, 1, keeps_result)
        for _ in range(90):
            assert function(Item(), False) == copy(Item(), False) == 1
            del ends[:]
            caught = failure_of(function)
            assert sys.exc_info() == (None, None, None)
            assert isinstance(caught.__context__, (StopIteration, KeyError)), caught.__context__
            assert len(ends) == keeps_result
            assert [entry.name for entry in traceback.extract_tb(caught.__traceback__)][:2] == ["failure_of", name]


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
    check_failures(prologue)


main()
