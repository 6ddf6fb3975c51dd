"""Functions that two threads call at the same time: a step has the ops of its own thread only."""

import pytest
from fakes.armed_job import JOBS, ArmedJob
from tfprof.collector.decoders.interner import Interner
from tfprof.collector.decoders.thread_lines import caller_of
from tfprof.collector.decoders.xspace import xspace
from tfprof.formats import layout

pytestmark = pytest.mark.tf
#: Without oneDNN, the op type of a product is MatMul, not _MklMatMul.
SETTINGS = {"TFPROF_TRACE": "all", "TFPROF_RING": "256M", "TF_ENABLE_ONEDNN_OPTS": "0"}


@pytest.fixture(scope="module")
def records(tf2_python, tmp_path_factory):
    folder = tmp_path_factory.mktemp("job")
    with ArmedJob(tf2_python, JOBS / "other_threads.py", folder, **SETTINGS) as job:
        job.until_ready()
        reader = job.reader()
        assert job.finish()[0] == 0
        reader.take(ended=True)
        result = [(record.start_real, bytes(record.data)) for record in reader.records_of(layout.XSPACE)]
        reader.close()
    assert len(result) > 40
    return result


def op_types(record, *, of_all_threads=False):
    """Return the types of a step's ops."""
    start_ns, data = record
    *_, thread = layout.XSPACE_HEAD.unpack_from(data)
    names = Interner()
    session = xspace(
        data[layout.XSPACE_HEAD.size :], start_ns, 0, names, caller=0 if of_all_threads else caller_of(thread)
    )
    texts = {row["id"]: row["text"] for row in names.new_names().to_pylist() if row["kind"] == 2}
    return {texts[number] for number in session.ops["label"].to_pylist()}


def test_a_step_has_no_ops_of_functions_that_another_thread_calls(records):
    all_ops = [op_types(record, of_all_threads=True) for record in records]
    assert any({b"MatMul", b"Softmax"} <= types for types in all_ops)  # the calls overlap
    own_ops = [op_types(record) for record in records]
    assert not [types for types in own_ops if {b"MatMul", b"Softmax"} <= types]
    assert all({b"MatMul", b"Sum"} <= types or {b"Softmax", b"Max"} <= types for types in own_ops)
