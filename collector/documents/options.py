"""The options of a view."""

from typing import Annotated, TypedDict

from ..tfviews.option_values import Share
from ..tfviews.options import MINIMA, Options
from .fields import fields

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
    lists = {
        name: list(getattr(options, name)) for name in OptionsDocument.__annotations__ if name.endswith("_regexes")
    }
    return fields(
        OptionsDocument,
        options,
        **{name: _minimum(getattr(options, name)) for name in MINIMA},
        **lists,
        max_depth=options.max_depth if options.max_depth < _UNLIMITED else None,
        select=sorted(options.select),
        output=str(options.output).rstrip(":"),
    )


def _minimum(value: int | Share) -> int | str:
    return f"{100 * value:g}%" if isinstance(value, Share) else value
