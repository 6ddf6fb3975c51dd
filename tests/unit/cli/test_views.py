"""The four views as commands: merged jobs, filters, outputs, and errors.

Tests collector/documents/view.py, collector/forms.py, collector/query/graph_facts.py,
collector/query/recorded_shapes.py, collector/render/legends.py,
collector/store/recorded_outputs.py, collector/store/trace_ranges.py, collector/write_output.py,
cli/selection_options.py.
"""

import json
from pathlib import Path

import pytest
from fakes import small_store
from fakes.command import Run
from tfprof.collector.numbers import duration
from tfprof.collector.tfviews.options import TABLE

VIEWS = ("scope", "graph", "op", "code")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_store.write(tmp_path_factory.mktemp("views") / "store")


def rows(text: str) -> list[str]:
    """Return the lines after the legend."""
    return text.split("Profile:\n")[1].splitlines()[1:]


def test_scope_is_a_tree_of_names(run: Run) -> None:
    code, out, err = run("scope", "aa10", "-select", "micros,params", "--exact-tf")
    assert (code, err) == (0, "")
    assert [row.split(",")[0] for row in rows(out)] == [
        "_TFProfRoot (--/6 params",
        "  loss (0/0 params",
        "  net (0/6 params",
        "    net/MatMul (0/0 params",
        "    net/images (0/0 params",
        "    net/weights (2x3",
    ]


def test_graph_is_a_tree_of_inputs(run: Run) -> None:
    out = run("graph", "aa10", "-start_name_regexes", "net/MatM.*", "--exact-tf")[1]
    assert [row.split(" (")[0] for row in rows(out)] == [
        "_TFProfRoot",
        "  net/MatMul",
        "    net/images",
        "    net/weights",
    ]


def test_all_spellings_of_an_option_mean_the_same(run: Run) -> None:
    result = run("op", "aa10", "-max_depth", "1", "-order_by", "micros")
    assert result == run("op", "--max-depth=1", "--order-by", "micros", "aa10")
    assert result == run("op", "--max_depth", "1", "-order-by=micros", "aa10")


def test_several_jobs_are_merged_by_names_of_nodes(run: Run) -> None:
    first, second, merged = (
        json.loads(run("scope", *jobs, "--json")[1]) for jobs in (["aa10"], ["bb10"], ["aa10", "bb10"])
    )
    assert (first["traces"], second["traces"], merged["traces"]) == (2, 1, 3)
    assert merged["jobs"] == ["aa10000000000001", "bb10000000000002"]
    assert (merged["job"], first["job"]) == (None, "aa10000000000001")
    assert {row["name"] for row in merged["rows"] if row["depth"] == 0} == {"loss", "net"}


def test_host_and_pid_select_jobs(run: Run) -> None:
    def jobs(*words: str) -> list[str]:
        return [uid[:4] for uid in json.loads(run("op", *words, "--json")[1])["jobs"]]

    assert jobs("--host", "node7") == jobs("--pid", "1") == jobs("train.py", "--host", "node7") == ["aa10"]
    assert jobs("--host", "node8") == ["bb10", "cc10"]
    assert jobs("--host=*", "-pid", "1", "--pid", "3") == ["aa10", "cc10"]


def test_the_options_steps_and_device_restrict_a_view(run: Run) -> None:
    all_steps, one_step = (json.loads(run("op", "aa10", *words, "--json")[1]) for words in ([], ["--steps", "0-0"]))
    assert (all_steps["traces"], one_step["traces"], one_step["steps"]) == (2, 1, [0, 0])
    on_gpu = json.loads(run("op", "aa10", "bb10", "--device", "gpu:0", "--json")[1])
    assert on_gpu["device"] == "gpu:0"
    assert [row["name"] for row in on_gpu["rows"]] == ["MatMul"]


def test_json_has_the_options_and_explains_hidden_entries(run: Run) -> None:
    document = json.loads(run("op", "aa10", "--json", "-max_depth", "0", "-select", "bytes")[1])
    assert (document["options"]["max_depth"], document["options"]["select"]) == (0, ["bytes"])
    assert document["notes"] == ["1 of 4 op types shown: 3 beyond -max_depth or -trim_name_regexes"]
    assert len(document["rows"]) == 1
    whole = json.loads(run("op", "aa10", "--json")[1])
    assert (whole["notes"], whole["options"]["max_depth"], len(whole["rows"])) == ([], None, 4)


def test_rows_of_json_are_sorted_by_time_and_have_the_numbers_of_the_text(run: Run) -> None:
    document = json.loads(run("op", "aa10", "--json")[1])
    times = [row["time_ns"] for row in document["rows"]]
    assert times == sorted(times, reverse=True)
    assert sum(times) == document["total"]["time_ns"]
    assert sum(row["share"] for row in document["rows"]) == pytest.approx(1)
    text_rows = [line.split() for line in run("op", "aa10")[1].splitlines() if line[:1].isupper()]
    shown = {words[0]: words[1] for words in text_rows}
    assert {row["name"]: duration(row["time_ns"]).split()[0] for row in document["rows"] if row["time_ns"]} == shown


def test_rows_of_json_name_their_parents(run: Run) -> None:
    rows = json.loads(run("scope", "aa10", "--json")[1])["rows"]
    for row in rows:
        parent = None if row["parent"] is None else rows[row["parent"]]
        assert (parent["depth"] if parent else -1) == row["depth"] - 1
        assert row["name"] == (f"{parent['name']}/{row['label']}" if parent else row["label"])
        below = [other["time_ns"] for other in rows if other["parent"] is not None and rows[other["parent"]] is row]
        assert row["time_ns"] == row["own"]["time_ns"] + sum(below)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["op", "cc10"], "no traced steps: TensorFlow ran no step"),
        (["scope", "cc10"], "no traced steps: TensorFlow ran no step"),
        (["graph", "--host", "node8", "--pid", "3"], "no traced steps: TensorFlow ran no step"),
        (["code", "aa10"], "No code trace information"),
        (["scope", "aa10", "-account_type_regexes", "Nothing"], "none of 4 nodes has an op type, device or label that"),
        (["op", "aa10", "-account_type_regexes", "Nothing"], "none of 4 op types has a node that"),
        (["scope", "aa10", "-max_depth", "2"], "2 of 5 scopes and nodes shown: 3 beyond -max_depth or"),
        (["scope", "aa10", "-min_micros", "99"], "0 of 5 scopes and nodes shown: 5 hidden by -min_"),
        (["graph", "aa10", "-start_name_regexes", "net/im.*"], "1 of 4 nodes shown: 3 outside -start_name_regexes"),
    ],
)
def test_hidden_entries_are_explained(run: Run, words: list[str], message: str) -> None:
    code, _, err = run(*words)
    assert code == 0
    assert err.startswith(f"tfprof: {message}")
    assert err.count("\n") == 1
    assert json.loads(run(*words, "--json")[1])["notes"][0].startswith(message)


def test_several_untraced_jobs_are_explained_together(run: Run, tmp_path: Path) -> None:
    from fakes.made_store import write_job

    for uid in (1 << 60, 2 << 60):
        write_job(tmp_path / "s", uid, {})
    err = run("op", "1000", "2000", "--store", str(tmp_path / "s"))[2]
    assert err == "tfprof: no traced steps in any of 2 jobs: tfprof jobs shows how many steps of each were traced\n"


def test_missing_kernel_times_of_a_gpu_are_reported(run: Run) -> None:
    message = "tfprof: the kernels of a GPU were not recorded"
    assert run("op", "bb10")[2].startswith(message)
    assert run("scope", "aa10", "bb10")[2].startswith(message)
    assert message not in run("op", "aa10")[2]


def test_with_exact_parity_missing_kernel_times_are_reported_in_the_tf_profilers_words(run: Run) -> None:
    exact = "--exact-tf"
    assert run("op", "bb10", exact)[1].startswith(
        "\n\nFound accelerator operation but misses accelerator stream stats!"
    )
    assert "discuss@tensorflow.org" in run("scope", "aa10", "bb10", exact)[1]
    assert "xprof-dev@" in run("graph", "bb10", "--compat", "1.15", exact)[1]
    assert run("op", "aa10", exact)[1].startswith("\nDoc:")


def test_a_file_gets_the_tf_profilers_layout_and_nothing_is_printed(run: Run, tmp_path: Path) -> None:
    code, out, err = run("scope", "aa10", "--exact-tf", "-output", f"file:outfile={tmp_path}/a=b")
    assert (code, out, err) == (0, "", "")
    assert (tmp_path / "a=b").read_text() == run("scope", "aa10", "--exact-tf")[1]
    run("scope", "aa10", "-output", f"file:outfile={tmp_path}/own")
    assert "_TFProfRoot (--/25us, --/0us, --/25us)" in (tmp_path / "own").read_text()


def test_the_output_none_prints_nothing(run: Run) -> None:
    assert run("op", "aa10", "-output", "none") == (0, "", "")


def test_a_graph_timeline_has_a_file_for_each_selected_step(run: Run, tmp_path: Path) -> None:
    code, out, err = run("graph", "aa10", "-output", f"timeline:outfile={tmp_path}/t")
    assert (code, err) == (0, "")
    assert out.count("generating trace file.") == 2
    assert f"Timeline file is written to {tmp_path}/t_0." in out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t_0", "t_1"]
    run("graph", "aa10", "-step", "1", "-output", f"timeline:outfile={tmp_path}/u")
    run("graph", "aa10", "--steps", "1-5", "-output", f"timeline:outfile={tmp_path}/v")
    run("scope", "aa10", "-output", f"timeline:outfile={tmp_path}/w")
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert sorted(files) == ["t_0", "t_1", "u_1", "v_1", "w_-1"]
    assert files["t_1"] == files["u_1"] == files["v_1"] != files["t_0"]
    names = {event["name"] for event in json.loads(files["t_0"])["traceEvents"]}
    assert names >= {"net/weights", "net/MatMul", "loss"}


def test_with_exact_parity_a_bad_regex_matches_nothing_with_a_warning(run: Run) -> None:
    code, _, err = run("op", "aa10", "--exact-tf", "-show_name_regexes", "((")
    assert code == 0
    assert err.splitlines()[0] == "tfprof: -show_name_regexes '((' matches nothing: missing ): (("


def test_the_code_view_prints_which_option_it_ignores(run: Run) -> None:
    err = run("code", "aa10", "-account_displayed_op_only")[2]
    assert err.endswith("tfprof: Note: code view ignores account_displayed_op_only\n")


def test_an_open_range_of_steps_has_no_end(run: Run) -> None:
    assert "of the steps 1-" in run("op", "aa10", "--steps", "1-")[1]
    assert json.loads(run("op", "aa10", "--steps", "1-", "--json")[1])["steps"] == [1, None]
    assert "no step of 5- was traced: traced are 0, 1" in run("op", "aa10", "--steps", "5-")[2]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ([], 2, "no JOB given"),
        (["nosuch"], 1, "no job 'nosuch'"),
        (["train.py~5"], 1, "no job 'train.py~5', only "),
        (["aa10", "nosuch"], 1, "no job 'nosuch'"),
        (["--host", "moon"], 1, "no job of host moon: there are jobs of node7 node8"),
        (["--pid", "99"], 1, "no job of pid 99"),
        (["--pid", "x"], 2, "Invalid value for '--pid'"),
        (["aa10", "-max_depth", "four"], 2, "Invalid option '-max_depth' value: 'four' (a whole number"),
        (["aa10", "-max_depth"], 2, "Option '--max-depth' requires an argument"),
        (["aa10", "-min_bytes", "99999999999999999999"], 2, "Invalid option '-min_bytes' value"),
        (["aa10", "-step", "7"], 2, "step 7 was not traced: traced are 0, 1 [no-such-step]"),
        (["aa10", "--steps", "5-9"], 2, "no step of 5-9 was traced: traced are 0, 1 [no-such-step]"),
        (["aa10", "--steps", "9-5"], 2, "Invalid option '--steps' value: '9-5'"),
        (["aa10", "--steps", "a-b"], 2, "Invalid option '--steps' value: 'a-b'"),
        (["aa10", "--steps", "0-1", "-step", "2"], 2, "[no-such-step]"),
        (["aa10", "--device", "tpu"], 2, "[no-such-device]"),
        (["aa10", "--compat", "3.0"], 2, "Invalid value for '--compat'"),
        (["aa10", "-order_by", "colour"], 2, "Invalid option '-order_by' value: 'colour'"),
        (["aa10", "-select", "micros,colour"], 2, "Invalid option '-select' value: 'micros,colour'"),
        (["aa10", "-select", ""], 2, "Invalid option '-select' value: ''"),
        (["aa10", "-hide_name_regexes", "(?=a)"], 2, "Invalid option '-hide_name_regexes' value: '(?=a)'"),
        (["aa10", "-account_displayed_op_only=maybe"], 2, "Invalid option '-account_displayed_op_only' value: 'maybe'"),
        (
            ["aa10", "-output", "foo"],
            2,
            "-output foo is unknown: it can be stdout, none, file:outfile=F, timeline:outfile=F or",
        ),
        (
            ["aa10", "-output", "file"],
            2,
            "-output file needs a file: -output file:outfile=FILE [usage]",
        ),
        (["aa10", "-output", "file:out=x"], 2, "-output file has no option out: it takes only outfile=FILE [usage]"),
        (["aa10", "-output", "file:outfile=x", "--json"], 2, "--json prints to standard output"),
        (["aa10", "-foo", "1"], 2, "no such option -foo"),
        (["aa10", "--foo", "1"], 2, "no such option --foo"),
    ],
)
def test_bad_input_is_reported_in_one_line_with_a_slug(
    run: Run, view: str, words: list[str], status: int, message: str
) -> None:
    code, out, err = run(view, *words)
    assert (code, out) == (status, "")
    assert err.startswith("tfprof: ")
    assert message in err
    assert err.count("\n") == 1
    assert err.rstrip().endswith("]")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["op", "-output", "timeline:outfile=x"],
            "-output timeline is for code, graph, scope, not for op",
        ),
        (["op", "-output", "pprof:outfile=x"], "-output pprof is for code, not for op"),
        (["scope", "-output", "pprof:outfile=x"], "-output pprof is for code, not for scope"),
        (["graph", "bb10", "-output", "timeline:outfile=x"], "a timeline of the graph view shows one job"),
        (["graph", "--device", "cpu", "-output", "timeline:outfile=x"], "a timeline of the graph view shows one job"),
    ],
)
def test_an_unsupported_output_is_refused(run: Run, words: list[str], message: str) -> None:
    code, out, err = run(words[0], "aa10", *words[1:])
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize("options", [[], ["--exact-tf"]])
def test_a_missing_step_is_reported_before_an_unsupported_output(run: Run, options: list[str]) -> None:
    code, _, err = run("op", "aa10", "-step", "99", "-output", "timeline:outfile=x", *options)
    assert code == 2
    assert ("Options -step=99 not found" if options else "step 99 was not traced") in err
    assert "timeline" not in err


@pytest.mark.parametrize("output", ["file", "timeline"])
def test_a_file_that_cannot_be_written_is_reported_in_one_line(run: Run, output: str) -> None:
    code, _, err = run("scope", "aa10", "-output", f"{output}:outfile=/nonexistent/x")
    assert code == 1
    assert err.startswith("tfprof: cannot write /nonexistent/x")
    assert err.endswith("[io]\n")


@pytest.mark.parametrize("view", VIEWS)
def test_help_shows_the_tf_profilers_options_and_those_of_tfprof(run: Run, view: str) -> None:
    out = run(view, "--help")[1]
    assert all(f"  -{option.name} {option.metavar}" in out for option in TABLE)
    assert all(f"  --{name} " in out for name in ("host", "pid", "steps", "device", "json", "compat", "exact-tf"))
    assert out.startswith(f"Usage: tfprof {view} [OPTIONS] JOB...")
