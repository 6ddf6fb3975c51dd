"""The names of TensorFlow and Keras that the shim relies on, in the notation of name_check.py.

The table of patches refers to these tuples. Those of packages have the names outside of the patched
modules. The tests check all of them with each version of TensorFlow in the matrix.
"""

from __future__ import annotations

SESSION = (
    "BaseSession!",
    "BaseSession.{_call_tf_sessionrun(6)! _call_tf_sessionprun(4)! graph _session _closed _config}",
    "BaseSession.run > TF_GetBuffer!",
    "BaseSession._do_run > _call_tf_sessionrun",
    "BaseSession._make_callable_from_options > _Callable",
    "BaseSession._Callable.{__init__(3)! __call__(1)! __del__(1)! _session! _handle!}",
    "BaseSession._Callable.__call__ > ParseFromString!",
    "tf_session.{TF_NewBuffer TF_NewBufferFromString TF_GetBuffer TF_DeleteBuffer TF_GraphToGraphDef}",
    "tf_session.{TF_SessionMakeCallable TF_SessionReleaseCallable TF_OperationName}",
    "tf_session.TF_Output.{oper index}",
)
#: The annotation around each call of a function, and the graphs that a thread builds.
_ANNOTATION = (
    "trace.Trace.{__init__(2)! __exit__(4)!} since 2.4",
    "tensorflow.python.framework.ops:{_default_graph_stack! _default_graph_stack.stack!}",
)
FUNCTION = (
    *_ANNOTATION,
    "Function.{__call__() _name _python_function}",
    "Function.__call__ > {self args}",
    "Function.__call__ > Trace since 2.4",
    "Function._function_cache | Function._variable_creation_fn | Function._stateful_fn",
    "Function._function_cache | Function._no_variable_creation_fn | Function._stateless_fn",
)
CONCRETE_FUNCTION = (
    *_ANNOTATION,
    "ConcreteFunction.{_call_impl() _func_graph graph structured_input_signature}",
    "ConcreteFunction._call_impl > {self args}",
    "ConcreteFunction._call_impl > Trace since 2.4",
)
#: Until TensorFlow 2.10, another class in the module of the concrete functions makes them.
FUNCTION_OF_CONCRETE_ONES = (*CONCRETE_FUNCTION, "Function._function_cache")
TAPE = ("GradientTape.{__enter__() __exit__() gradient()}",)
OPTIMIZER = ("*.apply_gradients()",)
BASE_OPTIMIZER = ("*.{apply_gradients() apply()}",)
#: In Keras 3 the module of Keras 2 has only a subclass.
OPTIMIZER_OR_SUBCLASS = ("*.apply_gradients() | keras.src.optimizers.base_optimizer:*.apply_gradients()",)
LAYERS = ("Layer.{__call__() weights trainable_weights name}",)
LAYERS_OF_KERAS_2 = (*LAYERS, "autocast_variable.AutoCastVariable._variable")
PROFILER = ("ProfilerSession.{start() stop export_to_tb}", "start_server()")
CALLBACKS = (
    "CallbackList.{params model on_epoch_begin() on_epoch_end()}",
    "CallbackList.{on_train_begin() on_train_end() on_train_batch_begin() on_train_batch_end()}",
    "CallbackList.{on_test_begin() on_test_end() on_test_batch_begin() on_test_batch_end()}",
    "CallbackList.{on_predict_begin() on_predict_end() on_predict_batch_begin() on_predict_batch_end()}",
)
#: Keras 2 calls this method for each batch in graph mode.
CALLBACKS_OF_KERAS_2 = (*CALLBACKS, "CallbackList._call_batch_hook(5)")
_MODEL = "Model.{train_on_batch() test_on_batch() predict_on_batch()}"
MODEL = (_MODEL, "Model.{_steps_per_execution _eval_data_handler} since 2.4")
#: Models of graphs, and what shows the run of a callable that was made before tfprof was attached.
MODEL_OF_GRAPHS = (
    _MODEL,
    "Model._standardize_user_data",
    *(
        "backend.GraphExecutionFunction.%s | K.GraphExecutionFunction.%s" % (name, name)
        for name in ("_callable_fn", "_make_callable", "_feed_arrays", "_feed_symbols", "_symbol_vals")
    ),
)
#: The trainer and the variables of Keras 3 have other names in later releases of it.
TRAINER = (
    *(
        "TensorFlowTrainer.%s | Trainer.%s" % (name, name)
        for name in (
            *("train_on_batch()", "test_on_batch()", "predict_on_batch()"),
            *("steps_per_execution", "_eval_epoch_iterator"),
        )
    ),
    "TFEpochIterator.num_batches",
    "keras.src.backend.common.variables:Variable._value | keras.src.backend.common.variables:KerasVariable._value",
)
SAVED_MODEL = ("Model.save_weights() | Network.save_weights()",)
BATCH_GENERATOR = ("_get_next_batch()",)
ITERATOR = (
    "OwnedIterator._next_internal() | IteratorV2._next_internal()",
    "OwnedIterator._create_iterator() | IteratorV2._create_iterator()",
)
MULTI_DEVICE_ITERATOR = ("OwnedMultiDeviceIterator.get_next() | MultiDeviceIteratorV2.get_next()",)
SAVER = ("Saver.{save() restore()}",)
CHECKPOINT_MANAGER = ("CheckpointManager.save()",)
CHECKPOINT = ("Checkpoint.{save() write() restore()}",)
SAVED_MODEL_FUNCTION = ("save()",)
FILE_WRITER = ("FileWriter.{add_event() flush() close()}", "SummaryToEventTransformer.add_summary()")
SUMMARIES = (
    "{write() trace_on() trace_export()}",
    "ResourceSummaryWriter.flush() | _ResourceSummaryWriter.flush() | _LegacyResourceSummaryWriter.flush()",
)
EAGER_TENSOR = ("_EagerTensorBase.numpy()",)
CONSTANTS = ("convert_to_eager_tensor()",)
GRAPHS = ("func_graph_from_py_func()",)
FUNCTIONS_OF_OPS = ("FuncRegistry.{__call__() _funcs}", "EagerFunc._func")
MARKS = ()

_EAGER = "tensorflow.python.eager."
_FUNCTIONS = _EAGER + "polymorphic_function."
_OPS = "tensorflow.python.framework.ops:"
_GRAPH_OF_FUNCTION = "tensorflow.python.framework.func_graph:FuncGraph."
TENSORFLOW = (
    "tensorflow.python.client.session:",
    _EAGER + "def_function: | " + _FUNCTIONS + "polymorphic_function:",
    _EAGER + "function: | %smonomorphic_function: | %sconcrete_function:" % (_FUNCTIONS, _FUNCTIONS),
    _EAGER + "backprop:",
    "tensorflow.python.training.optimizer:",
    _EAGER + "context:{executing_eagerly context Context._logical_devices LogicalDevice.device_type}",
    _OPS + "Graph.{_lock version _c_graph _functions get_collection get_operations get_operation_by_name}",
    _OPS + "Operation.{graph name type inputs control_inputs outputs traceback}",
    "%sSymbolicTensor.op | %sTensor.op" % (_OPS, _OPS),
    "tensorflow.python.framework.tensor:Tensor.shape | %sTensor.shape" % _OPS,
    "tensorflow.python.framework.tensor_shape:TensorShape.{ndims as_list}",
    "tensorflow.python.framework.dtypes:DType.is_integer",
    "%s_function_captures | %scaptures" % (_GRAPH_OF_FUNCTION, _GRAPH_OF_FUNCTION),
    "tensorflow.core.function.capture.capture_container:FunctionCaptures.by_val_internal since 2.15",
    _FUNCTIONS + "atomic_function:AtomicFunction._cached_graph since 2.15",
    "%satomic_function:AtomicFunction.graph | %smonomorphic_function:_EagerDefinedFunction.graph | "
    "%sfunction:_EagerDefinedFunction.graph" % (_FUNCTIONS, _FUNCTIONS, _EAGER),
    "%sfunction:FunctionCache.all_values | %sfunction_cache:FunctionCache.values | "
    "tensorflow.core.function.polymorphism.function_cache:FunctionCache.values" % (_EAGER, _EAGER),
    "tensorflow.python.ops.resource_variable_ops:BaseResourceVariable.{handle op trainable dtype shape _unique_id}",
    "tensorflow.python.distribute.values:DistributedValues._values",
    "tensorflow.python.module.module:Module.{variables trainable_variables}",
)
#: Keras 3 has a trainer for each backend.
KERAS = (
    "keras.callbacks: | keras.src.callbacks: | keras.src.callbacks.callback_list:",
    "keras.engine.base_layer: | keras.src.engine.base_layer: | keras.src.layers.layer:",
    "keras.engine.training: | keras.src.engine.training: | "
    + " | ".join(
        "keras.src.backend.%s.trainer:" % name for name in ("tensorflow", "jax", "torch", "numpy", "openvino")
    ),
)
TF_KERAS = ("tf_keras.src.{callbacks: engine.base_layer: engine.training: engine.training_v1: optimizers.optimizer:}",)
