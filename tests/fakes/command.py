"""Calls the `tfprof` command in the process of the test."""

import contextlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.json_schema import validated
from tfprof.cli import main as cli

#: Runs a command line; returns (exit status, standard output, standard error).
Run = Callable[..., tuple[int, str, str]]


def caller(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs the words of a command line.

    What --json prints must be valid by its JSON Schema.
    """

    def call(*words: Path | str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            cli.main([*map(str, words)])
        captured = capsys.readouterr()
        if "--json" in words:
            _check_documents(str(words[0]), captured.out)
        return int(ended.value.code or 0), captured.out, captured.err

    return call


def answer(*words: Path | str) -> tuple[int, str, str]:
    """Run the words of a command line; return (exit status, standard output, standard error)."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors), pytest.raises(SystemExit) as ended:
        cli.main([*map(str, words)])
    return int(ended.value.code or 0), out.getvalue(), errors.getvalue()


def output_of(*words: Path | str) -> str:
    """Return the standard output of a command line; AssertionError if its exit status is not 0."""
    status, out, errors = answer(*words)
    assert status == 0, f"{words[0]}: {errors.strip()}"
    if "--json" in words:
        _check_documents(str(words[0]), out)
    return out


def stored_jobs() -> list[dict[str, Any]]:
    """Return the rows of `tfprof jobs`, none if the command fails, as it does without a store."""
    status, out, _ = answer("jobs", "--json")
    return list(json.loads(out)["jobs"]) if status == 0 else []


def _check_documents(command: str, text: str) -> None:
    for document in text.splitlines() if command == "follow" else [text] * bool(text):
        validated(document)
