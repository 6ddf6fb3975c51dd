"""The graphs and frames that the shim sends equal TensorFlow's own conversion and op log."""

import pytest
from fakes.armed_job import JOBS, ArmedJob

pytestmark = pytest.mark.tf


@pytest.mark.parametrize(("interpreter", "has_start_lines"), [("tf1_python", True), ("tf2_python", False)])
def test_the_shim_sends_the_graphs_that_tensorflow_would_write(request, tmp_path, interpreter, has_start_lines):
    python = request.getfixturevalue(interpreter)
    with ArmedJob(python, JOBS / "graph_versions.py", tmp_path) as job:
        job.until_ready()
        assert job.output == [
            "sent 2 equal True",
            "again 2",
            "grown 4 equal True",
            "new nodes True False",
            "variables ['parts/part_0', 'parts/part_1', 'resource', 'weights'] ['later'] True True",
            f"stacks True {has_start_lines}",
            "large True",
            "numbers [1]",
            "kept alive False count 1",
            *([] if has_start_lines else ["functions [[], [3], [4, 3]]"]),
        ]
        assert job.finish()[0] == 0
