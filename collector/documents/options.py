"""The options of a view."""

from typing import Annotated, TypedDict

from ..tfviews.option_values import Share
from ..tfviews.options import Options

#: Depths from here on are no limit: no tree or table is that deep.
_UNLIMITED = 1 << 62


class OptionsDocument(TypedDict):
    """The options of a view, as given or by default; docs/commands.md explains them."""

    max_depth: Annotated[int | None, "The number of levels; null for all."]
    min_bytes: Annotated[int | str, "-min_bytes, bytes, or a share of the total, such as 10%."]
    min_peak_bytes: Annotated[int | str, "-min_peak_bytes, bytes, or a share of the total, such as 10%."]
    min_residual_bytes: Annotated[int | str, "-min_residual_bytes, bytes, or a share of the total, such as 10%."]
    min_output_bytes: Annotated[int | str, "-min_output_bytes, bytes, or a share of the total, such as 10%."]
    min_micros: Annotated[int | str, "-min_micros, µs, or a share of the total, such as 10%."]
    min_accelerator_micros: Annotated[int | str, "-min_accelerator_micros, µs, or a share of the total, such as 10%."]
    min_cpu_micros: Annotated[int | str, "-min_cpu_micros, µs, or a share of the total, such as 10%."]
    min_params: Annotated[int | str, "-min_params, or a share of the total, such as 10%."]
    min_float_ops: Annotated[int | str, "-min_float_ops, or a share of the total, such as 10%."]
    min_occurrence: Annotated[int, "-min_occurrence."]
    step: Annotated[int, "-step; -1 for all steps."]
    order_by: Annotated[str, "What rows are sorted by."]
    account_type_regexes: Annotated[list[str], "-account_type_regexes."]
    start_name_regexes: Annotated[list[str], "-start_name_regexes."]
    trim_name_regexes: Annotated[list[str], "-trim_name_regexes."]
    show_name_regexes: Annotated[list[str], "-show_name_regexes."]
    hide_name_regexes: Annotated[list[str], "-hide_name_regexes."]
    account_displayed_op_only: Annotated[bool, "-account_displayed_op_only."]
    select: Annotated[list[str], "-select."]
    output: Annotated[str, "-output."]


def options_document(options: Options) -> OptionsDocument:
    """Return options by name."""
    return {
        "max_depth": options.max_depth if options.max_depth < _UNLIMITED else None,
        "min_bytes": _minimum(options.min_bytes),
        "min_peak_bytes": _minimum(options.min_peak_bytes),
        "min_residual_bytes": _minimum(options.min_residual_bytes),
        "min_output_bytes": _minimum(options.min_output_bytes),
        "min_micros": _minimum(options.min_micros),
        "min_accelerator_micros": _minimum(options.min_accelerator_micros),
        "min_cpu_micros": _minimum(options.min_cpu_micros),
        "min_params": _minimum(options.min_params),
        "min_float_ops": _minimum(options.min_float_ops),
        "min_occurrence": options.min_occurrence,
        "step": options.step,
        "order_by": options.order_by,
        "account_type_regexes": list(options.account_type_regexes),
        "start_name_regexes": list(options.start_name_regexes),
        "trim_name_regexes": list(options.trim_name_regexes),
        "show_name_regexes": list(options.show_name_regexes),
        "hide_name_regexes": list(options.hide_name_regexes),
        "account_displayed_op_only": options.account_displayed_op_only,
        "select": sorted(options.select),
        "output": str(options.output).rstrip(":"),
    }


def _minimum(value: int | Share) -> int | str:
    return f"{100 * value:g}%" if isinstance(value, Share) else value
