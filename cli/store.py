"""`tfprof store`: copies jobs between stores, and creates the tables of a store in ClickHouse."""

from collections.abc import Iterator, Sequence

import click

from ..collector.errors import StoreError, UsageError
from ..collector.store.catalog import MAY_CONTINUE, JobInfo
from ..collector.store.copying import Copied
from ..collector.store.opening import absolute, create, open_reader, open_target, scheme_of
from ..collector.store.protocols import JobReader, StoreReader
from ..commands.streams import note, print_lines
from .values import NON_EMPTY, WHOLE

_ADDRESS = "DIR|URL"


@click.group(no_args_is_help=False)
def store() -> None:
    """Copy jobs between stores, or create the tables of a store in ClickHouse."""


@store.command("init")
@click.argument("url", type=NON_EMPTY)
@click.option("--keep-days", type=WHOLE, default=0, metavar="N", help="Remove a job N days after its start (0: never).")
@click.option(
    "--admins",
    metavar="NAME,…",
    type=NON_EMPTY,
    help="Users and roles that see all jobs; others see the jobs of which they are the owner.",
)
@click.option(
    "--cluster",
    metavar="NAME",
    type=NON_EMPTY,
    help="Share the jobs among the servers of this cluster (default: all on the server of URL).",
)
@click.option("--print", "only_print", is_flag=True, help="Print the statements, and run none.")
def init(url: str, keep_days: int, admins: str | None, cluster: str | None, *, only_print: bool) -> None:
    """Create the tables of a store in ClickHouse.

    URL is clickhouse://HOST/DATABASE; the database is created, too. What is there already stays as
    it is.
    """
    if not scheme_of(url):
        raise UsageError(f"{url!r} is not a URL: a folder needs no tables")
    lines = create(url, keep_days, admins.split(",") if admins else (), cluster or "", only_print=only_print)
    print_lines([f"{line};" for line in lines] if only_print else [f"{url} is ready"])


@store.command("copy")
@click.argument("source", metavar=_ADDRESS, type=NON_EMPTY)
@click.argument("target", metavar=_ADDRESS, type=NON_EMPTY)
@click.option("--job", "selectors", multiple=True, metavar="JOB", type=NON_EMPTY, help="Only JOB (default: all jobs).")
@click.option("--running", "with_running", is_flag=True, help="To ClickHouse: also what is stored of running jobs.")
def copy(source: str, target: str, selectors: Sequence[str], *, with_running: bool) -> int:
    """Copy the ended jobs of a store into another.

    A store is a folder, or clickhouse://HOST/DATABASE.

    A job that is there already is left out, so the command can be repeated after an interruption.
    The setting `copy-to` lets the collector copy all jobs while they run.
    """
    reader, writer = open_reader(absolute(source)), open_target(absolute(target))
    if with_running and not writer.takes_running:
        raise UsageError("--running needs a store in ClickHouse: a folder gets a job when it has ended")
    jobs = _chosen(reader, selectors)
    running = [job.info for job in jobs if not with_running and job.info.state in MAY_CONTINUE]
    known = [job.info for job in jobs if writer.has(job.info.uid)]
    left_out = {info.uid for info in (*running, *known)}
    expired = [job.info for job in jobs if job.info.uid not in left_out and job.info.opened_ns < writer.oldest_ns]
    left_out |= {info.uid for info in expired}
    copied = failed = 0
    for job in jobs:
        if job.info.uid not in left_out:
            try:
                print_lines([_line(job, writer.add(job))])
                copied += 1
            except StoreError as error:
                if not selectors and error.slug == "store-damaged":
                    note(str(error))
                    failed += 1
                    continue
                raise
    damaged = () if selectors else reader.read()[1]
    for damage in damaged:
        note(str(damage))
    print_lines([f"{copied} of {len(jobs)} jobs copied to {writer.address}", *_reasons(known, running, expired)])
    return int(bool(failed or damaged))


def _chosen(reader: StoreReader, selectors: Sequence[str]) -> list[JobReader]:
    if not selectors:
        return list(reader.jobs())
    return list({job.info.uid: job for job in map(reader.job, selectors)}.values())


def _line(job: JobReader, copied: Copied) -> str:
    """Return the line about a job that was copied."""
    earlier = f", {copied.earlier:,} of them were there" if copied.earlier else ""
    return f"{job.info.hex} {job.info.name}: {copied.rows:,} rows{earlier}"


def _reasons(known: Sequence[JobInfo], running: Sequence[JobInfo], expired: Sequence[JobInfo]) -> Iterator[str]:
    """Yield why jobs were left out."""
    if known:
        yield f"{len(known)} there already"
    for why, infos in (("may still run", running), ("are older than the target keeps jobs", expired)):
        if infos:
            yield f"{len(infos)} left out, for they {why}: {', '.join(info.hex for info in infos)}"
