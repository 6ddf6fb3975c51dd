"""The answer of injected work tells whether the process may have changed."""

import pytest
from tfprof.agent.attach.errors import AttachError
from tfprof.agent.attach.inject import _answer_text
from tfprof.agent.attach.work_area import WorkProgress, WorkState


def test_the_text_of_finished_work_is_its_answer() -> None:
    assert _answer_text(WorkProgress(WorkState.DONE, "{}"), lambda: AttachError("")) == "{}"


@pytest.mark.parametrize(
    ("state", "slug", "text"),
    [
        (WorkState.QUEUED, "attach-unanswered", "did not begin"),
        (WorkState.BEGUN, "attach-unfinished", "did not end within 60 s in the process; it may still end"),
        (WorkState.FAILED, "attach-failed", "the code failed in the process: KeyError"),
    ],
)
def test_other_work_is_an_error_that_says_what_happened(state: WorkState, slug: str, text: str) -> None:
    with pytest.raises(AttachError, match=text) as caught:
        _answer_text(WorkProgress(state, "KeyError"), lambda: AttachError("did not begin", "attach-unanswered"))
    assert caught.value.slug == slug
