"""A view as the command prints it, for Python programs and notebooks."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ViewScreen:
    """The lines of a view, with all its columns; ``notes``: what the command says beside them.

    `str` returns the text. Notebooks and the prompt of Python show it as it is.
    """

    lines: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join((*self.lines, *self.notes))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from .render.html import preformatted  # noqa: PLC0415  # for notebooks only

        return preformatted((*self.lines, *self.notes))
