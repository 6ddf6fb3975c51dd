"""The shim counts steps of each kind as the job does; training has at least half of the traces."""

import json

import pytest
from fakes.armed_job import JOBS
from fakes.channel_reader import ChannelReader
from tfprof.formats import layout

pytestmark = pytest.mark.tf
SCRIPT = JOBS / "kinds_of_steps.py"
TRAINING = (layout.TRAIN, layout.BATCH)
CASES = [
    ("tf1", "monitored"),
    ("tf2", "monitored"),
    ("tf1", "estimator"),
    ("tf1", "benchmark"),
    ("tf2", "benchmark"),
    ("tf1", "by_hand"),
    ("tf2", "by_hand"),
    ("tf1", "fit"),
    ("tf2", "fit", "session"),
    ("tf2", "fit"),
    ("tf313", "by_hand"),
    ("tf313", "fit"),
]


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_steps_are_counted_by_kind_and_training_has_at_least_half_of_the_traces_after_the_first_ones(case, armed_forks):
    job = armed_forks(case[0]).start(SCRIPT, *case[1:]).until_ready()
    reader = ChannelReader.of_process(job.pid).take(ended=True)
    reader.close()
    reported_counts = json.loads(job.output[-1])
    job.go_on()
    assert job.finish().status == 0
    assert reader.fault() == ""
    counts = {layout.SPAN_NAMES[kind]: reader.count(kind) for kind in layout.STEP_KINDS}
    assert {kind: counts[kind] for kind in reported_counts} == reported_counts
    # The job counts all its kinds. Only batches may add others: those of their session runs.
    if {"init", "batch"} & set(reported_counts):
        others = {kind for kind, count in counts.items() if count and kind not in reported_counts}
        assert others <= ({"train", "run", "init"} if "batch" in reported_counts else set())
    kinds = [record.flags for record in reader.records_of(layout.RUN_METADATA) + reader.records_of(layout.XSPACE)]
    others = [kind for kind in kinds if kind not in TRAINING]
    assert len(kinds) > len(others) <= max(len(kinds) - len(others), 2, len(set(others)))
