"""The counter by which rows are sorted, and to which shares refer."""

from typing import Final

from .options import Options

#: Counters that are means over the steps, by their names in `-select`.
PER_STEP: Final = (
    "micros",
    "accelerator_micros",
    "cpu_micros",
    "float_ops",
    "bytes",
    "peak_bytes",
    "residual_bytes",
    "output_bytes",
)
COUNTERS: Final = (*PER_STEP, "params")


def primary_counter(options: Options) -> str:
    """Return the counter in ``-order_by``, else the first selected one, else the time."""
    if "order_by" in options.explicit and options.order_by in COUNTERS:
        return options.order_by
    return next((name for name in COUNTERS if name in options.select), "micros")
