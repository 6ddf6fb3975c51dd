"""Builder of option dicts, the same as TensorFlow's tf.compat.v1.profiler.ProfileOptionBuilder."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Final

#: Options that a builder starts with.
_DEFAULTS: Final[Mapping[str, Any]] = {
    "max_depth": 100,
    "min_bytes": 0,
    "min_micros": 0,
    "min_params": 0,
    "min_float_ops": 0,
    "min_occurrence": 0,
    "order_by": "name",
    "account_type_regexes": [".*"],
    "start_name_regexes": [".*"],
    "trim_name_regexes": [],
    "show_name_regexes": [".*"],
    "hide_name_regexes": [],
    "account_displayed_op_only": False,
    "select": ["micros"],
    "step": -1,
    "output": "stdout",
}


def _preset(**changes: Any) -> dict[str, Any]:
    return copy.deepcopy({**_DEFAULTS, "max_depth": 10000, "account_displayed_op_only": True, **changes})


class ProfileOptionBuilder:
    """A builder of a dict of options, which ``build`` returns.

    Each method that sets an option returns the builder. docs/commands.md explains the options.
    """

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        """Start with a copy of ``options``, for example a preset.

        The default shows all times, sorted by name.
        """
        self._options: dict[str, Any] = copy.deepcopy(dict(_DEFAULTS if options is None else options))

    @staticmethod
    def trainable_variables_parameter() -> dict[str, Any]:
        """Return options for the scope view that count the parameters of trainable variables."""
        return _preset(account_type_regexes=["_trainable_variables"], select=["params"])

    @staticmethod
    def float_operation() -> dict[str, Any]:
        """Return options that show floating-point operations, the largest number first."""
        return _preset(min_float_ops=1, order_by="float_ops", select=["float_ops"])

    @staticmethod
    def time() -> dict[str, Any]:
        """Return options that show the time and the calls of all that ran, slowest first.

        Unlike `time_and_memory`, they show ops that requested no memory, as most ops of oneDNN.
        """
        return _preset(min_micros=1, order_by="micros", select=["micros", "occurrence"])

    @staticmethod
    def memory() -> dict[str, Any]:
        """Return options that show bytes: requested, at the peak, kept; most requested first."""
        return _preset(min_bytes=1, order_by="bytes", select=["bytes", "peak_bytes", "residual_bytes"])

    @staticmethod
    def time_and_memory(
        min_micros: int = 1,
        min_bytes: int = 1,
        min_accelerator_micros: int = 0,
        min_cpu_micros: int = 0,
        min_peak_bytes: int = 0,
        min_residual_bytes: int = 0,
        min_output_bytes: int = 0,
    ) -> dict[str, Any]:
        """Return options that show time and memory, slowest first.

        Minima of time are in µs, those of memory in bytes.
        """
        return _preset(
            min_micros=min_micros,
            min_bytes=min_bytes,
            min_accelerator_micros=min_accelerator_micros,
            min_cpu_micros=min_cpu_micros,
            min_peak_bytes=min_peak_bytes,
            min_residual_bytes=min_residual_bytes,
            min_output_bytes=min_output_bytes,
            order_by="micros",
            select=["micros", "bytes"],
        )

    def build(self) -> dict[str, Any]:
        """Return a copy of the options."""
        return copy.deepcopy(self._options)

    def _with(self, **options: Any) -> "ProfileOptionBuilder":
        self._options.update(copy.deepcopy(options))
        return self

    def with_max_depth(self, max_depth: int) -> "ProfileOptionBuilder":
        """Show at most this many levels of a tree, the root included.

        In the op view, show the positions from 0 to ``max_depth``.
        """
        return self._with(max_depth=max_depth)

    def with_min_memory(
        self, min_bytes: int = 0, min_peak_bytes: int = 0, min_residual_bytes: int = 0, min_output_bytes: int = 0
    ) -> "ProfileOptionBuilder":
        """Hide entries with fewer bytes requested, at the peak, left over, or in outputs."""
        return self._with(
            min_bytes=min_bytes,
            min_peak_bytes=min_peak_bytes,
            min_residual_bytes=min_residual_bytes,
            min_output_bytes=min_output_bytes,
        )

    def with_min_execution_time(
        self, min_micros: int = 0, min_accelerator_micros: int = 0, min_cpu_micros: int = 0
    ) -> "ProfileOptionBuilder":
        """Hide entries that ran for fewer µs in all, on accelerators, or on CPUs."""
        return self._with(
            min_micros=min_micros, min_accelerator_micros=min_accelerator_micros, min_cpu_micros=min_cpu_micros
        )

    def with_min_parameters(self, min_params: int) -> "ProfileOptionBuilder":
        """Hide entries with fewer parameters."""
        return self._with(min_params=min_params)

    def with_min_occurrence(self, min_occurrence: int) -> "ProfileOptionBuilder":
        """Hide nodes that ran less often; in the op view, op types with fewer nodes."""
        return self._with(min_occurrence=min_occurrence)

    def with_min_float_operations(self, min_float_ops: int) -> "ProfileOptionBuilder":
        """Hide entries with fewer floating-point operations."""
        return self._with(min_float_ops=min_float_ops)

    def with_accounted_types(self, account_type_regexes: Iterable[str]) -> "ProfileOptionBuilder":
        """Count only nodes with a matching op type, device or op-log label."""
        return self._with(account_type_regexes=account_type_regexes)

    def with_node_names(
        self,
        start_name_regexes: Iterable[str] | None = None,
        show_name_regexes: Iterable[str] | None = None,
        hide_name_regexes: Iterable[str] | None = None,
        trim_name_regexes: Iterable[str] | None = None,
    ) -> "ProfileOptionBuilder":
        """Set the regexes that start, show, hide and trim by name; None leaves a list unchanged."""
        lists = {
            "start_name_regexes": start_name_regexes,
            "show_name_regexes": show_name_regexes,
            "hide_name_regexes": hide_name_regexes,
            "trim_name_regexes": trim_name_regexes,
        }
        return self._with(**{name: regexes for name, regexes in lists.items() if regexes is not None})

    def account_displayed_op_only(self, is_true: bool) -> "ProfileOptionBuilder":
        """Choose whether totals cover only the displayed entries or all accounted ones."""
        return self._with(account_displayed_op_only=is_true)

    def with_empty_output(self) -> "ProfileOptionBuilder":
        """Neither print nor write the view."""
        return self._with(output="none")

    def with_stdout_output(self) -> "ProfileOptionBuilder":
        """Print the view to standard output."""
        return self._with(output="stdout")

    def with_file_output(self, outfile: str) -> "ProfileOptionBuilder":
        """Write the view as text to a file."""
        return self._with(output=f"file:outfile={outfile}")

    def with_timeline_output(self, timeline_file: str) -> "ProfileOptionBuilder":
        """Write a trace for chrome://tracing to a file.

        `_` and the number of the step are appended to the file's name.
        """
        return self._with(output=f"timeline:outfile={timeline_file}")

    def with_pprof_output(self, pprof_file: str) -> "ProfileOptionBuilder":
        """Write the code view to a file for pprof."""
        return self._with(output=f"pprof:outfile={pprof_file}")

    def order_by(self, attribute: str) -> "ProfileOptionBuilder":
        """Sort by name, or by a counter, largest first."""
        return self._with(order_by=attribute)

    def select(self, attributes: Iterable[str]) -> "ProfileOptionBuilder":
        """Choose the columns."""
        return self._with(select=attributes)

    def with_step(self, step: int) -> "ProfileOptionBuilder":
        """Show one traced step; -1 means the average of all."""
        return self._with(step=step)
