"""The tags of a job."""

from collections.abc import Iterable
from typing import Annotated, Literal, TypedDict

from ..store.protocols import JobReader


class TagDocument(TypedDict):
    """The tags of a job."""

    schema: Annotated[Literal["tfprof.tag/1"], "The format and its version."]
    job: Annotated[str, "The id of the job."]
    tags: Annotated[list[str], "Its tags, after the change if there is one."]


def tag_document(job: JobReader, tags: Iterable[str]) -> TagDocument:
    """Return the tags of a job."""
    return {"schema": "tfprof.tag/1", "job": job.info.hex, "tags": list(tags)}
