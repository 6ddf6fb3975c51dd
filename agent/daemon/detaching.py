"""Detaches from a job that takes no step, by an injection into its process."""

from typing import Final

from ..attach.helper_process import HelperProcess, disarming_request
from .job import Job

#: Time that a job has for a step at which it detaches by itself (seconds).
STEP_S: Final = 1.0


class Detaching:
    """An injection into the process of ``job``, which begins STEP_S after ``now``.

    `error` is the reason why it failed, empty if it has not.
    """

    def __init__(self, job: Job, now: float) -> None:
        self._job = job
        self._due_s = now + STEP_S
        self._helper: HelperProcess | None = None
        self.error = ""

    def check(self, now: float) -> None:
        """Start the helper when it is due, and read its answer."""
        try:
            if self._helper is None:
                self._start_if_due(now)
            elif not self.error:
                answer = self._helper.answer(0.0)
                if answer is not None:
                    self.error = str(answer.get("text") or "the process is not profiled by this launch")
        except OSError as error:
            self.error = str(error)

    def _start_if_due(self, now: float) -> None:
        owner = self._job.owner
        if now >= self._due_s and owner is not None and not owner.is_stopped:
            launch = self._job.channel.identity.launch
            self._helper = HelperProcess(disarming_request(owner.pid, owner.started, launch))

    def withdraw(self) -> None:
        """Withdraw the request of the helper, if it still runs."""
        if self._helper is not None:
            self._helper.withdraw()
