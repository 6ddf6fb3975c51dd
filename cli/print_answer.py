"""Prints an answer, for commands and the shell."""

from ..collector.query.explanations import hint, left_out, why
from ..collector.write_output import Delivery
from .command import note, print_lines


def print_answer(delivery: Delivery) -> None:
    """Print the lines of an answer, and on standard error its notes and why nothing, or not everything, is shown."""
    answer = delivery.answer
    if answer.shows_something:
        print_lines(delivery.lines)
    for text in delivery.warnings:
        note(text)
    reasons = (why(answer),) if delivery.for_people else (left_out(answer), why(answer))
    for reason in (*reasons, hint(answer) if answer.shows_something and not delivery.for_people else None):
        if reason:
            note(reason)
    if answer.view.name == "code" and answer.options.account_displayed_op_only:
        note("Note: code view ignores account_displayed_op_only")
