"""The removal of jobs."""

from collections.abc import Sequence
from typing import Annotated, Literal, TypedDict

from ..query.listing import Removable


class RmDocument(TypedDict):
    """The removed jobs."""

    schema: Annotated[Literal["tfprof.rm/1"], "The format and its version."]
    removed: Annotated[list[str], "The ids of the removed jobs."]
    bytes: Annotated[int, "The size of their files, bytes."]


def rm_document(removed: Sequence[Removable]) -> RmDocument:
    """Return the removed jobs."""
    return {
        "schema": "tfprof.rm/1",
        "removed": [job.listed_job.row.uid for job in removed],
        "bytes": sum(job.size for job in removed),
    }
