"""Prints a line for each case: whether dropped objects are freed, what is left, or an error."""

import gc
import weakref

import tensorflow as tf

CALLS = 8


def nested():
    """A nested function and its graphs are freed with the last reference or the next collection."""
    references = []

    @tf.function
    def outer():
        @tf.function
        def inner():
            return tf.constant(1.0)

        references.append(weakref.ref(inner))
        return inner()

    for _ in range(CALLS):
        outer()
    graph = weakref.ref(outer.get_concrete_function().graph)
    concrete = weakref.ref(outer.get_concrete_function())
    del outer
    gc.collect()
    return [reference() is None for reference in (*references, graph, concrete)]


def method():
    """A bound tf.function forms no cycle: its object is freed without a collection."""

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.weight = tf.Variable([2.0] * 1024)

        @tf.function
        def call(self, x):
            return self.weight * x

    def use():
        model = Model()
        for _ in range(CALLS):
            model.call(tf.ones(1024))
        return weakref.ref(model), weakref.ref(model.weight)

    use()  # creates everything that is created only once
    gc.collect()
    gc.disable()
    references = use()
    freed = [reference() is None for reference in references]
    return [*freed, gc.collect() == 0 or all(freed)]


def cycles():
    """Return the types of objects that a dropped function leaves to the garbage collector."""

    def use():
        function = tf.function(lambda x: x * 2.0)
        for _ in range(CALLS):
            function(tf.ones(4))

    use()
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    del gc.garbage[:]
    use()
    gc.collect()
    # Some releases of TensorFlow leave a graph behind. Its shapes are ignored: TensorFlow creates
    # them only on demand, and tfprof reads them.
    types = [
        type(leftover).__name__ for leftover in gc.garbage if type(leftover).__name__ not in ("TensorShape", "tuple")
    ]
    gc.set_debug(0)
    del gc.garbage[:]
    return sorted(types)


def message():
    """The messages of TensorFlow about a graph tensor outside of its graph."""
    tensors = []

    @tf.function
    def keep(x):
        tensors.append(x + 1.0)
        return x

    @tf.function
    def use(x):
        return x * 2.0

    for _ in range(CALLS):
        keep(tf.ones(2))
        use(tf.ones(2))
    lines = []
    for call in (use, lambda x: tf.add(x, 1.0)):
        try:
            call(tensors[0])
        except Exception as error:
            lines += [type(error).__name__, str(error).replace("\n", " ")[:400]]
    return lines


for case in (nested, method, cycles, message):
    gc.enable()
    print(case.__name__, *case())
