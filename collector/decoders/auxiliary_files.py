"""The files of TensorFlow and Keras that make variables which belong to no model."""

import re
from functools import lru_cache
from typing import Final

_TENSORFLOW: Final = "tensorflow(_core)?/python"
#: Optimizers, their slots, averages of variables, scales of losses, metrics.
_OF_TENSORFLOW: Final = (
    "training/optimizer",
    "training/slot_creator",
    "training/moving_averages",
    "training/experimental/loss_scale",
    "ops/metrics_impl",
)
_KERAS: Final = (f"{_TENSORFLOW}/keras", "keras", "keras/src", "tf_keras/src")
_OF_KERAS: Final = (
    "optimizers",
    "optimizers/optimizer",
    "optimizer_v2/optimizer_v2",
    "optimizers/optimizer_v2/optimizer_v2",
    "optimizers/legacy/optimizer_v2",
    "mixed_precision/loss_scale_optimizer",
    "metrics",
    "metrics/base_metric",
)
_PATTERN: Final = re.compile(
    rf"/(({_TENSORFLOW})/({'|'.join(_OF_TENSORFLOW)})|({'|'.join(_KERAS)})/({'|'.join(_OF_KERAS)}))(/__init__)?\.py\Z"
)


@lru_cache(4096)
def is_auxiliary(file: str) -> bool:
    """Return whether variables made in ``file`` belong to an optimizer, an average or a metric."""
    return _PATTERN.search(file) is not None
