"""Options from all methods of a ProfileOptionBuilder, that of TensorFlow or that of tfprof."""


def built_options(Builder):  # noqa: N803
    """Return the options by name."""
    builder = (
        Builder()
        .with_max_depth(7)
        .with_min_memory(1, 2, 3, 4)
        .with_min_execution_time(5, 6, 7)
        .with_min_parameters(8)
        .with_min_occurrence(9)
        .with_min_float_operations(10)
        .with_accounted_types(["a", "b"])
        .with_node_names(["s"], ["t"], ["u"], ["v"])
        .account_displayed_op_only(True)
        .order_by("bytes")
        .select(["bytes", "micros"])
        .with_step(11)
    )
    return {
        "default": Builder().build(),
        "every": builder.build(),
        "some_names": Builder().with_node_names(hide_name_regexes=["h"]).with_min_memory().build(),
        "empty": Builder().with_empty_output().build(),
        "stdout": Builder({"output": "none"}).with_stdout_output().build(),
        "file": Builder().with_file_output("f").build(),
        "timeline": Builder().with_timeline_output("f").build(),
        "pprof": Builder().with_pprof_output("f").build(),
        "parameters": Builder.trainable_variables_parameter(),
        "operations": Builder.float_operation(),
        "time": Builder.time_and_memory(),
        "times": Builder.time_and_memory(1, 2, 3, 4, 5, 6, 7),
        "changed": Builder(Builder.time_and_memory()).with_max_depth(3).build(),
    }
