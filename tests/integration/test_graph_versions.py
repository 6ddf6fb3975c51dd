"""Graphs as they are sent, against TensorFlow's own conversion."""

import pytest
from fakes.armed_job import JOBS, ArmedJob

pytestmark = pytest.mark.tf


@pytest.mark.parametrize("interpreter", ["tf1_python", "tf2_python"])
def test_what_is_sent_equals_what_tensorflow_would_write(request, tmp_path, interpreter):
    python = request.getfixturevalue(interpreter)
    with ArmedJob(python, JOBS / "graph_versions.py", tmp_path) as job:
        job.until_ready()
        assert job.output == [
            "spent True equal True",
            "again 0 2",
            "grown True equal True",
            "new nodes total",
            "large True",
            "numbers [1]",
            "kept alive False count 1",
        ]
        assert job.finish()[0] == 0
