"""Reads lines from a terminal with prompt_toolkit: editing, completion, history."""

from collections.abc import Iterable, Iterator
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import History
from prompt_toolkit.shortcuts import CompleteStyle

from .shell_completion import Names, complete
from .shell_history import LineHistory


class _Completer(Completer):
    def __init__(self, names: Names) -> None:
        self._names = names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield replacements of the last piece."""
        del complete_event
        found = complete(document.text_before_cursor, self._names)
        for text in found.texts:
            yield Completion(f"{text} " if found.ends else text, start_position=-found.length, display=text)


class _History(History):
    """Earlier lines; the shell itself adds those of this session."""

    def __init__(self, lines: LineHistory) -> None:
        super().__init__()
        self._earlier = lines

    def load_history_strings(self) -> Iterable[str]:
        """Return earlier lines, the latest first."""
        return reversed(self._earlier.texts)

    def store_string(self, string: str) -> None:
        """Do nothing: the shell itself stores its lines."""


class Prompt:
    """A prompt on the terminal."""

    def __init__(self, text: str, lines: LineHistory, names: Names) -> None:
        self._text = text
        self._session: PromptSession[Any] = PromptSession(
            history=_History(lines),
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
