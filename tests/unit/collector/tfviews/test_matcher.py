"""Regexes with RE2's semantics: whole names, UTF-8, no backtracking."""

import subprocess
import sys

import pytest
from tfprof.collector.tfviews.matcher import Matcher, regex_error


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("Conv2D", "Conv2D", True),
        ("Conv2D", "Conv2DBackpropInput", False),
        ("Conv2D", "xConv2D", False),
        ("Mat.*", "MatMul", True),
        ("", "", True),
        ("", "a", False),
        ("a$", "a\n", False),  # Python's $ would match
        (".*", "a\nb", False),  # the pattern matches line breaks only if it is the only one
        ("(?i)matmul", "MatMul", True),
        (r"\d+", "١٢", False),  # ASCII digits only
        (r"\w+", "é", False),
        ("é.", "éa", True),
        ("[^/]*/b", "a/b", True),
        (r"\pL+", "éa", True),  # RE2's classes
    ],
)
def test_a_regex_matches_whole_names_as_re2_does(pattern: str, name: str, matches: bool) -> None:
    assert Matcher((pattern, "nothing"))(name) is matches


@pytest.mark.parametrize("pattern", ["((", "*", r"(a)\1", "(?=a)b", "(?<!a)b", "a{1001}", "\\", "\udcff"])
def test_an_invalid_regex_matches_nothing_and_has_an_error(pattern: str) -> None:
    assert regex_error(pattern)
    assert not Matcher((pattern,))("a")
    assert not Matcher((pattern,))(pattern)


def test_an_empty_list_matches_nothing_and_dot_star_alone_matches_everything() -> None:
    assert not Matcher(())("Conv2D")
    assert not Matcher(())("")
    assert Matcher((".*",))("any\nthing")
    assert Matcher((".*",)).accepts_all


def test_a_name_that_is_not_utf_8_is_matched_as_bytes() -> None:
    assert Matcher(("a", "(?s:a\\C)"))("a\udcff")
    assert not Matcher(("a", "a."))("a\udcff")


def test_a_regex_that_makes_other_engines_backtrack_takes_no_time() -> None:
    assert not Matcher(("(a*)*b", "(a|aa)+$"))("a" * 5000 + "c")


def test_re2_is_loaded_only_for_regexes_and_logs_no_errors() -> None:
    code = (
        "import sys; from tfprof.collector.tfviews.matcher import Matcher\n"
        "from tfprof.collector.tfviews.options import Options\n"
        "Matcher(('.*',))('a'), Matcher(())('a'); print('re2' in sys.modules)\n"
        "Matcher(('((',))('a'); print('re2' in sys.modules)"
    )
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (completed.stdout.split(), completed.stderr) == (["False", "True"], "")
