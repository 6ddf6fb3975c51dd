"""`tfprof analyze`: its tables are those that MegEngine's profile_analyze made of the same job.

The first line of each file in data/analyze has the options; the rest is what that script printed
for the `profiling.json` of the job.

Tests collector/exporters/megengine.py, collector/render/operators_text.py,
collector/summaries/operators.py.
"""

import json
import shlex
from pathlib import Path

import pytest
from fakes.command import Run, caller
from fakes.made_store import write_job
from tfprof.collector.errors import UsageError
from tfprof.collector.render.operators_text import lines
from tfprof.collector.summaries.operators import Filter, Operator, aggregated, in_order, records_of

DATA = Path(__file__).parents[2] / "contract" / "data"
GOLDEN = sorted((DATA / "analyze").glob("*.txt"), key=lambda path: int(path.stem))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command on a store with a job of TensorFlow 1.15."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TFPROF_STORE", str(tmp_path / "store"))
    call = caller(capsys)
    files = ("--graph_path", str(DATA / "tf1.graph"), "--run_meta_path", str(DATA / "tf1_software.run_metadata"))
    assert call("import", *files, "--name", "tf")[0] == 0
    return call


@pytest.mark.parametrize("path", GOLDEN, ids=[path.stem for path in GOLDEN])
def test_tables_are_those_of_megengine(path: Path, run: Run) -> None:
    options, _, expected = path.read_text().partition("\n")
    status, out, error = run("analyze", "tf", *shlex.split(options))
    assert (status, error) == (0, "")
    if "--dump-only-opr" not in options:
        total, _, out = out.partition("\n\n")
        assert total.startswith("total device time  0.")
    assert out == expected


def test_the_file_for_megengine_has_the_same_numbers(run: Run) -> None:
    assert run("export", "tf", "--format", "megengine", "-o", "profiling.json") == (0, "", "")
    dump = json.loads(Path("profiling.json").read_bytes())
    operators, profiler = dump["graph_exec"]["operator"], dump["profiler"]
    assert set(operators) == set(profiler["device"]) == set(profiler["opr_footprint"])
    (times,) = profiler["device"]["9"].values()
    assert times["start"] == times["kern"] == 0
    name = operators["9"]["name"]
    out = run("analyze", "tf", "--opr-name", f"{name}$", "-t", "1")[1]
    assert f"{times['end']:.3}" in out
    view = json.loads(run("scope", "tf", "-select", "micros", "-max_depth", "100", "--json")[1])
    assert f'"{name}"' in json.dumps(view)


def test_a_regex_matches_whole_types_and_a_type_is_exact(run: Run) -> None:
    names = run("analyze", "tf", "--type-regex", "Conv2D.*", "-t", "0", "--dump-only-opr")[1].splitlines()
    assert {line.split()[1] for line in names} == {"Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput"}
    assert run("analyze", "tf", "--type", "Conv2D.*")[:2] == (0, "")
    assert "is selected" in run("analyze", "tf", "--type-regex", "Conv")[2]


def operator(name: str, time: float, computation: float | None, memory: float | None) -> Operator:
    return Operator(name, name[0], len(name), "CPU:0", time, computation, memory, (), ())


def test_missing_numbers_come_last_and_do_not_stop_a_sort_or_a_maximum() -> None:
    """MegEngine's script raises TypeError for both."""
    every = [operator("a", 1, None, 5), operator("ab", 2, None, None), operator("abc", 3, 7, None)]
    names = [record.info[0] for record in in_order(records_of(every), "computation")]
    assert (names[0], set(names[1:])) == ("abc", {"a", "ab"})
    assert in_order(records_of(every), "+memory")[0].info[0] == "a"
    (record,) = aggregated(every, "max", by_type=True)
    assert (record.time, record.computation, record.memory, record.info) == (3, 7, 5, ("a", "3", "N/A"))
    (record,) = aggregated(every, "mean", by_type=False)
    assert (record.time, record.computation, record.memory) == (2, 7 / 3, 5 / 3)
    assert any("N/A" in line for line in lines(records_of(every), 6.0))


def test_a_name_that_no_column_or_regex_can_be_is_refused(run: Run) -> None:
    assert run("analyze", "tf", "--order-by", "size")[0] == 2
    assert run("analyze", "tf", "--type-regex", "((")[0] == 2
    assert run("analyze", "tf", "--min-time", "nan")[0] == 2
    assert "--aggregate-by needs --aggregate" in run("analyze", "tf", "--aggregate-by", "type")[2]
    with pytest.raises(UsageError):
        Filter(name_regex="[").selected([])


def test_a_job_without_traces_has_no_operators(run: Run, tmp_path: Path) -> None:
    write_job(tmp_path / "store", 6 << 60, {}, identity={"name": "none.py"})
    for words in (("analyze", "none.py"), ("export", "none.py", "--format", "megengine", "-o", "a")):
        status, out, error = run(*words)
        assert (status, out, error.split()[-1]) == (1, "", "[no-data]")
