"""Options in the TF profiler's spelling."""

import pytest
from tfprof.cli.arguments import translate
from tfprof.collector.errors import UsageError


@pytest.mark.parametrize("spelling", ["-max_depth", "--max_depth", "-max-depth", "--max-depth"])
def test_an_option_may_begin_with_one_or_two_dashes_and_have_dashes_or_underscores(spelling: str) -> None:
    assert translate([spelling, "4", "job"]) == ["--max-depth=4", "job"]
    assert translate([f"{spelling}=4", "job"]) == ["--max-depth=4", "job"]


def test_values_may_begin_with_a_dash() -> None:
    assert translate(["-step", "-1"]) == ["--step=-1"]


def test_a_boolean_option_alone_means_true_and_leaves_the_next_word() -> None:
    assert translate(["-account_displayed_op_only", "job"]) == ["--account-displayed-op-only=true", "job"]
    assert translate(["-account_displayed_op_only", "no", "job"]) == ["--account-displayed-op-only=no", "job"]
    assert translate(["-account_displayed_op_only"]) == ["--account-displayed-op-only=true"]


def test_other_options_and_words_after_two_dashes_are_unchanged() -> None:
    assert translate(["--json", "-h", "--", "-select", "x"]) == ["--json", "-h", "--", "-select", "x"]


def test_an_option_without_its_value_is_left_to_the_parser() -> None:
    assert translate(["-select"]) == ["--select"]


def test_an_unknown_option_in_the_tf_profilers_spelling_is_named_whole() -> None:
    with pytest.raises(UsageError, match="no such option -colour"):
        translate(["-colour", "red"])
