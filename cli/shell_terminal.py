"""Reads lines from a terminal with prompt_toolkit: editing, completion, history."""

from collections.abc import Iterable, Iterator
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import History
from prompt_toolkit.shortcuts import CompleteStyle

from ..commands.streams import clean
from .shell_completion import NameLookup, complete
from .shell_history import LineHistory


class _Completer(Completer):
    def __init__(self, names: NameLookup) -> None:
        self._names = names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield completions of the last piece of the line."""
        del complete_event
        completions = complete(document.text_before_cursor, self._names)
        for text in completions.texts:
            replacement = f"{text} " if completions.adds_space else text
            yield Completion(clean(replacement), start_position=-completions.length, display=clean(text))


class _History(History):
    """Earlier lines; the shell itself adds those of this session."""

    def __init__(self, line_history: LineHistory) -> None:
        super().__init__()
        self._line_history = line_history

    def load_history_strings(self) -> Iterable[str]:
        """Return earlier lines, the latest first."""
        return reversed(self._line_history.texts)

    def store_string(self, string: str) -> None:
        """Do nothing: the shell itself stores its lines."""


class Prompt:
    """A prompt on the terminal."""

    def __init__(self, text: str, line_history: LineHistory, names: NameLookup) -> None:
        self._text = text
        self._session: PromptSession[Any] = PromptSession(
            history=_History(line_history),
            completer=_Completer(names),
            complete_while_typing=False,
            complete_style=CompleteStyle.MULTI_COLUMN,
            reserve_space_for_menu=6,
            enable_history_search=True,
        )

    def line(self) -> str | None:
        """Return the next line, None at the end; Ctrl-C discards the input."""
        while True:
            try:
                return str(self._session.prompt(self._text))
            except KeyboardInterrupt:
                continue
            except EOFError:
                return None
