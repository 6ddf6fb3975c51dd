"""The answer of the process that attaches to a job.

Tests agent/attach/helper_process.py.
"""

import sys

import pytest
from tfprof.agent.attach import helper
from tfprof.commands import daemons


@pytest.mark.parametrize(
    ("program", "text"),
    [
        ("import sys; sys.exit('out of luck')", "the attaching process failed: out of luck"),
        ("raise SystemExit(3)", "the attaching process failed: it ended with status 3 and no answer"),
    ],
)
def test_without_an_answer_the_error_has_the_last_line_on_stderr_or_the_status(
    monkeypatch, program: str, text: str
) -> None:
    monkeypatch.setattr(daemons, "isolated_command", lambda *_args: [sys.executable, "-c", program])
    assert helper.answer_by_subprocess({}) == {"slug": "attach-failed", "text": text}
