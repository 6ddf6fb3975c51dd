"""Divides what is read into batches of a limited number of rows."""

from collections.abc import Iterable, Iterator


def row_batches(sizes: Iterable[tuple[int, int]], rows_max: int) -> Iterator[list[int]]:
    """Yield batches of numbers, each with at most ``rows_max`` rows unless it is a single number.

    ``sizes``: pairs (number, rows).
    """
    batch: list[int] = []
    rows = 0
    for number, size in sizes:
        if batch and rows + size > rows_max:
            yield batch
            batch, rows = [], 0
        batch.append(number)
        rows += size
    if batch:
        yield batch
