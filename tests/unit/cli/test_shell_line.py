"""Lines of the shell: words separated by spaces, and the TF profiler's errors."""

import pytest
from tfprof.cli.shell_line import COMMANDS, OPTIONS, ParsedLine, parse
from tfprof.collector.errors import UsageError
from tfprof.collector.tfviews.options import TABLE


def test_a_line_is_a_command_and_options_with_their_values() -> None:
    line = parse("  op   -max_depth 3 -select 'micros,bytes'  -step -1")
    assert line == ParsedLine("op", {"max_depth": "3", "select": "'micros,bytes'", "step": "-1"})


@pytest.mark.parametrize("spelling", ["-max_depth 4", "--max_depth 4", "-max-depth 4", "--max-depth=4", "-max_depth=4"])
def test_an_option_may_be_spelled_as_in_commands(spelling: str) -> None:
    assert parse(f"scope {spelling}").texts == {"max_depth": "4"}


def test_a_value_may_have_equal_signs() -> None:
    assert parse("op -output file:outfile=a=b").texts == {"output": "file:outfile=a=b"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("op -account_displayed_op_only", "true"),
        ("op -account_displayed_op_only -step 1", "true"),
        ("op -account_displayed_op_only no", "no"),
    ],
)
def test_a_boolean_option_without_a_value_means_true(text: str, value: str) -> None:
    assert parse(text).texts["account_displayed_op_only"] == value


def test_the_last_value_of_a_repeated_option_counts() -> None:
    assert parse("op -step 1 -step 2").texts == {"step": "2"}


@pytest.mark.parametrize("command", ["help", "history", "exit", "quit"])
def test_some_commands_take_words(command: str) -> None:
    assert parse(f"{command} op x") == ParsedLine(command, {}, ("op", "x"))


def test_every_option_has_every_spelling() -> None:
    assert {option.name for option in OPTIONS.values()} == {option.name for option in TABLE} | {"kind"}
    assert len(OPTIONS) == sum(4 if "_" in option.name else 2 for option in TABLE) + 2
    assert set(COMMANDS) >= {"scope", "graph", "op", "code", "advise", "set", "help"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("foo", "First string must be a valid command."),
        ("Op", "First string must be a valid command."),
        ("-max_depth 3", "First string must be a valid command."),
        ("op -foo 3", "Invalid option '-foo' value: '3'"),
        ("op -foo", "Invalid option '-foo' value: ''"),
        ("op foo bar", "Invalid option 'foo' value: 'bar'"),
        ("op -step 1 2", "Invalid option '2' value: ''"),
        ("op -max_depth", "Invalid option '-max_depth' value: ''"),
        ("set -select", "Invalid option '-select' value: ''"),
    ],
)
def test_a_bad_line_is_refused_with_the_tf_profilers_message(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert getattr(caught.value, "tf_message", caught.value.args[0]) == message
