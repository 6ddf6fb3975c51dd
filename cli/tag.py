"""`tfprof tag`: adds and removes tags of a job."""

import click

from ..collector.documents.tags import tag_document
from ..collector.errors import UsageError
from ..collector.job_changes import service_of
from ..collector.store.catalog import TAG_LENGTH_MAX
from ..collector.store.opening import open_reader
from ..commands.streams import note, print_lines
from .command import job_argument, json_option, print_json, store_option
from .values import Text


def _checked(text: str) -> str:
    if len(text) > TAG_LENGTH_MAX or not text.isprintable():
        raise ValueError(f"a tag has at most {TAG_LENGTH_MAX} printable characters")
    return text.strip()


@click.command()
@job_argument
@click.argument("texts", nargs=-1, type=Text(_checked), metavar="[TEXT]...")
@click.option("--remove", is_flag=True, help="Remove the tags TEXT; without TEXT all tags.")
@json_option
@store_option
def tag(job: str, store: str, texts: tuple[str, ...], *, remove: bool, as_json: bool) -> None:
    """Add the tags TEXT to JOB, which may be running or ended. Without TEXT, print the job's tags.

    Each TEXT is one tag. `tfprof jobs` shows tags.
    """
    job_reader = open_reader(store).job(job)
    if remove or texts:

        def change(old_tags: tuple[str, ...]) -> tuple[str, ...]:
            if not remove:
                return tuple(dict.fromkeys((*old_tags, *texts)))
            missing = [text for text in texts if text not in old_tags]
            if missing:
                raise UsageError(f"the job has no tag {missing[0]!r}; it has: {', '.join(old_tags) or 'none'}")
            return tuple(text for text in old_tags if texts and text not in texts)

        service = service_of(store)
        tags = job_reader.change_tags(change) if service is None else service.change_tags(job_reader, change)
    else:
        tags = job_reader.tags()
    if as_json:
        print_json(tag_document(job_reader, tags))
    else:
        print_lines(tags)
        if not tags:
            note("no tags")
