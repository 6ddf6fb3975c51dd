"""TensorFlow's row in the table of frameworks (core.py): name, version and patches."""

#: The framework's name in the hello.
NAME = "tensorflow"
#: Where the shim finds the framework's version: (module, attribute).
VERSION = ("tensorflow.python.framework.versions", "VERSION")
#: Module of the job -> (our module in this folder, the function there that patches it).
PATCHES = {
    "tensorflow.python.client.session": ("session", "patch"),
    "tensorflow.python.eager.def_function": ("function", "patch"),
    "tensorflow.python.eager.polymorphic_function.polymorphic_function": ("function", "patch"),
    "tensorflow.python.eager.function": ("eager_steps", "patch_concrete"),
    "tensorflow.python.eager.polymorphic_function.monomorphic_function": ("eager_steps", "patch_concrete"),
    "tensorflow.python.eager.polymorphic_function.concrete_function": ("eager_steps", "patch_concrete"),
    "tensorflow.python.eager.backprop": ("eager_steps", "patch_tape"),
    "tensorflow.python.training.optimizer": ("eager_steps", "patch_optimizer"),
    "tensorflow.python.keras.optimizer_v2.optimizer_v2": ("eager_steps", "patch_optimizer"),
    "keras.optimizer_v2.optimizer_v2": ("eager_steps", "patch_optimizer"),
    "keras.optimizers.optimizer": ("eager_steps", "patch_optimizer"),
    "keras.optimizers.optimizer_experimental.optimizer": ("eager_steps", "patch_optimizer"),
    "keras.optimizers.optimizer_v2.optimizer_v2": ("eager_steps", "patch_optimizer"),
    "keras.optimizers.legacy.optimizer_v2": ("eager_steps", "patch_optimizer"),
    "keras.src.optimizers.base_optimizer": ("eager_steps", "patch_optimizer"),
    "keras.src.optimizers.optimizer": ("eager_steps", "patch_optimizer"),
    "keras.src.optimizers.legacy.optimizer_v2": ("eager_steps", "patch_optimizer"),
    "tf_keras.src.optimizers.optimizer": ("eager_steps", "patch_optimizer"),
    "tf_keras.src.optimizers.legacy.optimizer_v2": ("eager_steps", "patch_optimizer"),
    "tensorflow.python.keras.engine.base_layer": ("eager_steps", "patch_layers"),
    "keras.engine.base_layer": ("eager_steps", "patch_layers"),
    "keras.src.engine.base_layer": ("eager_steps", "patch_layers"),
    "keras.src.layers.layer": ("eager_steps", "patch_layers"),
    "tf_keras.src.engine.base_layer": ("eager_steps", "patch_layers"),
    "tensorflow.python.profiler.internal._pywrap_profiler": ("window", "patch"),
    "tensorflow.python.keras.callbacks": ("keras", "patch_callbacks"),
    "keras.callbacks": ("keras", "patch_callbacks"),
    "keras.src.callbacks": ("keras", "patch_callbacks"),
    "keras.src.callbacks.callback_list": ("keras", "patch_callbacks"),
    "tf_keras.src.callbacks": ("keras", "patch_callbacks"),
    "tensorflow.python.keras.engine.training": ("keras_batches", "patch"),
    "tensorflow.python.keras.engine.training_v1": ("keras_batches", "patch"),
    "keras.engine.training": ("keras_batches", "patch"),
    "keras.engine.training_v1": ("keras_batches", "patch"),
    "keras.src.engine.training": ("keras_batches", "patch"),
    "keras.src.engine.training_v1": ("keras_batches", "patch"),
    "tf_keras.src.engine.training": ("keras_batches", "patch"),
    "tf_keras.src.engine.training_v1": ("keras_batches", "patch"),
    "keras.src.backend.tensorflow.trainer": ("keras_batches", "patch"),
}
