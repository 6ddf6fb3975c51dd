"""Models that functions refer to, and their weights."""

from types import ModuleType, SimpleNamespace

from tfprof.shim.tensorflow import models


class Weight:
    """A fake variable of TensorFlow."""

    handle = 1


class Model:
    """A fake model of Keras."""

    def __init__(self, trained=(), others=()):
        self._trained, self._others = list(trained), list(others)

    @property
    def weights(self):
        return self._trained + self._others

    @property
    def trainable_weights(self):
        return self._trained


class Trainer:
    """An object with a model and a method."""

    def __init__(self, model):
        self.model = model

    def step(self, x):
        return x


MODEL = Model()


def uses_global():
    def inner():
        return MODEL

    return inner()


def calls_another():
    return uses_global()


def closure(model):
    return lambda: model


def function(python_function):
    return SimpleNamespace(_python_function=python_function)


def test_models_of_a_function_are_found_by_every_kind_of_reference():
    own_model = Model()
    for python_function, model in (
        (uses_global, MODEL),
        (calls_another, MODEL),
        (closure(own_model), own_model),
        (closure([{"a": own_model}]), own_model),
        (Trainer(own_model).step, own_model),
        (closure(Trainer(own_model)), own_model),
        (closure(function(closure(own_model))), own_model),
    ):
        assert models.referred_models(function(python_function)) == [model]
    assert models.referred_models((None, [own_model])) == [own_model]
    assert models.referred_models(function(closure(3))) == []


def test_the_search_ends_despite_circular_references():
    circle: list[object] = []
    circle.append(circle)
    assert models.referred_models(function(closure(circle))) == []


def test_weights_are_known_by_their_variables_and_copies_are_not_weights():
    first, copy, kernel, frozen = Weight(), Weight(), Weight(), Weight()
    mirrored_variable = SimpleNamespace(_values=(first, copy), handle=2)
    wrapped_variable = SimpleNamespace(_value=kernel)
    weights = models.Weights([Model([wrapped_variable, mirrored_variable], [frozen])])
    assert weights.trained_by_id == {id(kernel): True, id(first): True, id(frozen): False}
    assert weights.copy_ids == {id(copy)}


def test_a_model_that_cannot_be_examined_hides_no_other():
    class BrokenModel(Model):
        @property
        def weights(self):
            raise ValueError("not built")

    kernel = Weight()
    assert models.Weights([BrokenModel(), Model([kernel])]).trained_by_id == {id(kernel): True}


def test_no_code_of_the_job_runs_in_the_search():
    accesses = []

    class Proxy:
        """Like a proxy of a web framework outside of its context."""

        __slots__ = ()

        def __getattribute__(self, name):
            accesses.append(name)
            raise RuntimeError("outside of the context")

    class DynamicObject:
        @property
        def __dict__(self):  # type: ignore[override]
            accesses.append("__dict__")
            raise RuntimeError("outside of the context")

    class LazyModule(ModuleType):
        def __getattribute__(self, name):
            accesses.append(name)
            return super().__getattribute__(name)

    parts = (Proxy(), DynamicObject(), LazyModule("lazy"), SimpleNamespace(model=MODEL))
    assert models.referred_models((lambda: parts, ())) == [MODEL]
    assert accesses == []
