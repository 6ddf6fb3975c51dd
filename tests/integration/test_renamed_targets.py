"""TensorFlow without names that tfprof relies on: each is reported, and the job runs as bare.

Tests shim/tensorflow/names.py.
"""

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from fakes import overlay
from fakes.polling import until
from tfprof.collector.store.reader import LocalStore

pytestmark = pytest.mark.tf

JOB = str(Path(__file__).parent / "jobs/every_path.py")
TFPROF = str(Path(sys.executable).parent / "tfprof")
TIMEOUT_S = 300
#: Changed files of a version -> {pattern: replacement}.
Changes = Mapping[str, Mapping[str, str]]
_KERAS_1, _EAGER_1 = "tensorflow_core/python/keras/", "tensorflow_core/python/eager/"
RENAMED_IN_1: Changes = {
    "tensorflow_core/python/client/session.py": {
        r"\b_call_tf_sessionrun\b": "_run_session",
        r"\b_call_tf_sessionprun\b": "_run_part",
    },
    **{_EAGER_1 + name: {r"\ball_values\b": "every_value"} for name in ("function.py", "def_function.py")},
    **{
        _KERAS_1 + name: {r"\b_call_batch_hook\b": "_call_hook"}
        for name in (
            "callbacks.py",
            "engine/training_arrays.py",
            "engine/training_distributed.py",
            "engine/training_generator.py",
            "engine/training_v2.py",
        )
    },
}
MISSING_IN_1 = [
    "BaseSession._call_tf_sessionrun",
    "BaseSession._call_tf_sessionprun",
    "FunctionCache.all_values",
    "CallbackList._call_batch_hook",
]
RENAMED_IN_2: Changes = {
    "tensorflow/python/client/session.py": {
        r"\b_call_tf_sessionrun\b": "_run_session",
        r"\b_Callable\b": "_Call",
    },
    "tensorflow/python/framework/ops.py": {r"\b_default_graph_stack\b": "_graph_stack"},
    "tensorflow/python/eager/polymorphic_function/polymorphic_function.py": {
        r"\bself\._function_cache\b": "self._cache",
        r"\b_python_function\b": "_function",
    },
    "tensorflow/python/eager/polymorphic_function/concrete_function.py": {r"\b_call_impl\b": "_call_with"},
    "tensorflow/python/eager/wrap_function.py": {r"\b_call_impl\b": "_call_with"},
    "tensorflow/python/eager/polymorphic_function/atomic_function.py": {r"\b_cached_graph\b": "_graph"},
    "tensorflow/core/function/capture/capture_container.py": {r"\bby_val_internal\b": "by_value"},
    "tensorflow/python/framework/func_graph.py": {r"\bby_val_internal\b": "by_value"},
    "tensorflow/python/ops/while_v2.py": {r"\bby_val_internal\b": "by_value"},
    "tensorflow/python/saved_model/function_serialization.py": {r"\bby_val_internal\b": "by_value"},
    "keras/src/backend/tensorflow/trainer.py": {
        r"\b_eval_epoch_iterator\b": "_eval_iterator",
        r"callbacks\.on_test_batch_end\b": "callbacks.on_test_batch_finish",
    },
    "keras/src/callbacks/callback_list.py": {r"def on_test_batch_end\b": "def on_test_batch_finish"},
}
MISSING_IN_2 = [
    "BaseSession._call_tf_sessionrun",
    "BaseSession._Callable",
    "ops._default_graph_stack",
    "Function._function_cache",
    "Function._python_function",
    "ConcreteFunction._call_impl",
    "AtomicFunction._cached_graph",
    "FunctionCaptures.by_val_internal",
    "TensorFlowTrainer._eval_epoch_iterator",
    "CallbackList.on_test_batch_end",
]


def _write_packages(python: Path, folder: Path, changes: Changes) -> dict[str, str]:
    """Write changed packages into ``folder``; return the environment that uses them."""
    (site_packages,) = (python.parents[1] / "lib").glob("python*/site-packages")
    overlay.write(site_packages, folder, changes)
    return {**os.environ, "PYTHONPATH": str(folder), "TF_CPP_MIN_LOG_LEVEL": "3"}


def _run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, stdin=-3
    )


@pytest.fixture(scope="module")
def bare_output() -> Callable[[Path], str]:
    """Return a function that returns what the job prints without tfprof."""

    @functools.cache
    def output(python: Path) -> str:
        bare = _run([str(python), "-W", "ignore", JOB], {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})
        assert bare.returncode == 0, bare.stderr
        return bare.stdout

    return output


def _profile(python: Path, environment: dict[str, str], store: Path, printed: str) -> tuple[str, list[str]]:
    """Run the job profiled; return the end report, and the reported texts about names.

    It must end and print as without tfprof, and no error of tfprof may be counted.
    """
    profiled = _run([TFPROF + "-run", "--trace", "all", str(python), "-W", "ignore", JOB], environment)
    assert (profiled.returncode, profiled.stdout) == (0, printed), profiled.stderr
    (job,) = LocalStore(store).jobs()
    assert job.info.counters["faults"] == 0
    return " ".join(profiled.stderr.rpartition("tfprof: job ")[2].split()), _missing_texts(store)


def _missing_texts(store: Path) -> list[str]:
    (job,) = LocalStore(store).jobs()
    return [row["text"] for row in job.table("events").to_pylist() if row["slug"] == "patch-missing"]


@pytest.mark.parametrize(
    ("version", "changes", "missing"), [("tf1", RENAMED_IN_1, MISSING_IN_1), ("tf2", RENAMED_IN_2, MISSING_IN_2)]
)
def test_each_renamed_target_is_reported_and_the_job_runs_as_bare(
    version: str,
    changes: Changes,
    missing: list[str],
    request: pytest.FixtureRequest,
    tmp_path: Path,
    private_store: Path,
    bare_output: Callable[[Path], str],
) -> None:
    python = request.getfixturevalue(f"{version}_python")
    environment = _write_packages(python, tmp_path / "packages", changes)
    report, texts = _profile(python, environment, private_store, bare_output(python))
    shown = _run([TFPROF, "show", "last"], environment).stdout
    for place in ("\n".join(texts), report, shown):
        assert [name for name in missing if name not in place] == []
    assert len({text.partition(" ")[0] for text in texts}) == len(texts)  # one record for each module


@pytest.mark.parametrize("version", ["tf1", "tf2"])
def test_nothing_is_missing_in_a_tested_version(
    version: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    private_store: Path,
    bare_output: Callable[[Path], str],
) -> None:
    python = request.getfixturevalue(f"{version}_python")
    environment = _write_packages(python, tmp_path / "packages", {})
    report, texts = _profile(python, environment, private_store, bare_output(python))
    assert (texts, "patch-missing" in report) == ([], False)


def test_a_module_is_not_patched_if_a_function_takes_other_arguments(
    tf2_python: Path, tmp_path: Path, private_store: Path, bare_output: Callable[[Path], str]
) -> None:
    changes = {
        "tensorflow/python/client/session.py": {
            r"(def _call_tf_sessionrun\([^)]*)\)": r"\1, handle)",
            r"(self\._call_tf_sessionrun\([^)]*)\)": r"\1, None)",
        }
    }
    environment = _write_packages(tf2_python, tmp_path / "packages", changes)
    _, texts = _profile(tf2_python, environment, private_store, bare_output(tf2_python))
    (text,) = texts
    assert "lacks names that tfprof relies on: the parameters of BaseSession._call_tf_sessionrun;" in text
    assert text.endswith("it is not patched")


def test_a_module_that_has_moved_is_reported(
    tf2_python: Path, tmp_path: Path, private_store: Path, bare_output: Callable[[Path], str]
) -> None:
    folder = tmp_path / "packages"
    changes = {
        f"keras/{package}callbacks/__init__.py": {r"callbacks\.callback_list\b": "callbacks.list_of_callbacks"}
        for package in ("", "src/", "_tf_keras/keras/")
    }
    environment = _write_packages(tf2_python, folder, changes)
    callbacks = folder / "keras/src/callbacks"
    (callbacks / "callback_list.py").rename(callbacks / "list_of_callbacks.py")
    _, texts = _profile(tf2_python, environment, private_store, bare_output(tf2_python))
    (text,) = texts
    assert text.startswith("keras lacks names that tfprof relies on: keras.callbacks or keras.src.callbacks or ")


def test_ps_and_doctor_name_what_a_running_job_lacks(tf2_python: Path, tmp_path: Path, private_store: Path) -> None:
    changes = {"tensorflow/python/client/session.py": {r"\b_call_tf_sessionprun\b": "_run_part"}}
    environment = _write_packages(tf2_python, tmp_path / "packages", changes)
    command = [TFPROF + "-run", "--no-report", str(tf2_python), "-W", "ignore", JOB, "wait"]
    job = subprocess.Popen(command, env=environment, stdin=-1, stdout=-1, text=True)
    try:
        assert job.stdout is not None
        assert "ready\n" in job.stdout
        until(lambda: _missing_texts(private_store), "the event in the store", 30)
        pid = LocalStore(private_store).jobs()[0].info.identity["pid"]
        processes = json.loads(_run([TFPROF, "ps", "--json"], environment).stdout)["processes"]
        (process,) = [process for process in processes if process["pid"] == pid]
        listed = _run([TFPROF, "ps"], environment).stdout
        doctor = _run([TFPROF, "doctor", str(pid)], environment).stdout
    finally:
        job.communicate("\n", timeout=TIMEOUT_S)
    assert ["BaseSession._call_tf_sessionprun" in text for text in process["warnings"]] == [True]
    assert "[patch-missing]" in listed
    assert "BaseSession._call_tf_sessionprun" in doctor
