"""Jobs under `tfprof-run` that share one import of TensorFlow, each in a forked process."""

from pathlib import Path

from fakes.forks import ForkServer, ScriptResult
from fakes.polling import until
from tfprof.collector.store.reader import LocalJob, LocalStore

TIMEOUT_S = 60.0
TRIES = 3


class ProfiledScripts:
    """Runs scripts in forks of ``server``, each as a job in ``store``.

    ``uid`` is the id of the last job.
    """

    def __init__(self, store: Path, server: ForkServer) -> None:
        self.store = store
        self.uid = ""
        self._server = server

    def run(self, trace: str, script: str | Path, *arguments: object, tries: int = TRIES) -> ScriptResult:
        """Run a script with the policy ``trace``; wait until the job has ended in the store.

        On a busy machine, a step may reach the time limit of a recording. The script is then run
        again, up to ``tries`` times in all.
        """
        for _ in range(tries):
            result = self._server.run(script, *arguments, TFPROF_TRACE=trace)
            job = self._wait_for_job(result.pid)
            self.uid = job.info.hex
            if "window-too-long" not in job.table("events").column("slug").to_pylist():
                break
        return result

    @property
    def job(self) -> LocalJob:
        """The last job in the store."""
        return LocalStore(self.store).job(self.uid)

    def _wait_for_job(self, pid: int) -> LocalJob:
        def ended_job() -> LocalJob | None:
            jobs = LocalStore(self.store).jobs() if (self.store / "store.json").exists() else []
            ended_jobs = (job for job in jobs if job.info.identity.get("pid") == pid and job.info.state != "running")
            return next(ended_jobs, None)

        job = until(ended_job, f"the end of process {pid} in the store", TIMEOUT_S)
        assert job is not None
        return job
