"""Prints the answer of a view, for commands and the shell."""

from ..collector.query.explanations import hint, incomplete_reason, left_out
from ..collector.write_output import AnswerText
from ..commands.streams import note
from .command import print_lines


def print_answer(answer_text: AnswerText) -> None:
    """Print the lines of an answer, and notes about it on standard error.

    The notes are the answer's warnings, the reasons if it is empty or incomplete, and hints.
    """
    answer = answer_text.answer
    if answer.has_entries:
        print_lines(answer_text.lines)
    for text in answer_text.warnings:
        note(text)
    reasons = (
        (incomplete_reason(answer),) if answer_text.in_own_layout else (left_out(answer), incomplete_reason(answer))
    )
    for reason in (*reasons, hint(answer) if answer.has_entries and not answer_text.in_own_layout else None):
        if reason:
            note(reason)
    if answer.view.name == "code" and answer.options.account_displayed_op_only:
        note("Note: code view ignores account_displayed_op_only")
