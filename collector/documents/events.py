"""Events of a job: what was refused, lost or cannot be recorded."""

from typing import Annotated, TypedDict


class EventDocument(TypedDict):
    """An event that occurred several times."""

    slug: Annotated[str, "The kind of event (docs/errors.md)."]
    text: Annotated[str, "What happened, the last time."]
    line: Annotated[str, "What happened, how often or how much was lost, and the slug."]
    count: Annotated[int, "How often, or how many entries were lost."]
    first_ns: Annotated[int, "The first time, ns since 1970."]
    last_ns: Annotated[int, "The last time, ns since 1970."]
