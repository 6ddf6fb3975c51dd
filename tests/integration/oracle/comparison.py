"""What is to be equal of two answers to one question, and where two values differ."""

import gzip
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any, Final

from integration.oracle.decoded import decoded
from integration.oracle.graphs import ODD_NAMES
from tfprof.collector.text import clean

#: What an answer's message is, by view.
MESSAGES: Final = {
    "scope": "GraphNodeProto",
    "graph": "GraphNodeProto",
    "op": "MultiGraphNodeProto",
    "code": "MultiGraphNodeProto",
    "advise": "AdviceProto",
}
#: Above it each side explains in words of its own.
LEGEND: Final = "Profile:\n"
#: How lines on standard error begin that both sides print.
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
#: Names with control characters, which we never print, of cases.
CONTROLS: Final = {name: clean(name) for name in ODD_NAMES if name != clean(name)}


def clean_names(text: str) -> str:
    """Return a text with names as we print them."""
    for name, printed in CONTROLS.items():
        text = text.replace(name, printed)
    return text


def rows(text: str) -> str:
    """Return what a text says from the legend on; what comes before the explanation belongs to it too."""
    before, legend, after = text.partition(LEGEND)
    return before.partition("\nDoc:\n")[0] + legend + after if legend else text


def sampled(data: bytes) -> Any:
    """Return a pprof file's profile; the explanation in its comment is each side's own."""
    profile = decoded("pprof", gzip.decompress(data))
    texts: list[Any] = list(profile[6])
    for comment in profile.get(13, ()):
        texts[comment] = "comment"
    return {**profile, 6: texts}


def _said(text: str) -> list[str]:
    """Return the lines of a text on standard error that are told to users of either side.

    Ours may say what would be right.
    """
    return [line.partition(" (one of ")[0] for line in text.split("\n") if line.startswith(WARNINGS)]


def _by_checker(printed: str) -> dict[str, list[str]]:
    """Return printed advice by checker: TensorFlow prints in the order of a map, which is none."""
    found: dict[str, list[str]] = {}
    at = ""
    for line in printed.split("\n"):
        at = line if line.endswith("Checker:") else at
        found.setdefault(at, []).append(line)
    return {name: [line for line in lines if line] for name, lines in found.items()}


def _readable(data: bytes) -> str:
    """Return UTF-8; half a letter, at the end of a name that tfprof cut, is a question mark, as with us."""
    return data.decode("utf-8", "replace").replace("\ufffd", "?")


def comparable(question: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return what counts of an answer {root, files, printed, warned}, all bytes as Latin-1 text."""
    kind = question.get("options", {}).get("output", "").partition(":")[0]
    files = {name: text.encode("latin-1") for name, text in answer["files"].items()}
    forms = {"file": lambda data: rows(clean_names(_readable(data))), "pprof": sampled}
    told = {name: forms.get(kind, _readable)(data) for name, data in files.items()}
    message = decoded(MESSAGES[question["view"]], answer["root"].encode("latin-1"))
    printed, warned = (clean_names(_readable(answer[name].encode("latin-1"))) for name in ("printed", "warned"))
    said: Any = _by_checker(printed) if question["view"] == "advise" else rows(printed)
    return {"message": message, "files": told, "printed": said, "warned": _said(warned)}


def differences(theirs: Any, mine: Any, where: str = "") -> Iterator[str]:
    """Yield where two values differ, a line each."""
    if theirs == mine:
        return
    if isinstance(theirs, dict) and isinstance(mine, dict):
        for key in sorted({*theirs, *mine}, key=repr):
            yield from differences(theirs.get(key), mine.get(key), f"{where}.{key}")
    elif isinstance(theirs, list) and isinstance(mine, list):
        for at, (one, other) in enumerate(zip_longest(theirs, mine)):
            yield from differences(one, other, f"{where}[{at}]")
    elif isinstance(theirs, str) and isinstance(mine, str) and "\n" in theirs + mine:
        yield from differences(theirs.split("\n"), mine.split("\n"), where)
    else:
        yield f"{where}: {theirs!r} != {mine!r}"
