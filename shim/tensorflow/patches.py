"""TensorFlow's row in the table of frameworks (arming.py): name, version, kinds and patches."""

#: The framework's name in the hello.
NAME = "tensorflow"
#: Where the shim finds the framework's version: (module, attribute).
VERSION = ("tensorflow.python.framework.versions", "VERSION")
#: Packages whose frames and exceptions are the framework's.
OWN_PACKAGES = ("absl", "google", "keras", "numpy", "six", "tensorflow", "tensorflow_core", "tf_keras", "wrapt")
#: Our modules in this folder with the kinds of spans, with what records a step, and with the names
#: that we rely on.
KINDS, RECORDER, NAMES = "kinds", "recording", "names"
_OPTIMIZER = ("eager_steps", "patch_optimizer", "OPTIMIZER")
#: Packages that hold a Keras 2, or Keras 3, and their modules.
_KERAS_PACKAGES = ("tensorflow.python.keras", "keras", "keras.src", "tf_keras.src")
_KERAS_MODULES = {
    "callbacks": ("keras", "patch_callbacks", "CALLBACKS_OF_KERAS_2"),
    "engine.training": ("keras", "patch_models", "MODEL"),
    "engine.training_v1": ("keras", "patch_models", "MODEL_OF_GRAPHS"),
    **dict.fromkeys(
        ("engine.training_generator", "engine.training_generator_v1"), ("activities", "patch", "BATCH_GENERATOR")
    ),
    "engine.network": ("activities", "patch", "SAVED_MODEL"),
    "engine.base_layer": ("eager_steps", "patch_layers", "LAYERS_OF_KERAS_2"),
    "optimizer_v2.optimizer_v2": _OPTIMIZER,
    "optimizers.optimizer": _OPTIMIZER,
    "optimizers.optimizer_experimental.optimizer": _OPTIMIZER,
    "optimizers.optimizer_v2.optimizer_v2": _OPTIMIZER,
    "optimizers.legacy.optimizer_v2": _OPTIMIZER,
}
#: Modules with marks. A process that has only these is no job of the framework.
MARKS = ("tfprof_spans", "nvtx.nvtx", "opentelemetry.sdk.trace", "tensorflow._api.v2.profiler.experimental")
#: Module of the job -> (our module in this folder, the function there that patches it, the tuple of
#: names that we rely on). What may call other steps comes first, so that after an attach to a
#: running fit no function call in it is a step of its own.
PATCHES = {
    "tensorflow.python.eager.backprop": ("eager_steps", "patch_tape", "TAPE"),
    "keras.src.callbacks.callback_list": ("keras", "patch_callbacks", "CALLBACKS"),
    "keras.src.backend.tensorflow.trainer": ("keras", "patch_models", "TRAINER"),
    **{"%s.%s" % (package, name): row for package in _KERAS_PACKAGES for name, row in _KERAS_MODULES.items()},
    "keras.src.layers.layer": ("eager_steps", "patch_layers", "LAYERS"),
    "tensorflow.python.client.session": ("session", "patch", "SESSION"),
    "tensorflow.python.eager.def_function": ("function", "patch", "FUNCTION"),
    "tensorflow.python.eager.polymorphic_function.polymorphic_function": ("function", "patch", "FUNCTION"),
    "tensorflow.python.eager.function": ("function", "patch", "FUNCTION_OF_CONCRETE_ONES"),
    "tensorflow.python.eager.polymorphic_function.monomorphic_function": ("function", "patch", "CONCRETE_FUNCTION"),
    "tensorflow.python.eager.polymorphic_function.concrete_function": ("function", "patch", "CONCRETE_FUNCTION"),
    "keras.src.optimizers.base_optimizer": ("eager_steps", "patch_optimizer", "BASE_OPTIMIZER"),
    "keras.src.optimizers.optimizer": ("eager_steps", "patch_optimizer", "OPTIMIZER_OR_SUBCLASS"),
    "tensorflow.python.training.optimizer": _OPTIMIZER,
    "keras.src.models.model": ("activities", "patch", "SAVED_MODEL"),
    "tensorflow.python.data.ops.iterator_ops": ("activities", "patch", "ITERATOR"),
    "tensorflow.python.data.ops.multi_device_iterator_ops": ("activities", "patch", "MULTI_DEVICE_ITERATOR"),
    "tensorflow.python.training.saver": ("activities", "patch", "SAVER"),
    "tensorflow.python.training.checkpoint_management": ("activities", "patch", "CHECKPOINT_MANAGER"),
    "tensorflow.python.checkpoint.checkpoint_management": ("activities", "patch", "CHECKPOINT_MANAGER"),
    "tensorflow.python.training.tracking.util": ("activities", "patch", "CHECKPOINT"),
    "tensorflow.python.checkpoint.checkpoint": ("activities", "patch", "CHECKPOINT"),
    "tensorflow.python.saved_model.save": ("activities", "patch", "SAVED_MODEL_FUNCTION"),
    "tensorflow.python.summary.writer.writer": ("activities", "patch", "FILE_WRITER"),
    "tensorflow.python.ops.summary_ops_v2": ("activities", "patch", "SUMMARIES"),
    "tensorflow.python.framework.ops": ("activities", "patch_values", "EAGER_TENSOR"),
    "tensorflow.python.framework.constant_op": ("activities", "patch_values", "CONSTANTS"),
    "tensorflow.python.framework.func_graph": ("activities", "patch_graphs", "GRAPHS"),
    "tensorflow.python.ops.script_ops": ("activities", "patch_functions_of_ops", "FUNCTIONS_OF_OPS"),
    "tensorflow.python.profiler.internal._pywrap_profiler": ("recording", "patch", "PROFILER"),
    **dict.fromkeys(MARKS, ("marks", "patch", "MARKS")),
}
#: Package of the job -> the tuple of names that must exist after its import.
PACKAGES = {"tensorflow": "TENSORFLOW", "keras": "KERAS", "tf_keras": "TF_KERAS"}
