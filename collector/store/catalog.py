"""The job files (`job.json`), and the selectors that name jobs on a command line."""

import fcntl
import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

from ...formats.ids import hex_id
from ..errors import NoSuchJobError, StoreError
from . import durable
from .schema import READABLE, STORE_VERSION

STORE_FILE: Final = "store.json"
JOB_FILE: Final = "job.json"
#: Tags that users gave the job. They have their own file, since the collector may replace the job
#: file at any time.
TAGS_FILE: Final = "tags.json"
RUNNING: Final = "running"
STALE: Final = "stale"
#: States of jobs that may get more data: a new collector continues with a stale job.
MAY_CONTINUE: Final = frozenset({RUNNING, STALE})
#: State of a job that was imported from files of TensorFlow.
IMPORTED: Final = "imported"
#: Counters of lost data in a job file; a dropped trace is also a dropped record.
LOST_COUNTERS: Final = ("dropped_records", "dropped_spans", "never_stored")
#: Selector of the job that was opened last.
LAST: Final = "last"

_UID = re.compile(r"[0-9a-f]{16}")
_PREFIX = re.compile(r"[0-9a-f]{1,16}")
#: Maximum number of jobs that an error lists.
_LISTED_MAX = 8
#: Attempts to write a file. A collector that opens the job may remove the temporary file as a
#: leftover.
_TRIES: Final = 3


@dataclass(frozen=True)
class JobInfo:
    """The content of a job file, `job.json` (docs/store.md)."""

    uid: int
    state: str = RUNNING
    identity: Mapping[str, Any] = field(default_factory=dict)
    counters: Mapping[str, Any] = field(default_factory=dict)
    end: Mapping[str, Any] = field(default_factory=dict)
    sealed: int = -1
    total: int = -1
    parts: Mapping[str, Sequence[int]] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    acked: Mapping[int, int] = field(default_factory=dict)
    opened_ns: int = field(default_factory=time.time_ns)
    closed_ns: int | None = None
    collector: Mapping[str, Any] = field(default_factory=dict)
    removed: Mapping[str, int] = field(default_factory=dict)

    @property
    def hex(self) -> str:
        """The uid in hexadecimal, as in folder names and on screen."""
        return hex_id(self.uid)

    @property
    def name(self) -> str:
        """The job's name, empty if it has none."""
        return str(self.identity.get("name") or "")

    @property
    def has_input_slots(self) -> bool:
        """Whether the job records which output of its source each input uses.

        Only imported jobs may have this.
        """
        return bool(self.identity.get("slots"))

    def dump(self) -> bytes:
        """Return the text of `job.json`."""
        return json.dumps({**asdict(self), "version": STORE_VERSION, "uid": self.hex}, indent=1).encode()


def load(folder: Path) -> JobInfo:
    """Return the content of the job file in ``folder``.

    FileNotFoundError if there is none, StoreError if it is damaged or of an unreadable version.
    """
    path = folder / JOB_FILE
    document = _json(path)
    _checked_version(document, path)
    try:
        return JobInfo(
            uid=int(document["uid"], 16),
            acked={int(about): int(last) for about, last in document["acked"].items()},
            removed=document.get("removed", {}),  # older collectors removed no rows
            **{name: document[name] for name in _PLAIN_FIELDS},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StoreError(f"{path} is damaged: {type(error).__name__} {error}", "store-damaged") from None


_PLAIN_FIELDS = tuple(name for name in JobInfo.__dataclass_fields__ if name not in ("uid", "acked", "removed"))


def save(folder: Path, info: JobInfo) -> None:
    """Replace the job file in ``folder``; after a StoreError the old one is still there."""
    with durable.store_errors(folder / JOB_FILE):
        durable.replace(folder / JOB_FILE, info.dump())
        durable.sync_folder(folder)


def tags(folder: Path) -> tuple[str, ...]:
    """Return the tags of the job in ``folder``; none if the file is missing or unreadable."""
    try:
        texts = _json(folder / TAGS_FILE).get("tags")
    except (FileNotFoundError, StoreError):
        return ()
    return tuple(text for text in texts if isinstance(text, str)) if isinstance(texts, list) else ()


def change_tags(folder: Path, change: Callable[[tuple[str, ...]], Sequence[str]]) -> tuple[str, ...]:
    """Replace the tags of the job in ``folder`` with the result of ``change``, and return it.

    ``change`` gets the current tags. Concurrent changes wait for each other. StoreError if the file
    cannot be written, NoSuchJobError if the job was removed.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        raise NoSuchJobError(f"the job {folder.name} is not in the store any more") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        texts = tuple(change(tags(folder)))
        _save_tags(folder / TAGS_FILE, json.dumps({"tags": texts}).encode())
    finally:
        os.close(descriptor)
    return texts


def _save_tags(path: Path, data: bytes) -> None:
    with durable.store_errors(path):
        for _ in range(_TRIES):
            try:
                durable.replace(path, data)
            except FileNotFoundError:  # a collector that opens the job removes temporary files
                continue
            durable.sync_folder(path.parent)
            return
    raise NoSuchJobError(f"the job {path.parent.name} is not in the store any more")


def jobs_folder(store: Path) -> Path:
    """Return the folder with one subfolder per job."""
    return store / "jobs"


def job_folder(store: Path, uid: int) -> Path:
    """Return the folder of job ``uid``."""
    return jobs_folder(store) / hex_id(uid)


def host_folder(store: Path, host: str) -> Path:
    """Return the folder of the samples of ``host``."""
    return store / "hosts" / file_name(host)


def lock_file(store: Path, host: str) -> Path:
    """Return the lock of the collector of ``host``."""
    return store / "collectors" / f"{file_name(host)}.lock"


def file_name(host: str) -> str:
    """Return ``host`` as a file name that cannot leave its folder."""
    return re.sub(r"^\.|\.$", "%2E", quote(host, safe="")).replace("~", "%7E")[:200] or "%"


def make(store: Path) -> None:
    """Create the store unless it exists.

    A store of an older readable version is raised to STORE_VERSION. StoreError if the version is
    not readable, or if the store cannot be written.
    """
    durable.make_folder(store, may_be_link=True)
    for folder in (jobs_folder(store), store / "hosts", store / "collectors"):
        durable.make_folder(folder)
    path = store / STORE_FILE
    if not path.exists() or check(store) != STORE_VERSION:
        with durable.store_errors(path):
            durable.replace(path, json.dumps({"version": STORE_VERSION}).encode())
            durable.sync_folder(store)
    check(store)


def check(store: Path) -> int:
    """Return the version of ``store``; StoreError unless it is a store of a readable version."""
    path = store / STORE_FILE
    try:
        if not stat.S_ISDIR(store.stat().st_mode):
            raise StoreError(f"{store} is not a tfprof store: it is not a folder", "store-missing")
        document = _json(path)
    except FileNotFoundError:
        raise StoreError(f"{store} is not a tfprof store: no job was profiled into it yet", "store-missing") from None
    except OSError as error:
        read_error = durable.unreadable_error(store, error)
        no_store = StoreError(f"{store} is not a tfprof store: {error.strerror}", "store-missing")
        raise (read_error if read_error.slug == "store-unreadable" else no_store) from None
    return _checked_version(document, path)


def folders(store: Path) -> list[Path]:
    """Return the folders of all jobs, readable or not."""
    try:
        return sorted(path for path in jobs_folder(store).iterdir() if _UID.fullmatch(path.name))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise durable.unreadable_error(jobs_folder(store), error) from None


def hosts(store: Path) -> list[str]:
    """Return the names of the hosts that have a folder."""
    return [unquote(path.name) for path in host_folders(store)]


def host_folders(store: Path) -> list[Path]:
    """Return the folders of all hosts."""
    folder = store / "hosts"
    return sorted(path for path in folder.iterdir() if path.name[0] != ".") if folder.is_dir() else []


def select(infos: Iterable[JobInfo], selector: str) -> JobInfo:
    """Return the job that ``selector`` means; NoSuchJobError if it means none or several.

    A selector is the start of a uid, a job's name, the id of a launch, or ``last`` for the job that
    was opened last. If several jobs match and exactly one of them is running, that job is meant.
    """
    jobs = sorted(infos, key=lambda info: info.opened_ns)
    if not jobs:
        raise NoSuchJobError("no job was profiled into this store yet")
    matches = matching(jobs, selector)
    if selector == LAST:
        return matches[0]
    running = [info for info in matches if info.state == RUNNING]
    candidates = matches if len(matches) == 1 else running
    if len(candidates) == 1:
        return candidates[0]
    if not matches:
        raise NoSuchJobError(f"no job {selector!r}: `tfprof jobs` lists them")
    job_list = ", ".join(f"{info.hex} {info.name} ({info.state})".replace("  ", " ") for info in matches[-_LISTED_MAX:])
    raise NoSuchJobError(f"{selector!r} means {len(matches)} jobs: {job_list}")


def matching(infos: Iterable[JobInfo], selector: str) -> list[JobInfo]:
    """Return all jobs that match ``selector`` (see ``select``), in the order of their opening."""
    jobs = sorted(infos, key=lambda info: info.opened_ns)
    return jobs[-1:] if selector == LAST else [info for info in jobs if _matches(info, selector)]


def with_stale_state(info: JobInfo, host: str, holder: Mapping[str, Any] | None) -> JobInfo:
    """Return ``info``, with state `stale` if the job is running but its collector has ended.

    ``holder``: the holder of the lock of ``host``'s collector, None if nobody holds it. The jobs of
    other hosts stay unchanged.
    """
    if info.state != RUNNING or info.collector.get("host") != host:
        return info
    alive = holder is not None and holder.get("id") == info.collector.get("id")
    return info if alive else replace(info, state=STALE)


def _matches(info: JobInfo, selector: str) -> bool:
    lower = selector.lower()
    if _PREFIX.fullmatch(lower) and info.hex.startswith(lower):
        return True
    return selector == info.name or (bool(_UID.fullmatch(lower)) and lower == info.identity.get("launch"))


def _json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(durable.read(path))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise durable.unreadable_error(path, error) from None
    except (ValueError, RecursionError):
        raise StoreError(f"{path} is damaged: it is not JSON", "store-damaged") from None
    if not isinstance(document, dict):
        raise StoreError(f"{path} is damaged: it is not a JSON object", "store-damaged")
    return document


def _checked_version(document: Mapping[str, Any], path: Path) -> int:
    version = document.get("version")
    if type(version) is not int or version not in READABLE:
        versions = " and ".join(map(str, sorted(READABLE)))
        message = f"{path} has store version {version}, and this tfprof reads versions {versions}"
        raise StoreError(f"{message}: use the tfprof that wrote it, or another --store", "store-version")
    return version
