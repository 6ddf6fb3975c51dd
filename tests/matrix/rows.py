"""The rows of the matrix: one small job each, with its versions and limitations."""

from pathlib import Path
from typing import Final, NamedTuple

from .versions import Version

JOBS: Final = Path(__file__).parent / "jobs"
#: First version whose own Keras is Keras 3. Keras 2 is the package tf_keras there.
KERAS_3: Final = (2, 16)


class Limit(NamedTuple):
    """A limitation: the kinds that are not counted, whether steps lack ops, and the reason."""

    kinds: frozenset[str]
    lacks_ops: bool
    text: str


LIMITS: Final = {
    "remote": Limit(
        frozenset(),
        True,
        "steps at a remote server have times and no ops; a session there has step statistics with `--trace-level full`"
        " only, which `auto` does not use.",
    ),
    "xla": Limit(
        frozenset(),
        True,
        "a program of XLA is one op, `XlaLaunch`: this version records none of its instructions on a CPU.",
    ),
    "no-xspace": Limit(frozenset(), True, "TensorFlow 1.15 has no profiler session that writes an XSpace."),
}


class Row(NamedTuple):
    """A job: its script, an argument, and the versions that can run it.

    ``since``: the first version that can run the job.
    ``until``: the first later version that cannot.
    ``op``: a type of op in the job's steps.
    ``device``: a device on which the job runs ops, besides the first CPU.
    ``keras``: package that the script gets as an argument where TensorFlow's own Keras is Keras 3.
    ``limits``: {version, or "" for any: name of the limitation}.
    ``is_forkable``: whether the first process of the job imports TensorFlow. The bare job then runs
    in a process that is forked after the import.
    """

    name: str
    title: str
    script: str
    since: tuple[int, ...] = (1, 15)
    until: tuple[int, ...] = (3,)
    op: str = "MatMul"
    argument: str = ""
    keras: str = ""
    device: str = ""
    limits: dict[str, str] = {}  # noqa: RUF012 - never changed
    is_forkable: bool = True

    def runs_on(self, version: Version) -> bool:
        """Return whether ``version`` of TensorFlow can run the job."""
        return self.since <= version.number < self.until

    def command(self, version: Version) -> list[str]:
        """Return the command line of the job."""
        return [str(version.python), "-W", "ignore", str(JOBS / self.script), *self.arguments(version)]

    def arguments(self, version: Version) -> list[str]:
        """Return the arguments of the script."""
        keras = self.keras if version.number >= KERAS_3 else ""
        return [*filter(None, (self.argument, keras))]

    def limit_name(self, version: Version) -> str:
        """Return the name of the limitation in ``version``, '' for none."""
        return self.limits.get(version.name) or self.limits.get("", "")


_NO_XSPACE = {"1.15": "no-xspace"}
_NO_INSTRUCTIONS = dict.fromkeys(("2.4", "2.10", "2.15"), "xla")

ROWS: Final = (
    Row("session_run", "`Session.run`", "session_run.py"),
    Row("monitored_session", "MonitoredTrainingSession", "monitored_session.py"),
    Row("estimator", "Estimator", "estimator.py", until=KERAS_3),
    Row("keras_graph", "Keras in graph mode", "keras_graph.py", keras="tf_keras"),
    Row("keras_fit", "Keras `fit` with validation", "keras_fit.py", limits=_NO_XSPACE),
    Row("tf_keras_fit", "tf_keras `fit` with validation", "keras_fit.py", since=KERAS_3, keras="tf_keras"),
    Row("steps_per_execution", "`steps_per_execution`", "steps_per_execution.py", since=(2, 4)),
    Row("train_on_batch", "`train_on_batch`", "train_on_batch.py"),
    Row("function_loop", "loop of a `tf.function`", "function_loop.py", limits=_NO_XSPACE),
    Row("jit_compile", "`jit_compile=True`", "jit_compile.py", since=(2, 4), limits=_NO_INSTRUCTIONS),
    Row("eager_tape", "eager GradientTape", "eager_tape.py", limits=_NO_XSPACE),
    Row("saved_model", "SavedModel signature", "saved_model.py", since=(2,)),
    Row("mirrored", "MirroredStrategy", "mirrored.py", since=(2,), device="CPU:1"),
    Row("multi_worker", "MultiWorkerMirroredStrategy", "multi_worker.py", since=(2, 4), is_forkable=False),
    Row(
        "parameter_server",
        "parameter servers, coordinator",
        "parameter_server.py",
        since=(2, 4),
        limits={"": "remote"},
        is_forkable=False,
    ),
    Row(
        "parameter_server_session",
        "parameter servers, sessions",
        "parameter_server_session.py",
        limits={"": "remote"},
        is_forkable=False,
    ),
    Row("fork", "multiprocessing, fork", "processes.py", argument="fork"),
    Row("spawn", "multiprocessing, spawn", "processes.py", argument="spawn", is_forkable=False),
)
