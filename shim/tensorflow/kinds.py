"""TensorFlow's kinds of spans: (name, role, weight), and what counting a step of each costs."""

from __future__ import annotations

from ...formats import layout

KINDS = layout.KINDS
_RUN_NS = 1000
#: Approximate cost of counting a step, by kind, in ns; 0 for spans that are never only counted.
COUNTED_NS = {
    **dict.fromkeys(layout.RUN_KINDS, _RUN_NS),
    **dict.fromkeys((layout.EPOCH, layout.FIT, layout.EVALUATE, layout.PREDICT), 0),
    **dict.fromkeys((layout.PARTIAL_RUN, layout.ACTIVITY), 0),
    **dict.fromkeys((layout.BATCH, layout.TEST_BATCH, layout.PREDICT_BATCH), 11000),
    layout.FUNCTION: 2000,
    layout.CALL: 6000,
    layout.EAGER: 9000,
}
