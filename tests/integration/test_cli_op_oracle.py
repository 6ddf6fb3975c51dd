"""The op view against the TF profiler: from equal RunMetadata both show equal numbers and rows."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from fakes.forks import ForkServer
from fakes.made_store import trace_tables, write_job
from fakes.profiles import profile
from tfprof.collector.query.profile import Profile
from tfprof.collector.render.op_text import lines
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.tfviews.nodes import Stats
from tfprof.collector.tfviews.op import OpView, op_view
from tfprof.collector.tfviews.options import Options, from_texts
from tfprof.collector.tfviews.parity import Parity

pytestmark = pytest.mark.tf

ORACLE = Path(__file__).parent / "oracle" / "scripts" / "op_view.py"
COUNTERS = {
    "exec_micros": "micros",
    "accelerator_exec_micros": "accelerator_micros",
    "cpu_exec_micros": "cpu_micros",
    "requested_bytes": "bytes",
    "peak_bytes": "peak_bytes",
    "residual_bytes": "residual_bytes",
    "output_bytes": "output_bytes",
    "parameters": "params",
}
EXACT = Parity(exact=True)
#: Versions that sort equal entries in a stable order. TensorFlow 1.15 does not. For each input it
#: shows the shape of the output slot that the input names. The other versions show the shape of the
#: first output.
STABLE_VERSIONS = {"tf2"}


@pytest.fixture(
    scope="module",
    params=[f"{version}-{kind}" for version in ("tf1", "tf2") for kind in ("software", "full", "random")],
)
def oracle_answers(
    request: pytest.FixtureRequest, plain_forks: Callable[[str], ForkServer], tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """Return (version, folder) of the TF profiler's answers about some traced steps.

    The folder also has a store with the same steps.
    """
    version, level = request.param.split("-")
    folder = tmp_path_factory.mktemp(request.param)
    plain_forks(version).output(ORACLE, folder, level)
    runs = [path.read_bytes() for path in sorted(folder.glob("run-*.pb"))]
    write_job(folder / "store", 1, trace_tables((folder / "graph.pb").read_bytes(), runs))
    return version, folder


def tfprof_answer(folder: Path, query: Mapping[str, Any]) -> tuple[Options, Profile, OpView]:
    """Return the options, the profile and the view of tfprof's answer to a query of the oracle."""
    texts = {name: ",".join(value) if isinstance(value, list) else str(value) for name, value in query.items()}
    options = from_texts({"max_depth": "10000", **texts})
    steps_profile = profile(LocalStore(folder / "store").job("last"), options.step, parity=EXACT)
    assert steps_profile is not None
    return options, steps_profile, op_view(steps_profile.nodes, options)


def differences(where: str, theirs: Mapping[str, Any], stats: Stats, prefix: str = "") -> list[str]:
    """Return the counters that differ between a message of TensorFlow and our stats."""
    return [
        f"{where}: {prefix}{name} {theirs[prefix + name]} != {getattr(stats, counter)}"
        for name, counter in COUNTERS.items()
        if prefix + name in theirs and theirs[prefix + name] != getattr(stats, counter)
    ]


def entry_differences(answer: Mapping[str, Any], view: OpView, *, is_ordered: bool) -> list[str]:
    """Return the differences of entries and nodes; of running totals only if ``is_ordered``."""
    mine = {entry.name: entry for entry in view.entries}
    texts = []
    for theirs in answer["entries"]:
        entry = mine[theirs["name"]]
        texts += differences(entry.name, theirs, entry.own)
        texts += differences(entry.name, theirs, entry.running_total, "total_") if is_ordered else []
        nodes = {node.name: node for node in entry.nodes}
        assert {node["name"] for node in theirs["graph_nodes"]} == set(nodes)
        for node in theirs["graph_nodes"]:
            stats = nodes[node["name"]].stats
            texts += differences(node["name"], node, stats)
            texts += [f"{node['name']}: runs"] if node["run_count"] != stats.runs else []
    return texts


def test_every_number_equals_that_of_the_tf_profiler(oracle_answers: tuple[str, Path]) -> None:
    version, folder = oracle_answers
    answers = json.loads((folder / "queries.json").read_text())
    assert len(answers) > 20
    assert answers[0]["root"]["total_exec_micros"] > 0
    for answer in answers:
        _, _, view = tfprof_answer(folder, answer["options"])
        theirs, mine = [entry["name"] for entry in answer["entries"]], [entry.name for entry in view.entries]
        is_by_name = answer["options"].get("order_by", "name") == "name"
        if version in STABLE_VERSIONS or is_by_name:
            assert mine == theirs, answer["options"]
        elif not any(option.startswith("min_") or option == "max_depth" for option in answer["options"]):
            assert sorted(mine) == sorted(theirs), answer["options"]
        else:
            continue  # the order of two equal entries decides which of them is shown
        texts = differences("root", answer["root"], view.total, "total_")
        texts += entry_differences(answer, view, is_ordered=mine == theirs)
        assert not texts, answer["options"]


def rows(text: str) -> list[str]:
    """Return the rows of a text below its legend."""
    return text.split("Profile:\n", 1)[1].rstrip("\n").split("\n")


def test_every_printed_row_equals_that_of_the_tf_profiler(oracle_answers: tuple[str, Path]) -> None:
    version, folder = oracle_answers
    compared = 0
    for answer in json.loads((folder / "queries.json").read_text()):
        options, _, view = tfprof_answer(folder, answer["options"])
        is_ordered = version in STABLE_VERSIONS or (options.order_by == "name" and "input_shapes" not in options.select)
        if not answer["entries"] or not is_ordered:
            continue
        text = "\n".join(lines(view, options.select))
        assert rows(text) == rows(answer["text"]), answer["options"]
        compared += 1
    assert compared >= 5
