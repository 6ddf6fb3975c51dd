"""`-output`: valid values, and the TF profiler's messages about invalid ones."""

import pytest
from tfprof.collector.errors import ViewOptionError
from tfprof.collector.tfviews.option_values import OutputChoice, parse_output


@pytest.mark.parametrize(
    ("text", "output", "shown"),
    [
        ("", OutputChoice("stdout"), "stdout:"),
        ("stdout", OutputChoice("stdout"), "stdout:"),
        ("stdout:", OutputChoice("stdout"), "stdout:"),
        ("none", OutputChoice("none"), "none:"),
        ("file:outfile=a=b:c", OutputChoice("file", "a=b:c"), "file:outfile=a=b:c"),
        ("file:,outfile=a,outfile=b,", OutputChoice("file", "b"), "file:outfile=b"),
        ("timeline:outfile=t.json", OutputChoice("timeline", "t.json"), "timeline:outfile=t.json"),
        ("pprof:outfile=p.gz", OutputChoice("pprof", "p.gz"), "pprof:outfile=p.gz"),
    ],
)
def test_an_output_is_a_type_with_a_file_if_needed(text: str, output: OutputChoice, shown: str) -> None:
    assert parse_output(text) == output
    assert str(output) == shown


FORMAT = "Visualize format: -output timeline:key=value,key=value,..."
UNKNOWN = "E.g. Unknown output type: {}, Valid types: file,none,pprof,stdout,timeline\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("foo", UNKNOWN.format("foo")),
        (" file:outfile=x", UNKNOWN.format(" file")),
        ("foo:bar", UNKNOWN.format("foo")),
        ("file", "Missing required output_options for file\nE.g. -output file:outfile=...\n"),
        ("timeline:", "Missing required output_options for timeline\nE.g. -output timeline:outfile=...\n"),
        ("pprof", "Missing required output_options for pprof\nE.g. -output pprof:outfile=...\n"),
        ("file:outfile", FORMAT),
        ("file:outfile=", FORMAT),
        ("file:=x", FORMAT),
        ("stdout:foo", FORMAT),
        ("file:outfile=x,foo", FORMAT),
        ("file:out=x,outfile=y", "Unrecognized options out for output_type: file\n"),
        ("file:zz=1,aa=2", "Unrecognized options zz for output_type: file\n"),
        ("none:a=b,c", "Unrecognized options a for output_type: none\n"),
        ("stdout:outfile=x", "Unrecognized options outfile for output_type: stdout\n"),
    ],
)
def test_a_bad_output_is_refused_with_the_tf_profilers_message(text: str, message: str) -> None:
    with pytest.raises(ViewOptionError) as refused:
        parse_output(text)
    assert refused.value.tf_message == message
