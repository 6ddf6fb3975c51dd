"""Selects the parts of two answers that must be equal, and finds their differences."""

import gzip
import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any, Final

from integration.oracle.decoder import decode
from integration.oracle.graphs import ODD_NAMES
from tfprof.commands.streams import clean

#: View -> the type of the answer's message.
MESSAGES: Final = {
    "scope": "GraphNodeProto",
    "graph": "GraphNodeProto",
    "op": "MultiGraphNodeProto",
    "code": "MultiGraphNodeProto",
    "advise": "AdviceProto",
}
#: The explanation above this line differs between tfprof and TensorFlow.
LEGEND: Final = "Profile:\n"
#: Beginnings of the lines that both sides print on standard error.
WARNINGS: Final = (
    "Options -step=",
    "Available steps:",
    "No code trace",
    "Only 'code' view",
    "op view doesn't support",
    "Can only select 1",
    "pprof doesn't support",
    "INVALID_ARGUMENT",
    "Invalid argument",
    "E.g.",
)
#: Names with a line break, and expressions for them -> how tfprof prints them.
PRINTED_LINES: Final = {text: clean(text) for name in ODD_NAMES for text in (name, re.escape(name)) if "\n" in text}


def without_explanation(text: str) -> str:
    """Return a text without its explanation, which is between "Doc:" and the legend."""
    before, legend, after = text.partition(LEGEND)
    return before.partition("\nDoc:\n")[0] + legend + after if legend else text


def pprof_profile(data: bytes) -> Any:
    """Return the profile in a pprof file with a fixed comment, since the comments differ."""
    profile = decode("pprof", gzip.decompress(data))
    texts: list[Any] = list(profile[6])
    for comment in profile.get(13, ()):
        texts[comment] = "comment"
    return {**profile, 6: texts}


def _warnings(text: str) -> list[str]:
    """Return the lines of standard error that both sides print, without lists of valid values."""
    return [line.partition(" (one of ")[0] for line in text.split("\n") if line.startswith(WARNINGS)]


def _by_checker(printed: str) -> dict[str, list[str]]:
    """Return printed advice by checker. TensorFlow prints the checkers in no fixed order."""
    lines_of: dict[str, list[str]] = {}
    checker = ""
    for line in printed.split("\n"):
        checker = line if line.endswith("Checker:") else checker
        lines_of.setdefault(checker, []).append(line)
    return {name: [line for line in lines if line] for name, lines in lines_of.items()}


def _readable(data: bytes) -> str:
    """Return decoded UTF-8 as tfprof prints it: `?` for cut and for control characters."""
    text = data.decode("utf-8", "surrogateescape").replace("\ufffd", "?")
    for lines, printed in PRINTED_LINES.items():
        text = text.replace(lines, printed)
    return clean(text, kept="\n")


def comparable(question: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the comparable parts of an answer {root, files, printed, warned} in Latin-1."""
    kind = question.get("options", {}).get("output", "").partition(":")[0]
    files = {name: text.encode("latin-1") for name, text in answer["files"].items()}
    readers = {"file": lambda data: without_explanation(_readable(data)), "pprof": pprof_profile}
    contents = {name: readers.get(kind, _readable)(data) for name, data in files.items()}
    message = decode(MESSAGES[question["view"]], answer["root"].encode("latin-1"))
    printed, warned = (_readable(answer[name].encode("latin-1")) for name in ("printed", "warned"))
    text: Any = _by_checker(printed) if question["view"] == "advise" else without_explanation(printed)
    return {"message": message, "files": contents, "printed": text, "warned": _warnings(warned)}


def differences(theirs: Any, mine: Any, where: str = "") -> Iterator[str]:
    """Yield the differences of two values, a line each."""
    if theirs == mine:
        return
    if isinstance(theirs, dict) and isinstance(mine, dict):
        for key in sorted({*theirs, *mine}, key=repr):
            yield from differences(theirs.get(key), mine.get(key), f"{where}.{key}")
    elif isinstance(theirs, list) and isinstance(mine, list):
        for at, (their_part, my_part) in enumerate(zip_longest(theirs, mine)):
            yield from differences(their_part, my_part, f"{where}[{at}]")
    elif isinstance(theirs, str) and isinstance(mine, str) and "\n" in theirs + mine:
        yield from differences(theirs.split("\n"), mine.split("\n"), where)
    else:
        yield f"{where}: {theirs!r} != {mine!r}"
