"""The job table of `tfprof top`: a scrollable list of lines with a cursor."""

from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ..collector.render.cells import cells

_CURSOR: Final = Style(reverse=True)
_HIGHLIGHTED: Final = Style(bold=True, color="red")
_DIMMED: Final = Style(dim=True)
_PLAIN: Final = Style()


class Item(NamedTuple):
    """A line, its key, and whether it is highlighted or dimmed."""

    key: str
    text: str
    is_highlighted: bool = False
    is_dimmed: bool = False


class LineList(ScrollView, can_focus=True):
    """A list of lines; the cursor stays on the same key when lines move."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home,g", "edge(0)", "First", show=False),
        Binding("end,G", "edge(-1)", "Last", show=False),
        Binding("enter", "choose", "Open"),
    ]

    class Chosen(Message):
        """A line was chosen."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self) -> None:
        super().__init__()
        self._items: Sequence[Item] = ()
        self.cursor = 0

    @property
    def cursor_key(self) -> str | None:
        """The key of the line at the cursor, None without lines."""
        return self._items[self.cursor].key if self._items else None

    def show(self, items: Sequence[Item]) -> None:
        """Replace the lines; a cursor that was on the screen stays on it."""
        old_key, old_items, old_cursor = self.cursor_key, self._items, self.cursor
        was_visible = self._is_cursor_visible()
        self._items = items
        keys = [item.key for item in items]
        self.cursor = keys.index(old_key) if old_key in keys else min(self.cursor, max(0, len(items) - 1))
        if len(items) != len(old_items):
            self.virtual_size = Size(max((cells(item.text) for item in items), default=0), len(items))
            self.refresh()
        else:
            changed = {index for index, (new, old) in enumerate(zip(items, old_items, strict=True)) if new != old}
            self._draw(changed | ({old_cursor, self.cursor} if old_cursor != self.cursor else set()))
        if was_visible and not self._is_cursor_visible():
            self._scroll_to_cursor()

    def render_line(self, y: int) -> Strip:
        """Return one line of the screen."""
        index = y + self.scroll_offset.y
        width = self.size.width
        if index >= len(self._items):
            return Strip.blank(width)
        item = self._items[index]
        style = _HIGHLIGHTED if item.is_highlighted else _DIMMED if item.is_dimmed else _PLAIN
        if index == self.cursor:
            style += _CURSOR
        return Strip([Segment(item.text, style)]).adjust_cell_length(width, style)

    def action_move(self, by: int) -> None:
        """Move the cursor by ``by`` lines."""
        self._move_cursor(self.cursor + by)

    def action_page(self, by: int) -> None:
        """Move the cursor by ``by`` screens."""
        self._move_cursor(self.cursor + by * max(1, self.size.height - 1))

    def action_edge(self, index: int) -> None:
        """Move the cursor to the first (0) or last (-1) line."""
        self._move_cursor(index % max(1, len(self._items)))

    def action_choose(self) -> None:
        """Post the key of the line at the cursor."""
        if self.cursor_key is not None:
            self.post_message(self.Chosen(self.cursor_key))

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to a clicked line; choose the line if the cursor is there already."""
        index = event.y + self.scroll_offset.y
        if index == self.cursor:
            self.action_choose()
        elif index < len(self._items):
            self._move_cursor(index)

    def _move_cursor(self, index: int) -> None:
        old_cursor = self.cursor
        self.cursor = min(max(0, index), max(0, len(self._items) - 1))
        self._scroll_to_cursor()
        self._draw({old_cursor, self.cursor})

    def _is_cursor_visible(self) -> bool:
        return 0 <= self.cursor - self.scroll_offset.y < self.size.height

    def _scroll_to_cursor(self) -> None:
        self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False, force=True)

    def _draw(self, indexes: set[int]) -> None:
        """Redraw some lines: redrawing the whole screen is slow over a slow connection."""
        regions = [Region(0, index - self.scroll_offset.y, self.size.width, 1) for index in indexes]
        if regions:
            self.refresh(*regions)
