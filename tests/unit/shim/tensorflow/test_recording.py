"""The concrete functions of a function, where each version of TensorFlow keeps them; the thread."""

import _thread
from importlib.util import module_from_spec, spec_from_file_location
from types import SimpleNamespace

import pytest
from tfprof.shim.tensorflow import recording

FIRST, SECOND = SimpleNamespace(name="first"), SimpleNamespace(name="second")


def holder(concrete_function, method="values"):
    """Return an object with a cache of one concrete function."""
    return SimpleNamespace(_function_cache=SimpleNamespace(**{method: lambda: [concrete_function]}))


@pytest.mark.parametrize(
    ("function", "concrete_functions"),
    [
        (SimpleNamespace(_stateful_fn=holder(FIRST, "all_values"), _stateless_fn=holder(SECOND)), [FIRST, SECOND]),
        (SimpleNamespace(_stateful_fn=None, _stateless_fn=holder(SECOND)), [SECOND]),
        (
            SimpleNamespace(_variable_creation_fn=holder(FIRST), _no_variable_creation_fn=holder(SECOND)),
            [FIRST, SECOND],
        ),
        (holder(FIRST), [FIRST]),
        (SimpleNamespace(), []),
    ],
    ids=["2.10", "without variables", "2.14", "2.21", "none"],
)
def test_the_concrete_functions_of_a_function_are_found(function, concrete_functions):
    assert recording.concrete_functions(function) == concrete_functions


def test_a_concrete_function_is_one_itself():
    concrete_function = SimpleNamespace(structured_input_signature=((), {}))
    assert recording.concrete_functions(concrete_function) == [concrete_function]


def test_the_thread_of_a_session_runs_no_code_of_a_debugger(monkeypatch):
    original = _thread.start_new_thread
    monkeypatch.setattr(_thread, "start_new_thread", lambda *_: None)  # as pydevd does
    monkeypatch.setattr(_thread, "_original_start_new_thread", original, raising=False)
    spec = spec_from_file_location("tfprof.shim.tensorflow.another_recording", recording.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.start_new_thread is not original
    assert module._start_thread is original
