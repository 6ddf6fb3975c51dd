"""Notes beside a code view: how to show only the user's lines; gradients of ops without a stack."""

import shlex

from fakes.nodes import node, with_stack
from tfprof.collector.query.engine import VIEWS, Answer
from tfprof.collector.query.explanations import hint, incomplete_reason
from tfprof.collector.query.job_selection import Selection
from tfprof.collector.query.profile import Profile
from tfprof.collector.tfviews.code import code_view
from tfprof.collector.tfviews.nodes import Frame, Node
from tfprof.collector.tfviews.options import Options

OWN_FRAME, LIBRARY_FRAME = (
    Frame("/ada/my.model.py", 9, "main"),
    Frame("/usr/lib/python3.11/site-packages/ops.py", 3, "call"),
)
NODES = [with_stack(node("a", "Add", micros=1), OWN_FRAME, LIBRARY_FRAME)]


def answer(nodes: list[Node], **options: object) -> Answer:
    """Return the code view of ``nodes``."""
    view_options = Options(**options)  # type: ignore[arg-type]
    return Answer(Selection(()), VIEWS["code"], view_options, Profile(nodes, 1), code_view(nodes, view_options))


def test_the_users_files_are_suggested_as_patterns() -> None:
    assert hint(answer(NODES)) == r"your own lines alone: -max_depth 1000 -show_name_regexes 'my\.model\.py:.*'"


def test_a_suggested_pattern_is_one_word_of_a_shell() -> None:
    suggestion = hint(answer([with_stack(node("a", "Add"), Frame("/ada/ada's;reboot;.py", 1, "f"))]))
    assert suggestion is not None
    assert shlex.split(suggestion)[-2:] == ["-show_name_regexes", r"ada's;reboot;\.py:.*"]


def test_only_some_of_many_files_are_named() -> None:
    nodes = [with_stack(node("a", "Add"), *(Frame(f"/ada/f{number}.py", 1, "f") for number in range(9)))]
    message = hint(answer(nodes))
    assert message is not None
    assert message.endswith(r"f0\.py:.*,f1\.py:.*,f2\.py:.*,f3\.py:.*', and so on for 5 more files")


def test_a_name_with_a_comma_is_left_out() -> None:
    assert hint(answer([with_stack(node("a", "Add"), Frame("a,b.py", 1, "f"))])) is None


def test_there_is_no_hint_if_lines_are_selected_or_no_line_is_the_users() -> None:
    assert hint(answer(NODES, show_name_regexes=("my.*",))) is None
    assert hint(answer([with_stack(node("a", "Add"), LIBRARY_FRAME)])) is None


def test_gradients_without_a_forward_stack_are_counted() -> None:
    gradient = with_stack(node("gradients/b_grad/x", "Add"), OWN_FRAME)
    assert incomplete_reason(answer(NODES)) is None
    assert incomplete_reason(answer([*NODES, gradient])) == (
        "1 gradient nodes not accounted: their forward ops have no stack"
    )


def test_without_a_stack_there_is_no_code_trace() -> None:
    assert incomplete_reason(answer([node("a", "Add")])) == "No code trace information"
