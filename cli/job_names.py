"""Job names on command lines: whether a word is one, and their shell completion."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Final

import click
from click.shell_completion import CompletionItem

from ..collector.errors import NoSuchJobError, TfprofError
from ..collector.store import catalog
from ..collector.store.selectors import LAST, matching, short_ids
from ..formats import runtime_dir

#: Maximum number of offered names and ids, the latest first.
LISTED_MAX: Final = 100
#: Names that are one word in every shell.
_ONE_WORD: Final = re.compile(r"[\w.@%+,/-]+", re.ASCII)


def is_job(arguments: Sequence[str]) -> bool:
    """Return whether the first of ``arguments`` selects jobs; the others may contain `--store`."""
    from ..collector.store.opening import absolute, open_reader  # noqa: PLC0415  # few command lines need it here

    word, *options = arguments
    stores = [value for name, value in pairwise(options) if name == "--store"]
    stores += [option.partition("=")[2] for option in options if option.startswith("--store=")]
    try:
        store = open_reader(absolute(stores[0]) if stores else runtime_dir.default_store())
        return bool(store.job(word))
    except NoSuchJobError:
        return bool(matching([job.info for job in store.jobs()], word))
    except TfprofError:
        return False


def short_id(uid: str, address: str) -> str:
    """Return the start of ``uid`` that names a job in the store at ``address``, if only soon."""
    from ..collector.store.opening import open_reader  # noqa: PLC0415  # few command lines need it here

    known_ids: list[str] = []
    with suppress(TfprofError):  # the store may not exist yet
        known_ids = [job.info.hex for job in open_reader(address).jobs()]
    return short_ids(list({*known_ids, uid}))[uid]


def complete_jobs(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the names and ids of jobs that begin with ``incomplete``; none without a store."""
    return [item for item in _completions(_infos(ctx)) if item.value.startswith(incomplete)][:LISTED_MAX]


def complete_names(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the names of jobs that begin with ``incomplete``; none without a store."""
    return [item for item in _names(_infos(ctx)) if item.value.startswith(incomplete)][:LISTED_MAX]


def _infos(ctx: click.Context) -> list[catalog.JobInfo]:
    """Return the jobs of the store that the command line names; none if it cannot be read."""
    from ..collector.store.opening import open_reader  # noqa: PLC0415  # only completion needs it here

    try:
        store = ctx.params.get("store") or runtime_dir.require_absolute(runtime_dir.default_store())
        return [job.info for job in open_reader(store).jobs()]
    except TfprofError:
        return []


def _completions(infos: list[catalog.JobInfo]) -> Iterator[CompletionItem]:
    latest = infos[::-1]
    if latest:
        yield CompletionItem(LAST, help=f"{latest[0].name} ({latest[0].state})")
    yield from _names(infos)
    ids = short_ids([info.hex for info in infos])
    for info in latest:
        yield CompletionItem(ids[info.hex], help=f"{info.name} ({info.state})")


def _names(infos: list[catalog.JobInfo]) -> Iterator[CompletionItem]:
    for name in dict.fromkeys(info.name for info in infos[::-1] if _ONE_WORD.fullmatch(info.name)):
        yield CompletionItem(name, help="the newest job of that name")
