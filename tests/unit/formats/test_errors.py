"""The texts of errors."""

from tfprof.formats.errors import TEXT_MAX, WORD_MAX, TfprofError


def test_an_error_is_one_line_whatever_it_quotes() -> None:
    assert str(TfprofError("a\n  b\tc", "io")) == "a b c [io]"
    assert str(TfprofError("\x1b[1m \udcff é", "io")) == "\\x1b[1m \\udcff é [io]"


def test_long_words_and_messages_are_shortened_in_the_middle() -> None:
    text = str(TfprofError(f"no job '{'x' * 5000}': see there", "io"))
    assert text.startswith("no job 'xxx")
    assert text.endswith("xxx': see there [io]")
    assert len(text) < WORD_MAX + 40
    words = str(TfprofError("word " * 5000, "io"))
    assert words.endswith("word word [io]")
    assert len(words) < TEXT_MAX + 10
