"""The screens of `tfprof top`: the list of jobs, and one opened job."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar, Final

from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Footer, Input, Static

from ..collector.errors import TfprofError
from ..collector.query.overview import overview
from ..collector.query.store_watch import StoreWatch, open_watch
from ..collector.query.watching import (
    ORDERS,
    Watch,
    WatchedJob,
    WatchedStore,
    filtered_jobs,
    recent,
    sorted_jobs,
)
from ..collector.render import overview_text, top_text
from ..collector.store.protocols import StoreReader
from ..collector.summaries.jobs import ENDED
from ..commands.streams import clean
from .top_rows import Item, LineList
from .trace import trace_next

#: Interval of updates (seconds).
UPDATE_S: Final = 2.0
#: Update interval of an opened job, which takes longer to read than the list (seconds).
OPENED_S: Final = 5.0
#: Number of steps that a job is ordered to trace when the user presses the trace key.
TRACE_STEPS: Final = 10


class Notice(Message):
    """The answer to an order, or the error of an order or a read."""

    def __init__(self, text: str, *, is_error: bool = False) -> None:
        super().__init__()
        self.text, self.is_error = text, is_error


class JobTextRead(Message):
    """The text of an opened job has been read."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class JobsRead(Message):
    """The jobs have been read, or could not be."""

    def __init__(self, result: WatchedStore | Exception) -> None:
        super().__init__()
        self.result = result


def run_in_thread(screen: Screen[None], messages: Callable[[], Iterable[Message]]) -> None:
    """Run ``messages`` in a thread and send its results to ``screen``.

    A TfprofError or OSError is sent as a Notice. The end of the program does not wait for the
    thread.
    """

    def send() -> None:
        with contextlib.suppress(RuntimeError):  # the screen is gone
            try:
                for message in messages():
                    screen.post_message(message)
            except (TfprofError, OSError) as error:
                screen.post_message(Notice(str(error), is_error=True))

    threading.Thread(target=send, daemon=True).start()


class OrderScreen(Screen[None]):
    """A screen that can order a job to trace its next steps."""

    def order(self, store: StoreReader, uid: str) -> None:
        """Order a job to trace its next steps."""
        run_in_thread(self, lambda: map(Notice, trace_next(store.address, uid, TRACE_STEPS)))

    def on_notice(self, message: Notice) -> None:
        """Show the notice."""
        self.notify(clean(message.text), severity="error" if message.is_error else "information", markup=False)


class JobScreen(OrderScreen):
    """One job: its steps, resource use and ops."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,left,enter", "app.pop_screen", "Back"),
        Binding("t", "trace", f"Trace {TRACE_STEPS} steps"),
        Binding("q", "app.quit", "Quit"),
    ]

    def __init__(self, store: StoreReader, uid: str) -> None:
        super().__init__()
        self._store, self._uid = store, uid
        self._is_reading = False

    def compose(self) -> ComposeResult:
        """Create the widgets."""
        with VerticalScroll():
            yield Static("reading …", id="job", markup=False)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Start the updates."""
        self.query_one(VerticalScroll).focus()
        self.read()
        self.set_interval(OPENED_S, self.read)

    def on_resize(self) -> None:
        """Redraw for the new width."""
        self.read()

    def action_trace(self) -> None:
        """Order the job to trace its next steps."""
        self.order(self._store, self._uid)

    def read(self) -> None:
        """Read the job in a thread, unless a read is in progress."""
        if not self._is_reading:
            self._is_reading = True
            run_in_thread(self, self._read_text)

    def _read_text(self) -> Iterator[Message]:
        try:
            job_overview = overview(self._store.job(self._uid), with_advice=False)
            lines = overview_text.lines(job_overview, time.time_ns(), self.app.size.width)
            yield JobTextRead("\n".join(map(clean, lines)))
        finally:
            self._is_reading = False

    def on_job_text_read(self, message: JobTextRead) -> None:
        """Show the job."""
        self.query_one("#job", Static).update(message.text)


class JobsScreen(OrderScreen):
    """All jobs, a line for each."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "sort(1)", "Sort"),
        Binding("S", "sort(-1)", "Sort back", show=False),
        Binding("r", "reverse", "Reverse"),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("e", "ended", "Ended"),
        Binding("space", "pause", "Pause"),
        Binding("t", "trace", f"Trace {TRACE_STEPS}"),
        Binding("escape", "clear", "Clear", show=False),
        Binding("q", "app.quit", "Quit"),
    ]

    def __init__(self, store: StoreReader, sort_order: str, filter_text: str, *, shows_all: bool) -> None:
        super().__init__()
        self._store, self._shows_all = store, shows_all
        self._job_sort_order, self._filter_text = sort_order, filter_text
        self._is_backwards = self._is_paused = self._is_reading = False
        self._watch: Watch | StoreWatch | None = None
        self._watched_store: WatchedStore | None = None
        self._problem = ""

    def compose(self) -> ComposeResult:
        """Create the widgets."""
        yield Static("reading …", id="summary", markup=False)
        yield Static(id="head", markup=False)
        yield LineList()
        yield Input(self._filter_text, placeholder="name, user, host, id or state", id="filter", compact=True)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Start the updates."""
        self.query_one(LineList).focus()
        self.update()
        self.set_interval(UPDATE_S, self.update)

    def on_resize(self) -> None:
        """Redraw for the new width."""
        self.show()

    def on_screen_resume(self) -> None:
        """Show the data that was read while a job was open."""
        self.show()

    def update(self) -> None:
        """Read the new data in a thread, unless paused or a read is in progress."""
        if not self._is_paused and not self._is_reading:
            self._is_reading = True
            run_in_thread(self, self._read_jobs)

    def _read_jobs(self) -> Iterator[Message]:
        try:
            self._watch = self._watch or open_watch(self._store)
            yield JobsRead(self._watch.update(time.time_ns()))
        except Exception as error:  # noqa: BLE001  # on_jobs_read raises an unexpected one
            self._watch = None
            self._report_failure(error)

    def _report_failure(self, error: Exception) -> None:
        self.post_message(JobsRead(error))

    def on_jobs_read(self, message: JobsRead) -> None:
        """Show the jobs, or the last ones and why they could not be read."""
        self._is_reading = False
        if isinstance(message.result, WatchedStore):
            self._watched_store, self._problem = message.result, ""
        elif isinstance(message.result, (TfprofError, OSError)):
            self._problem = f"the store cannot be read: {message.result}"
        else:
            raise message.result
        if self.is_current:
            self.show()

    def show(self) -> None:
        """Redraw the last data."""
        if self._watched_store is None and not self._problem:
            return
        summary = self.query_one("#summary", Static).set_class(bool(self._problem), "failed")
        if self._watched_store is None:
            summary.update(clean(self._problem))
            return
        watched_store = self._watched_store if self._shows_all else recent(self._watched_store)
        jobs = sorted_jobs(
            filtered_jobs(watched_store.jobs, self._filter_text),
            self._job_sort_order,
            backwards=self._is_backwards,
        )
        table = top_text.lines(jobs, self.app.size.width)
        modes = [self._problem] * bool(self._problem) + [f"by {self._job_sort_order}{' reversed' * self._is_backwards}"]
        modes += [f"like {self._filter_text!r}"] * bool(self._filter_text) + ["paused"] * self._is_paused
        text = top_text.fitted([*modes, *top_text.summary(watched_store)], self.app.size.width)
        summary.update(clean(text))
        self.query_one("#head", Static).update(table.head)
        self.query_one(LineList).show([_item(job, text) for job, text in zip(jobs, table.jobs, strict=True)])

    # -- keys -------------------------------------------------------------------------------------

    def action_sort(self, by: int) -> None:
        """Sort by the next sort order (1), or by the previous one (-1)."""
        orders = list(ORDERS)
        self._job_sort_order = orders[(orders.index(self._job_sort_order) + by) % len(orders)]
        self.show()

    def action_reverse(self) -> None:
        """Reverse the sort order."""
        self._is_backwards = not self._is_backwards
        self.show()

    def action_ended(self) -> None:
        """Show or hide jobs that ended long ago."""
        self._shows_all = not self._shows_all
        self.show()

    def action_pause(self) -> None:
        """Pause or resume the updates."""
        self._is_paused = not self._is_paused
        self.update()
        self.show()

    def action_trace(self) -> None:
        """Order the job at the cursor to trace its next steps."""
        cursor_key = self.query_one(LineList).cursor_key
        if cursor_key is not None:
            self.order(self._store, cursor_key)

    def action_filter(self) -> None:
        """Ask for a filter."""
        field = self.query_one(Input)
        field.add_class("open")
        field.focus()

    def action_clear(self) -> None:
        """Remove the filter."""
        self.query_one(Input).value = ""
        self._close_filter()

    @on(Input.Changed)
    def _apply_filter(self, event: Input.Changed) -> None:
        self._filter_text = event.value
        self.show()

    @on(Input.Submitted)
    def _close_filter(self) -> None:
        self.query_one(Input).remove_class("open")
        self.query_one(LineList).focus()

    @on(LineList.Chosen)
    def _open(self, event: LineList.Chosen) -> None:
        self.app.push_screen(JobScreen(self._store, event.key))


class Top(App[None]):
    """The list of jobs, and one opened job."""

    CSS: ClassVar[str] = """
    Screen { background: ansi_default; color: ansi_default; }
    #summary, #head { height: 1; }
    #summary.failed { color: ansi_red; }
    #head { text-style: bold underline; }
    #filter { display: none; height: 1; border: none; padding: 0; }
    #filter.open { display: block; }
    LineList { height: 1fr; background: ansi_default; scrollbar-size: 0 0; }
    VerticalScroll { scrollbar-size: 0 0; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "interrupt", "Quit", show=False, priority=True)]

    def __init__(self, jobs: JobsScreen) -> None:
        super().__init__(ansi_color=True)
        self._jobs = jobs
        self.was_interrupted = False

    def on_mount(self) -> None:
        """Show the list of jobs."""
        self.push_screen(self._jobs)

    def action_interrupt(self) -> None:
        """Quit in the same way as any command that Ctrl-C ends."""
        self.was_interrupted = True
        self.exit()


def _item(job: WatchedJob, text: str) -> Item:
    return Item(job.row.uid, clean(text), job.is_slow or job.alert is not None, job.row.phase == ENDED)


def run(store: StoreReader, sort_order: str, filter_text: str, *, shows_all: bool) -> None:
    """Show jobs until a key quits; KeyboardInterrupt if that was Ctrl-C."""
    app = Top(JobsScreen(store, sort_order, filter_text, shows_all=shows_all))
    app.run()
    if app.was_interrupted:
        raise KeyboardInterrupt
