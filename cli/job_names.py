"""Shell completion of job names and ids."""

import re
from collections.abc import Iterator
from typing import Final

import click
from click.shell_completion import CompletionItem

from ..collector.errors import TfprofError
from ..collector.store import catalog
from ..collector.summaries.jobs import short_ids
from ..formats import runtime_dir

#: Maximum number of offered names and ids, the latest first.
LISTED_MAX: Final = 100
#: Names that are one word in every shell.
_ONE_WORD: Final = re.compile(r"[\w.@%+,/-]+", re.ASCII)


def complete_jobs(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the names and ids of jobs that begin with ``incomplete``; none without a store."""
    from ..collector.store.reader import LocalStore  # noqa: PLC0415  # only completion needs it here

    try:
        store = ctx.params.get("store") or runtime_dir.require_absolute(runtime_dir.default_store())
        infos = [job.info for job in LocalStore(store).jobs()]
    except TfprofError:
        return []
    return [item for item in _completions(infos) if item.value.startswith(incomplete)][:LISTED_MAX]


def _completions(infos: list[catalog.JobInfo]) -> Iterator[CompletionItem]:
    latest = infos[::-1]
    if latest:
        yield CompletionItem(catalog.LAST, help=f"{latest[0].name} ({latest[0].state})")
    for name in dict.fromkeys(info.name for info in latest if _ONE_WORD.fullmatch(info.name)):
        yield CompletionItem(name, help="the job of that name")
    ids = short_ids([info.hex for info in infos])
    for info in latest:
        yield CompletionItem(ids[info.hex], help=f"{info.name} ({info.state})")
