"""The result of attaching on another host is read as it was written, and nothing else is."""

import json
from typing import Any

import pytest
from tfprof.collector.documents.attached import Attached, Unattached, attach_document, attached_of
from tfprof.collector.errors import FormatError

ATTACHED = Attached(7, 0xABC, "train.py", "pending-call", 300)
FAILED = Unattached(7, "no-tensorflow", "it has not loaded TensorFlow")


def written(*results: Attached | Unattached) -> dict[str, Any]:
    attached = [one for one in results if isinstance(one, Attached)]
    failed = [one for one in results if isinstance(one, Unattached)]
    return dict(json.loads(json.dumps(attach_document(attached, failed))))


@pytest.mark.parametrize("result", [ATTACHED, FAILED])
def test_a_result_is_read_as_it_was_written(result: Attached | Unattached) -> None:
    assert attached_of(written(result)) == result


@pytest.mark.parametrize(
    "document",
    [
        {},
        written(),
        written(ATTACHED, ATTACHED),
        written(ATTACHED, FAILED),
        {**written(ATTACHED), "schema": "tfprof.ps/1"},
        {**written(ATTACHED), "failed": None},
        {**written(ATTACHED), "attached": [1]},
        *(
            {**written(ATTACHED), "attached": [{**written(ATTACHED)["attached"][0], **change}]}
            for change in ({"pid": "7"}, {"uid": "x"}, {"uid": 7}, {"name": None}, {"stopped_ns": True})
        ),
        {**written(FAILED), "failed": [{"pid": 7}]},
    ],
)
def test_anything_else_is_no_result(document: dict[str, Any]) -> None:
    with pytest.raises(FormatError):
        attached_of(document)
