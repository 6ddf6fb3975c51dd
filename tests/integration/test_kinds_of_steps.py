"""Steps by kind, of TensorFlow 1.15 and 2.21: as many as the job counted itself, and training has half of the traces."""

import json

import pytest
from fakes.armed_job import JOBS, ArmedJob
from tfprof.formats import layout

pytestmark = pytest.mark.tf
SCRIPT = JOBS / "kinds_of_steps.py"
TRAINING = (layout.TRAIN, layout.BATCH)
CASES = [
    ("tf1_python", "monitored"),
    ("tf2_python", "monitored"),
    ("tf1_python", "estimator"),
    ("tf1_python", "benchmark"),
    ("tf2_python", "benchmark"),
    ("tf1_python", "by_hand"),
    ("tf2_python", "by_hand"),
    ("tf1_python", "fit"),
    ("tf2_python", "fit", "session"),
    ("tf2_python", "fit"),
]


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_steps_are_counted_by_kind_and_training_has_at_least_half_of_the_traces(request, case, tmp_path):
    python = request.getfixturevalue(case[0])
    with ArmedJob(python, SCRIPT, tmp_path, *case[1:]) as job:
        read = job.until_ready().reader().take(ended=True)
        read.close()
        told = json.loads(job.output[-1])
        assert job.finish()[0] == 0
    assert read.fault() == ""
    counts = {layout.SPAN_NAMES[kind]: read.count(kind) for kind in layout.STEP_KINDS}
    assert {kind: counts[kind] for kind in told} == told
    if {"init", "batch"} & set(told):  # and none besides, but the runs of batches
        besides = {kind for kind, count in counts.items() if count and kind not in told}
        assert besides <= ({"train", "run", "init"} if "batch" in told else set())
    kinds = [record.flags for record in read.records_of(layout.RUN_METADATA) + read.records_of(layout.XSPACE)]
    assert 2 * sum(kind in TRAINING for kind in kinds) >= len(kinds) >= 3
