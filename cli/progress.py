"""Shows on a terminal which file is written, if that takes more than a second."""

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from ..commands.streams import clean

#: Writing that takes less shows nothing (seconds).
DELAY_S: Final = 1.0


@contextmanager
def progress() -> Iterator[Callable[[str, Iterable[bytes]], Iterable[bytes]]]:
    """Provide a function that yields the content of a file and counts its bytes.

    Name, size and time of the file are shown on standard error if that is a terminal, until the
    block ends.
    """
    if not (sys.stderr is not None and sys.stderr.isatty()):
        yield lambda _path, content: content
        return
    from rich.console import Console  # noqa: PLC0415  # only a terminal needs it
    from rich.progress import FileSizeColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), FileSizeColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    timer = threading.Timer(DELAY_S, bar.start)

    def watch(path: str, content: Iterable[bytes]) -> Iterator[bytes]:
        task = bar.add_task(f"writing {clean(path)}", total=None)
        try:
            for piece in content:
                bar.advance(task, len(piece))
                yield piece
        finally:
            bar.remove_task(task)

    timer.daemon = True
    timer.start()
    try:
        yield watch
    finally:
        timer.cancel()
        timer.join()
        bar.stop()
