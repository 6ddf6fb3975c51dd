"""The job files (`job.json`), and the folders of a store."""

import fcntl
import json
import math
import os
import re
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

from ...formats import span_kinds
from ...formats.ids import hex_id
from ..errors import NoSuchJobError, StoreError
from . import durable, shared, store_files
from .schema import READABLE, STORE_VERSION

STORE_FILE: Final = "store.json"
JOB_FILE: Final = "job.json"
#: Tags that users gave the job. They have their own file, since the collector may replace the job
#: file at any time.
TAGS_FILE: Final = "tags.json"
#: Maximum number of characters of a tag.
TAG_LENGTH_MAX: Final = 100
RUNNING: Final = "running"
STALE: Final = "stale"
#: State of a job whose channel could not be read to its end.
LOST: Final = "lost"
#: States of jobs that may get more data: a new collector continues with a stale job.
MAY_CONTINUE: Final = frozenset({RUNNING, STALE})
#: State that is shown for a job that cannot be read. It is not stored.
DAMAGED: Final = "damaged"
#: State of a job that was imported from files of TensorFlow.
IMPORTED: Final = "imported"
#: Counters of lost data in a job file. A dropped trace also counts as a dropped record.
LOST_COUNTERS: Final = ("dropped_records", "dropped_spans", "never_stored")

#: Columns of `samples`. The job file holds the minimum and the maximum of each.
USAGE_COLUMNS: Final = ("t_ns", "cpu_user_s", "cpu_system_s", "rss_bytes")

_UID = re.compile(r"[0-9a-f]{16}")
#: Beginning of the name of a series of runs.
SERIES_PREFIX: Final = "repeat:"
#: Maximum of a number in a job file. Numbers of messages have 64 bits.
_NUMBER_MAX: Final = (1 << 64) - 1
#: Number of attempts to write a file. A collector that opens the job may take the temporary file
#: for a leftover, and remove it.
_TRIES: Final = 3


def integer_of(values: Mapping[str, Any], name: str) -> int:
    """Return the integer ``name`` of ``values``, 0 if there is none of at most 64 bits."""
    value = values.get(name)
    return value if isinstance(value, int) and abs(value) <= _NUMBER_MAX else 0


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
    usage: Mapping[str, Sequence[float]] | None = None
    traced: Mapping[str, int] | None = None

    @property
    def hex(self) -> str:
        """The uid in hexadecimal, as in folder names and on screen."""
        return hex_id(self.uid)

    @property
    def name(self) -> str:
        """The job's name, empty if it has none."""
        return str(self.identity.get("name") or "")

    @property
    def host(self) -> str:
        """The host that the job ran on, empty if unknown."""
        return str(self.identity.get("host") or "")

    @property
    def pid(self) -> int:
        """The job's process id, 0 if unknown."""
        return integer_of(self.identity, "pid")

    @property
    def started_ns(self) -> int:
        """When the job started (real time); when it was opened if that is unknown."""
        return integer_of(self.identity, "created_real_ns") or self.opened_ns

    @property
    def node(self) -> str | None:
        """The host of a job if it is not the collector's, else None."""
        return (self.host or "?") if "node" in self.identity else None

    @property
    def series(self) -> str:
        """The series of runs that the job belongs to (`tfprof-run --repeat`), empty without one.

        It is `repeat:ID`, or `repeat:ID:before` and `repeat:ID:after` for runs of two commands.
        """
        tags = self.identity.get("tags")
        tag = tags.get("repeat") if isinstance(tags, Mapping) else None
        return f"{SERIES_PREFIX}{tag}" if isinstance(tag, str) and tag else ""

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
    info = parse(store_files.read(path, store_files.JOB), str(path))
    if _UID.fullmatch(folder.name) and folder.name != info.hex:
        raise StoreError(f"{path} is damaged: it is that of job {info.hex}", "store-damaged")
    return info


def parse(data: bytes, place: str) -> JobInfo:
    """Return the content of a job file, ``data``; ``place``: where it is, for errors.

    StoreError if it is damaged or of an unreadable version.
    """
    document = _json(data, place)
    check_version(document.get("version"), place)
    document = {**_MISSING, **document}
    try:
        _check_values(document)
        uid = int(document["uid"], 16)
        acked = {int(about): last for about, last in document["acked"].items()}
        span_kinds.declare(document["identity"].get("kinds"))
        return JobInfo(uid=uid, **{name: document[name] for name in _TYPES} | {"acked": acked})
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise StoreError(f"{place} is damaged: {type(error).__name__} {error}", "store-damaged") from None


#: Type of each value in a job file, except the uid.
_TYPES: Final = {
    "state": str,
    "identity": dict,
    "counters": dict,
    "end": dict,
    "sealed": int,
    "total": int,
    "parts": dict,
    "rows": dict,
    "acked": dict,
    "opened_ns": int,
    "closed_ns": int | None,
    "collector": dict,
    "removed": dict,
    "usage": dict | None,
    "traced": dict | None,
}
#: Values of a job file that older collectors did not write.
_MISSING: Final[Mapping[str, Any]] = {"removed": {}, "usage": None, "traced": None}


def _check_values(document: Mapping[str, Any]) -> None:
    """Raise TypeError or ValueError unless the values of a job file have their types and ranges."""
    for name, kind in _TYPES.items():
        if not isinstance(document[name], kind):
            raise TypeError(f"in {name}")
    numbers = [number for name in ("rows", "acked", "removed", "traced") for number in (document[name] or {}).values()]
    numbers += [document[name] or 0 for name in ("sealed", "total", "opened_ns", "closed_ns")]
    for generations in document["parts"].values():
        if sorted(set(generations)) != generations:
            raise ValueError("in parts")
        numbers += generations
    if not all(type(number) is int and -1 <= number <= _NUMBER_MAX for number in numbers):
        raise ValueError("in a number")
    usage = document["usage"]
    if usage and not all(math.isfinite(bound) for name in USAGE_COLUMNS for bound in (usage[name][0], usage[name][1])):
        raise ValueError("in usage")


def save(folder: Path, info: JobInfo) -> None:
    """Replace the job file in ``folder``; after a StoreError the old one is still there."""
    with durable.store_errors(folder / JOB_FILE):
        durable.replace(folder / JOB_FILE, info.dump())
        durable.sync_folder(folder)


def last_write_ns(folder: Path) -> int:
    """Return the time of the last change of a file in ``folder``, 0 if there is none."""
    try:
        return max((path.lstat().st_mtime_ns for path in folder.iterdir()), default=0)
    except OSError:
        return 0


def tags(folder: Path) -> tuple[str, ...]:
    """Return the tags of the job in ``folder``; none if the file is missing or unreadable."""
    try:
        path = folder / TAGS_FILE
        texts = _json(store_files.read(path, store_files.TAGS), str(path)).get("tags")
    except (FileNotFoundError, StoreError):
        return ()
    return tuple(text for text in texts if isinstance(text, str)) if isinstance(texts, list) else ()


def change_tags(folder: Path, change: Callable[[tuple[str, ...]], Sequence[str]]) -> tuple[str, ...]:
    """Replace the tags of the job in ``folder`` with the result of ``change``, and return it.

    ``change`` gets the current tags. Concurrent changes wait for each other. StoreError if the file
    cannot be written, NoSuchJobError if the job was removed.
    """
    try:
        descriptor = durable.open_folder(folder)
    except OSError:
        raise NoSuchJobError(f"the job {folder.name} is not in the store any more") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        texts = tuple(change(tags(folder)))
        save_tags(folder, texts)
    finally:
        os.close(descriptor)
    return texts


def save_tags(folder: Path, texts: Sequence[str]) -> None:
    """Replace the tags of the job in ``folder``, which no other process changes meanwhile."""
    path, data = folder / TAGS_FILE, json.dumps({"tags": texts}).encode()
    with durable.store_errors(path):
        for _ in range(_TRIES):
            try:
                durable.replace(path, data)
            except FileNotFoundError:  # a collector that opens the job removes temporary files
                continue
            durable.sync_folder(path.parent)
            return
    raise NoSuchJobError(f"the job {path.parent.name} is not in the store any more")


def _in_roots(store: Path, *names: str) -> Path:
    """Return the first folder of this name in the roots of ``store``. It may not exist."""
    paths = [root.joinpath(*names) for root in shared.roots(store)]
    return next((path for path in paths if path.is_dir()), [*paths, store.joinpath(*names)][0])


def jobs_folder(store: Path) -> Path:
    """Return the folder with one subfolder per job, of a store that is not shared."""
    return store / "jobs"


def job_folder(store: Path, uid: int) -> Path:
    """Return the folder of job ``uid``."""
    return _in_roots(store, "jobs", hex_id(uid))


def host_folder(store: Path, host: str) -> Path:
    """Return the folder of the samples of ``host``."""
    return _in_roots(store, "hosts", file_name(host))


def lock_file(store: Path, host: str) -> Path:
    """Return the lock of the collector of ``host``, of a store that is not shared."""
    return store / "collectors" / f"{file_name(host)}.lock"


def file_name(host: str) -> str:
    """Return ``host`` as a file name that cannot leave its folder."""
    return re.sub(r"^\.|\.$", "%2E", quote(host, safe="", errors="surrogatepass")).replace("~", "%7E")[:200] or "%"


def make(store: Path) -> None:
    """Create the store unless it exists.

    A store of an older readable version is raised to STORE_VERSION. StoreError if the version is
    not readable, or if the store cannot be written.
    """
    _check_local(str(store))
    if shared.is_shared(store):
        raise StoreError(f"{store} is shared, and only its service writes it: use another --store", "store-foreign")
    durable.make_folder(store, may_be_link=True)
    for folder in (jobs_folder(store), store / "hosts", store / "collectors"):
        durable.make_folder(folder)
    _set_version(store)
    check(store)


def make_shared(store: Path, readers: int | None) -> None:
    """Create a shared store, which the members of the group ``readers`` may read, unless it exists.

    StoreError as for ``make``, and ``store-acl`` if the filesystem has no access control lists.
    """
    durable.make_folder(store, may_be_link=True)
    if jobs_folder(store).exists():
        raise StoreError(f"{store} is the store of one user: use another --store", "store-foreign")
    _set_version(store)
    with durable.store_errors(store):
        (store / STORE_FILE).chmod(shared.LEGIBLE_FILE)
        store.chmod(shared.PASSABLE_FOLDER)
    shared.share(store, readers)


def _set_version(store: Path) -> None:
    path = store / STORE_FILE
    if not path.exists() or check(store) != STORE_VERSION:
        with durable.store_errors(path):
            durable.replace(path, json.dumps({"version": STORE_VERSION}).encode())
            durable.sync_folder(store)


def check(store: Path) -> int:
    """Return the version of ``store``; StoreError unless it is a store of a readable version."""
    _check_local(str(store))
    path = store / STORE_FILE
    try:
        if not stat.S_ISDIR(store.stat().st_mode):
            raise StoreError(f"{store} is not a tfprof store: it is not a folder", "store-missing")
        document = _json(store_files.read(path, store_files.STORE), str(path))
    except FileNotFoundError:
        raise StoreError(f"{store} is not a tfprof store: no job was profiled into it yet", "store-missing") from None
    except OSError as error:
        read_error = durable.unreadable_error(store, error)
        no_store = StoreError(f"{store} is not a tfprof store: {error.strerror}", "store-missing")
        raise (read_error if read_error.slug == "store-unreadable" else no_store) from None
    return check_version(document.get("version"), str(path))


def _check_local(store: str) -> None:
    """Raise StoreError if ``store`` is a collector on another host."""
    if not store.startswith("tcp:/"):  # a Path has one of the two slashes
        return
    place = store[len("tcp:/") :].strip("/")
    text = f"jobs of this host are stored by the collector at {place}: ssh {place.rpartition(':')[0]} tfprof ..."
    raise StoreError(f"{text} (--store DIR reads a local store)", "store-remote")


def folders(store: Path) -> list[Path]:
    """Return the folders of all jobs, readable or not."""
    return sorted((folder for root in shared.roots(store) for folder in _folders(root)), key=lambda folder: folder.name)


def _folders(root: Path) -> list[Path]:
    try:
        return [path for path in jobs_folder(root).iterdir() if _UID.fullmatch(path.name)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise durable.unreadable_error(jobs_folder(root), error) from None


def hosts(store: Path) -> list[str]:
    """Return the names of the hosts that have a folder."""
    return sorted({unquote(path.name) for path in host_folders(store)})


def host_folders(store: Path) -> list[Path]:
    """Return the folders of all hosts."""
    folders = [root / "hosts" for root in shared.roots(store)]
    return sorted(path for folder in folders if folder.is_dir() for path in folder.iterdir() if path.name[0] != ".")


def with_stale_state(info: JobInfo, host: str, holder: Mapping[str, Any] | None) -> JobInfo:
    """Return ``info``, with state `stale` if the job is running but its collector has ended.

    ``holder``: the holder of the lock of ``host``'s collector, None if nobody holds it. The jobs of
    other hosts stay unchanged.
    """
    if info.state != RUNNING or info.collector.get("host") != host:
        return info
    alive = holder is not None and holder.get("id") == info.collector.get("id")
    return info if alive else replace(info, state=STALE)


def _json(data: bytes, place: str) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise StoreError(f"{place} is damaged: it is not JSON", "store-damaged") from None
    if not isinstance(document, dict):
        raise StoreError(f"{place} is damaged: it is not a JSON object", "store-damaged")
    return document


def check_version(version: object, place: str) -> int:
    """Return ``version``, that of a store or job file; StoreError unless it is readable."""
    if type(version) is not int or version not in READABLE:
        versions = " and ".join(map(str, sorted(READABLE)))
        message = f"{place} has store version {version}, and this tfprof reads versions {versions}"
        raise StoreError(f"{message}: use the tfprof that wrote it, or another --store", "store-version")
    return version
