"""A view as the TF profiler's message, which `--exact-tf` prints."""

from typing import Annotated, Any, Literal

from ..query.engine import Answer
from .messages import message_document
from .view import ViewFields, view_fields


class ExactViewDocument(ViewFields):
    """A view as the TF profiler's message."""

    schema: Annotated[Literal["tfprof.exact-view/1"], "The format and its version."]
    profile: Annotated[
        dict[str, Any],
        "The view's GraphNodeProto (scope, graph) or MultiGraphNodeProto (op, code) of"
        " tensorflow/core/profiler/tfprof_output.proto, with all numbers and strings, even if 0 or empty.",
    ]


def exact_view_document(answer: Answer, notes: list[str], message: Any) -> ExactViewDocument:
    """Return a view as its ``message``; ``notes``: why it is empty or incomplete."""
    return {
        "schema": "tfprof.exact-view/1",
        **view_fields(answer),
        "notes": notes,
        "profile": message_document(message),
    }
