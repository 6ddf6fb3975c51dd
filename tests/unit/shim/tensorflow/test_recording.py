"""The concrete functions of a function, where each version of TensorFlow keeps them."""

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
