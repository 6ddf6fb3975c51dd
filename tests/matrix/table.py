"""The table of the matrix: expectations for the documentation, results for the terminal."""

from collections.abc import Mapping
from typing import Final

from .cell import Outcome
from .rows import LIMITS, ROWS, Row
from .versions import VERSIONS, Version

RIGHT, ABSENT, WRONG, NOT_RUN = "✓", "–", "✗", " "
#: Limitation -> its letter in the table.
LETTERS: Final = dict(zip(LIMITS, "abcdefghijklm", strict=False))


def expected_text(row: Row, version: Version) -> str:
    """Return the expected text of a cell."""
    if not row.runs_on(version):
        return ABSENT
    limit_name = row.limit_name(version)
    return LETTERS[limit_name] if limit_name else RIGHT


def markdown() -> str:
    """Return the table of the documentation, with its notes."""
    lines = ["| | " + " | ".join(version.name for version in VERSIONS) + " |", "|---" * (1 + len(VERSIONS)) + "|"]
    lines += [
        "| " + " | ".join([row.title, *(expected_text(row, version) for version in VERSIONS)]) + " |" for row in ROWS
    ]
    notes = [f"- {letter}: {LIMITS[name].text}" for name, letter in LETTERS.items()]
    return "\n".join([*lines, "", *notes, ""])


def terminal(outcomes: Mapping[tuple[str, str], Outcome]) -> str:
    """Return the table of the results, followed by the errors."""
    width = max(len(row.title) for row in ROWS)
    lines = ["".join([" " * width, *(f"{version.name:>6}" for version in VERSIONS)])]
    for row in ROWS:
        cells = [_cell_text(row, version, outcomes.get((row.name, version.name))) for version in VERSIONS]
        lines.append("".join([f"{row.title:{width}}", *(f"{cell:>6}" for cell in cells)]))
    for names, outcome in outcomes.items():
        lines += [" ".join([*names, text]) for text in outcome.problems()]
    return "\n".join(lines)


def _cell_text(row: Row, version: Version, outcome: Outcome | None) -> str:
    if outcome is None:
        return NOT_RUN if row.runs_on(version) else ABSENT
    return WRONG if outcome.problems() else expected_text(row, version)
