"""Prints the answer of a view, for commands and the shell."""

from ..collector.write_output import AnswerText
from ..commands.streams import note, print_lines


def print_answer(answer_text: AnswerText) -> None:
    """Print the lines of an answer, and its warnings and notes on standard error."""
    if answer_text.answer.has_entries:
        print_lines(answer_text.lines, kept="" if answer_text.in_own_layout else "\t")
    for text in (*answer_text.warnings, *answer_text.notes):
        note(text)
