"""The answer of injected work tells whether the process may have changed."""

import pytest
from tfprof.agent.attach.errors import AttachError
from tfprof.agent.attach.inject import NoAnswerError, _answer_text
from tfprof.agent.attach.work_area import WorkProgress, WorkState


def test_the_text_of_finished_work_is_its_answer() -> None:
    assert _answer_text(WorkProgress(WorkState.DONE, "{}"), lambda: NoAnswerError("")) == "{}"


@pytest.mark.parametrize(
    ("state", "error", "text"),
    [
        (WorkState.QUEUED, NoAnswerError, "did not begin"),
        (WorkState.BEGUN, AttachError, "did not end within 60 s in the process; it may still end"),
        (WorkState.FAILED, AttachError, "the code failed in the process: KeyError"),
    ],
)
def test_other_work_is_an_error_that_says_what_happened(state: WorkState, error: type[AttachError], text: str) -> None:
    with pytest.raises(error, match=text):
        _answer_text(WorkProgress(state, "KeyError"), lambda: NoAnswerError("did not begin"))
