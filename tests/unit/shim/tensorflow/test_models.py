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


def function(python):
    return SimpleNamespace(_python_function=python)


def test_models_of_a_function_are_found_by_every_kind_of_reference():
    mine = Model()
    for python, model in (
        (uses_global, MODEL),
        (calls_another, MODEL),
        (closure(mine), mine),
        (closure([{"a": mine}]), mine),
        (Trainer(mine).step, mine),
        (closure(Trainer(mine)), mine),
        (closure(function(closure(mine))), mine),
    ):
        assert models.referred_models(function(python)) == [model]
    assert models.referred_models((None, [mine])) == [mine]
    assert models.referred_models(function(closure(3))) == []


def test_circular_references_end():
    circle: list[object] = []
    circle.append(circle)
    assert models.referred_models(function(closure(circle))) == []


def test_weights_are_known_by_their_variables_and_copies_are_not_weights():
    first, copy, kernel, frozen = Weight(), Weight(), Weight(), Weight()
    mirrored, wrapped = SimpleNamespace(_values=(first, copy), handle=2), SimpleNamespace(_value=kernel)
    weights = models.Weights([Model([wrapped, mirrored], [frozen])])
    assert weights.trained_by_id == {id(kernel): True, id(first): True, id(frozen): False}
    assert weights.copy_ids == {id(copy)}


def test_a_model_that_cannot_be_examined_hides_no_other():
    class Broken(Model):
        @property
        def weights(self):
            raise ValueError("not built")

    kernel = Weight()
    assert models.Weights([Broken(), Model([kernel])]).trained_by_id == {id(kernel): True}


def test_no_code_of_the_job_runs_in_the_search():
    accesses = []

    class Proxy:
        """Like a proxy of a web framework outside of its context."""

        __slots__ = ()

        def __getattribute__(self, name):
            accesses.append(name)
            raise RuntimeError("outside of the context")

    class Dynamic:
        @property
        def __dict__(self):  # type: ignore[override]
            accesses.append("__dict__")
            raise RuntimeError("outside of the context")

    class Lazy(ModuleType):
        def __getattribute__(self, name):
            accesses.append(name)
            return super().__getattribute__(name)

    parts = (Proxy(), Dynamic(), Lazy("lazy"), SimpleNamespace(model=MODEL))
    assert models.referred_models((lambda: parts, ())) == [MODEL]
    assert accesses == []
