"""Changes of stored jobs by their user, who can read the files of a shared store only."""

from collections.abc import Mapping
from typing import Any, Final

from ...formats.ids import hex_id
from ..errors import FormatError, NoSuchJobError
from ..store import catalog, retention
from ..store.writer import LocalStoreWriter
from .jobs import OpenJobs

#: Maximum number of tags of a job.
TAGS_MAX: Final = 1_000


class ChangeError(FormatError):
    """A change that cannot be made."""


def change(store: LocalStoreWriter, jobs: OpenJobs, uid: int, values: Mapping[str, Any]) -> None:
    """Remove the stored job ``uid``, or replace its tags, as ``values`` say (docs/wire.md).

    ChangeError or ForeignJobError if that is refused, StoreError if the store cannot be written.
    """
    jobs.check_owner(uid)
    folder = catalog.job_folder(store.path, uid)
    if not folder.is_dir():
        raise ChangeError(f"the job {hex_id(uid)} is not in the store any more", NoSuchJobError.slug)
    if values.get("remove") is True:
        if uid in jobs.open:
            raise ChangeError(f"job {hex_id(uid)} is running: it can be removed when it has ended", "job-running")
        store.release(uid)
        retention.remove(store.path, uid)
        return
    before, after = (_tags(values.get(name)) for name in ("before", "tags"))
    if catalog.tags(folder) != before:
        raise ChangeError("the tags have changed meanwhile", "tags-changed")
    catalog.save_tags(folder, after)  # without a lock: readers can hold it, and this process alone writes


def _tags(values: object) -> tuple[str, ...]:
    """Return ``values`` as tags; FormatError if they are invalid."""
    if not isinstance(values, list) or len(values) > TAGS_MAX:
        raise ChangeError("a change without a list of tags, or with too many")
    if not all(isinstance(text, str) and len(text) <= catalog.TAG_LENGTH_MAX and text.isprintable() for text in values):
        raise ChangeError("a change with a text that is no tag")
    return tuple(values)
