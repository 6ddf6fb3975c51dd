"""Completion by Tab in the shell."""

from collections.abc import Iterable

import pytest
from tfprof.cli.shell_completion import COMPLETIONS_MAX, complete

NAMES = {
    ("op", "account_type_regexes"): ["Conv2D", "MatMul", "cpu:0"],
    ("scope", "show_name_regexes"): ["conv1/kernel", "conv1/Relu", "fc"],
    ("graph", "step"): ["-1", "4", "5"],
}


def names(view: str, option: str) -> Iterable[str]:
    return NAMES.get((view, option), ())


@pytest.mark.parametrize(
    ("text", "length", "words"),
    [
        ("s", 1, ["scope", "set"]),
        ("  gr", 2, ["graph"]),
        ("nothing", 7, []),
        ("help ", 0, ["scope", "graph", "op", "code"]),
        ("op -max", 4, ["-max_depth"]),
        ("op -max_depth 3 -min_p", 6, ["-min_peak_bytes", "-min_params"]),
        ("op -order_by mi", 2, ["micros"]),
        ("op -select pe", 2, ["peak_bytes"]),
        ("op -select micros,by", 2, ["bytes"]),
        ("op --order-by o", 1, ["output_bytes", "occurrence"]),
        ("op -account_displayed_op_only t", 1, ["true"]),
        ("op -account_displayed_op_only -sel", 4, ["-select"]),
        ("op -output f", 1, ["file:outfile="]),
        ("op -output t", 1, []),
        ("op -output s", 1, ["stdout"]),
        ("code -output p", 1, ["pprof:outfile="]),
        ("set -output t", 1, ["timeline:outfile="]),
        ("op -account_type_regexes Conv2D,M", 1, ["MatMul"]),
        ("scope -show_name_regexes conv1/", 6, ["conv1/kernel", "conv1/Relu"]),
        ("graph -step ", 0, ["-1", "4", "5"]),
        ("op -max_depth ", 0, []),
    ],
)
def test_the_possible_next_words_are_offered(text: str, length: int, words: list[str]) -> None:
    completion = complete(text, names)
    assert (completion.length, completion.texts) == (length, words)


def test_commands_and_options_are_followed_by_a_space_and_values_are_not() -> None:
    assert complete("sc", names).adds_space
    assert complete("op -sel", names).adds_space
    assert not complete("op -select mi", names).adds_space


def test_an_empty_line_offers_all_commands_and_a_command_all_options() -> None:
    assert "advise" in complete("", names).texts
    assert len(complete("op ", names).texts) == 22


def test_the_number_of_completions_is_limited() -> None:
    completion = complete("op -show_name_regexes a", lambda _view, _option: (f"a{number}" for number in range(10**9)))
    assert len(completion.texts) == COMPLETIONS_MAX
