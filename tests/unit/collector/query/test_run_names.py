"""The names of what session runs fetch."""

from pathlib import Path

import pyarrow as pa
import pytest
from fakes.made_store import trace_tables, write_job
from fakes.run_metadata import run_metadata
from tfprof.collector.query.job_steps import run_names
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.summaries.steps import NO_RUN_NAMES, RunName, call_label
from tfprof.formats import layout
from tfprof.formats.run_keys import signature_key, with_feeds

LOSS = signature_key(["loss:0", "net/top_k:1"], [])
TRAINING = with_feeds(signature_key(["loss:0"], ["train"]), 1)


@pytest.mark.parametrize(
    ("nodes", "key", "run", "label"),
    [
        (
            ["_retval_net/top_k_1_1", "loss", "_retval_loss_0_0"],
            LOSS,
            RunName(("loss", "net/top_k:1")),
            "loss, net/top_k:1",
        ),
        (["_retval_loss_0_0", "step", "train"], TRAINING, RunName(("loss",), "train"), "loss, train (1 feed)"),
        (["_retval_loss_0_0", "step"], TRAINING, RunName(("loss",)), "loss (1 feed, 1 target)"),
        (["loss"], TRAINING, None, "1 feed, 1 fetch, 1 target"),
        (["_retval_other_0_0"], 0, None, ""),
    ],
)
def test_a_traced_run_has_the_names_of_its_fetches(
    tmp_path: Path, nodes: list[str], key: int, run: RunName | None, label: str
) -> None:
    tables = trace_tables(b"", [run_metadata([name.encode() for name in nodes])])
    traces = tables["traces"]
    tables["traces"] = traces.set_column(traces.column_names.index("key"), "key", pa.array([key], pa.uint32()))
    write_job(tmp_path, 1, tables)
    runs = run_names(LocalStore(tmp_path).job("last"))
    assert runs == ({key: run} if run else NO_RUN_NAMES)
    assert call_label(layout.RUN, key, runs=runs) == label
