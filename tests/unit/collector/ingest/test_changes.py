"""Changes of stored jobs: what is done, and what is refused."""

import pytest
from tfprof.collector.decoders.decode import decoder
from tfprof.collector.errors import FormatError
from tfprof.collector.ingest.changes import TAGS_MAX, change
from tfprof.collector.ingest.ingest import make_ingest
from tfprof.collector.selfstats import CollectorStats
from tfprof.collector.store.catalog import TAG_LENGTH_MAX
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.store.writer import LocalStoreWriter
from tfprof.formats import wire
from tfprof.formats.wire import Head

UID = 0xABC
CLOSE = b'{"state": "exited", "t_ns": 5}'


@pytest.fixture
def parts(tmp_path):
    store = LocalStoreWriter(tmp_path / "store", "testhost")
    parts = make_ingest(store, decoder(), CollectorStats().count_failure)
    parts.jobs.take(Head(wire.OPEN, UID, 0, 0, 1), memoryview(b'{"name": "train.py"}'))
    yield parts
    store.close()


def slug_of(parts, values, uid=UID):
    """Return the slug of the refusal, None if the change is made."""
    try:
        change(parts.store, parts.jobs, uid, values)
    except FormatError as error:
        return error.slug
    return None


def test_an_open_job_can_be_tagged_and_removed_once_it_has_ended(parts):
    assert slug_of(parts, {"before": [], "tags": ["good"]}) is None
    assert slug_of(parts, {"before": [], "tags": ["late"]}) == "tags-changed"
    assert LocalStore(parts.store.path).job("train.py").tags() == ("good",)
    assert slug_of(parts, {"remove": True}) == "job-running"
    parts.jobs.take(Head(wire.CLOSE, UID), memoryview(CLOSE))
    list(parts.slices.store(UID))
    assert slug_of(parts, {"remove": True}) is None
    assert LocalStore(parts.store.path).jobs() == []
    assert slug_of(parts, {"remove": True}) == "no-such-job"
    assert slug_of(parts, {"before": [], "tags": ["x"]}) == "no-such-job"


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"remove": "yes"},
        {"before": []},
        {"before": [], "tags": "good"},
        {"before": [], "tags": [1]},
        {"before": [], "tags": ["a\nb"]},
        {"before": [], "tags": ["x" * (TAG_LENGTH_MAX + 1)]},
        {"before": [], "tags": ["x"] * (TAGS_MAX + 1)},
    ],
)
def test_an_invalid_change_is_refused(parts, values):
    assert slug_of(parts, values) == "bad-format"
    assert LocalStore(parts.store.path).job("train.py").tags() == ()
