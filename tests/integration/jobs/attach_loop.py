"""A training loop without tfprof: python attach_loop.py KIND FOLDER.

It runs until FOLDER/stop exists, or for the number of steps in FOLDER/steps. Then it prints, as
JSON, its number of steps, a hash of all losses, and what tfprof has left in the process.
"""

import functools
import gc
import hashlib
import json
import os
import sys
import time
import types

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2

KIND, FOLDER = sys.argv[1:3]
DURATION_MAX_S = 500.0
PAUSE_S = 0.001  # pause after each step, during which the commands under test can run
random = np.random.RandomState(7)
INPUTS = random.rand(64, 16).astype("f")
TARGETS = random.rand(64, 1).astype("f")


def state():
    """Return the state of the process that a detach must restore."""
    return {
        "modules": sorted(name for name in sys.modules if name.startswith("_tfprof")),
        "meta_path": [str(finder) for finder in sys.meta_path],
        "path": list(sys.path),
        "cache": sorted(str(entry) for entry in sys.path_importer_cache if "tfprof>" in str(entry)),
        "environ": dict(os.environ),
        "collections": list(map(repr, gc.callbacks)),
        "descriptors": sorted(name for name in os.listdir("/proc/self/fd") if "memfd" in _link(name)),
        "mapped": [line for line in open("/proc/self/maps") if "memfd:tfprof" in line],
        "main": sorted(vars(sys.modules["__main__"])),
    }


def _link(name):
    try:
        return os.readlink("/proc/self/fd/" + name)
    except OSError:
        return ""


def _read(name):
    try:
        with open(os.path.join(FOLDER, name)) as file:
            return int(file.read() or 0)
    except OSError:
        return 0


class LoopControl:
    """Counts steps, makes FOLDER/running after five, and decides when the loop is over."""

    def __init__(self):
        self.end = time.monotonic() + DURATION_MAX_S
        self.steps = self.step_limit = 0
        self.losses = hashlib.sha256()

    def step(self, loss):
        self.steps += 1
        self.losses.update(np.float32(loss).tobytes())
        if self.steps == 5:
            open(os.path.join(FOLDER, "running"), "w").close()
        time.sleep(PAUSE_S)

    @property
    def is_over(self):
        if not self.step_limit and self.steps >= 5 and self.steps % 5 == 0:
            self.step_limit = _read("steps")
        if self.step_limit:
            return self.steps >= self.step_limit
        return os.path.exists(os.path.join(FOLDER, "stop")) or time.monotonic() > self.end


def session(control, steps_max=sys.maxsize):
    """Run a session; after ``steps_max`` steps the loop only waits."""
    v1 = getattr(tf, "compat", tf).v1
    v1.disable_eager_execution()
    weights = v1.get_variable("w", initializer=np.ones((16, 1), "f"))
    inputs = v1.placeholder("float32", [64, 16])
    loss = v1.reduce_mean((v1.matmul(inputs, weights) - TARGETS) ** 2)
    train = v1.train.GradientDescentOptimizer(1e-3).minimize(loss)
    tf_session = v1.Session()
    tf_session.run(v1.global_variables_initializer())
    run = tf_session.run  # bound before tfprof attaches
    yield
    while not control.is_over:
        if control.steps < steps_max:
            control.step(run([loss, train], {inputs: INPUTS})[0])
        else:
            time.sleep(0.05)
    yield added_attributes(tf_session)


def added_attributes(owner):
    """Return the attributes of an object that tfprof added."""
    return [name for name in getattr(owner, "__dict__", ()) if "tfprof" in name]


def callable_(control):
    """Run a callable that the program itself made."""
    v1 = getattr(tf, "compat", tf).v1
    v1.disable_eager_execution()
    weights = v1.get_variable("w", initializer=np.ones((16, 1), "f"))
    loss = v1.reduce_mean((v1.matmul(INPUTS, weights) - TARGETS) ** 2)
    train = v1.train.GradientDescentOptimizer(1e-3).minimize(loss)
    tf_session = v1.Session()
    tf_session.run(v1.global_variables_initializer())
    run = tf_session._make_callable_from_options(config_pb2.CallableOptions(fetch=[loss.name], target=[train.name]))
    yield
    while not control.is_over:
        control.step(run()[0])
    yield added_attributes(run)


def function(control):
    v1 = getattr(tf, "compat", tf).v1
    v1.enable_eager_execution()
    weights = tf.Variable(np.ones((16, 1), "f"))

    @tf.function
    def train(inputs, targets):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.matmul(inputs, weights) - targets) ** 2)
        weights.assign_sub(1e-3 * tape.gradient(loss, weights))
        return loss

    yield
    while not control.is_over:
        control.step(train(tf.constant(INPUTS), tf.constant(TARGETS)).numpy())
    yield []


def tape(control):
    """Train with eager ops, a gradient tape and an optimizer."""
    getattr(tf, "compat", tf).v1.enable_eager_execution()
    weights = tf.Variable(np.ones((16, 1), "f"))
    optimizer = tf.keras.optimizers.SGD(1e-3)
    yield
    while not control.is_over:
        with tf.GradientTape() as gradient_tape:
            loss = tf.reduce_mean((tf.matmul(INPUTS, weights) - TARGETS) ** 2)
        optimizer.apply_gradients([(gradient_tape.gradient(loss, weights), weights)])
        control.step(loss.numpy())
    yield []


def fit(control, begin_s=0, **options):
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [layers.Dense(4, kernel_initializer="ones"), layers.Dense(1, kernel_initializer="ones")]
    )
    model.compile("sgd", "mse", **options)

    class Stop(tf.keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            time.sleep(begin_s)

        def on_train_batch_end(self, batch, logs=None):
            control.step(logs["loss"])
            if control.is_over:
                self.model.stop_training = True

        def on_epoch_end(self, epoch, logs=None):
            if control.is_over:
                self.model.stop_training = True

    yield
    model.fit(INPUTS, TARGETS, batch_size=16, epochs=100000, shuffle=False, verbose=0, callbacks=[Stop()])
    yield added_attributes(getattr(model.train_function, "_callable_fn", None))


def single(control):
    """Train batches one by one."""
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile("sgd", "mse")
    yield
    while not control.is_over:
        control.step(model.train_on_batch(INPUTS, TARGETS))
    yield []


#: Generators. Each yields once before its loop. After the loop it yields the attributes that tfprof
#: has added.
KINDS = {
    "session": session,
    "idle": functools.partial(session, steps_max=5),
    "callable": callable_,
    "function": function,
    "tape": tape,
    "fit": fit,
    "single": single,
    "executions": functools.partial(fit, steps_per_execution=2),
    # An attach falls into the start of a batch.
    "slow_begin": functools.partial(fit, begin_s=0.3),
    "eager_fit": functools.partial(fit, begin_s=0.3, run_eagerly=True),
}
control = LoopControl()
before = after = attributes = None  # defined here, so that both calls of `state` list these names
job = KINDS[KIND](control)
next(job)
before = state()
attributes = next(job)
for _ in range(3):
    gc.collect()
after = state()
objects = [str(type(item)) for item in gc.get_objects() if str(getattr(item, "__module__", "")).startswith("_tfprof")]
functions = [item for item in gc.get_objects() if isinstance(item, types.FunctionType)]
callbacks = [item for item in functions if item.__code__.co_filename.startswith("<tfprof/")]
for names in (before["main"], after["main"]):
    names[:] = [name for name in names if name != "_"]  # the variable of the loop above
print(
    json.dumps(
        {
            "steps": control.steps,
            "losses": control.losses.hexdigest(),
            "changed": sorted(name for name in before if before[name] != after[name]),
            "modules": after["modules"],
            "attributes": attributes,
            "objects": objects,
            "callbacks": len(callbacks),
        }
    )
)
