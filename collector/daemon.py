"""The collector daemon: stores what agents send, until it is stopped or idle."""

import contextlib
import dataclasses
import gc
import os
import secrets
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Final

import pyarrow as pa

from ..commands.daemons import allow_descriptors
from ..commands.key_files import collector_pair
from ..commands.service_manager import ServiceManager
from ..commands.streams import WARNING, log
from ..formats.addresses import Endpoint, local_endpoint
from ..formats.ids import hex_id
from ..formats.private_files import write_json
from ..formats.runtime_dir import LIVE, make_instance
from ..formats.settings import SETTINGS
from ..formats.version import VERSION
from .alert_command import AlertCommand
from .alert_orders import AlertOrders
from .alerts.sentence import sentence
from .copier import Copier
from .decoders.decode import decoder
from .errors import StoreError
from .ingest.given_up_files import GivenUpFiles
from .ingest.ingest import make_ingest
from .ingest.receiver import Receiver
from .ingest.sockets import Listen
from .selfstats import CollectorStats
from .store.retention import Limits, remove_expired
from .store.shared import owner_of
from .store.writer import LocalStoreWriter
from .summaries.jobs import functions_of

NAME: Final = "collector"
#: Niceness of the daemon: the steps of jobs have priority over profiling.
NICENESS: Final = 5
#: Maximum time to wait for a message (milliseconds), and minimum interval between two runs of the
#: periodic duties (seconds).
TURN_MS: Final = 500
TICK_S: Final = 0.1
#: Maximum number of jobs whose counters one tick passes to the store: ten a second in all.
COUNTERS_A_TICK: Final = 1
#: Intervals (seconds) between writes of the status file, and between removals of expired jobs.
STATUS_S: Final = 2.0
REMOVAL_S: Final = 600.0
#: Time until the first removal (seconds): agents first open the jobs that still run.
FIRST_REMOVAL_S: Final = 30.0
#: Work at a monotonic time. Duties run every `TICK_S` while messages arrive, otherwise every
#: `TURN_MS`. Each runs even if another one fails.
_Duty = Callable[[float], object]
#: Limit of open files for a collector that other hosts can reach.
DESCRIPTORS: Final = 65_536
#: Time limit for storing messages that arrived before the stop (seconds).
DRAIN_S: Final = 2.0


@dataclass(frozen=True)
class CollectorOptions:
    """Options of a collector.

    A service (`tfprof serve`) talks to its service manager, and can reload its settings. It may
    listen for other hosts.
    """

    store: Path
    idle_s: float
    decoder: str = "auto"
    retention: Limits = field(default_factory=Limits)
    alert_command: str = ""
    alert_steps: int = 0
    copy_to: str = ""
    is_service: bool = False
    listen: Endpoint | None = None
    is_encrypted: bool = True

    def with_settings(self) -> "CollectorOptions":
        """Return these options with the values of the settings; SettingError if one is invalid."""
        days = SETTINGS["keep-days"].read()
        return dataclasses.replace(
            self,
            retention=Limits(
                None if days is None else days * 86_400, SETTINGS["keep-bytes"].read(), SETTINGS["baselines"].read()
            ),
            alert_command=SETTINGS["alert-command"].read(),
            alert_steps=SETTINGS["alert-steps"].read(),
            copy_to=SETTINGS["copy-to"].read(),
        )


class Collector:
    """The collector of one store.

    ``start`` opens the store. ``serve`` then runs until ``stop`` or the idle time. ``close``
    releases the store. `manager`: the service manager, if it is a service.
    """

    def __init__(self, options: CollectorOptions) -> None:
        self._options = options
        self._stats = CollectorStats()
        self.manager = ServiceManager(os.environ if options.is_service else {})
        self._is_stopping = self._is_ready = False
        self._alert_command = AlertCommand(options.alert_command)
        self._alert_orders = AlertOrders(options.alert_steps)
        self._copier = Copier(options.store, options.copy_to)
        self._last_tick_s = self._last_status_s = float("-inf")
        self._last_removal_s = time.monotonic() - REMOVAL_S + min(FIRST_REMOVAL_S, options.idle_s / 2)

    def start(self) -> None:
        """Open the store and the socket; TfprofError on failure."""
        self._instance = make_instance(str(self._options.store))
        self._decoder = decoder(self._options.decoder)
        self._store = LocalStoreWriter(self._options.store, socket.gethostname())
        owner = owner_of(self._options.store)
        self._ingest = make_ingest(self._store, self._decoder, self._stats.count_failure, owner)
        self._jobs, self._upkeep = self._ingest.jobs, self._ingest.upkeep
        welcome = {
            "collector": secrets.token_hex(8),
            "pid": os.getpid(),
            "version": VERSION,
            "store": str(self._options.store),
        }
        listen = None
        if self._options.listen is not None:
            allow_descriptors(DESCRIPTORS)  # connections of strangers must not take those of the store
            listen = Listen(self._options.listen, collector_pair() if self._options.is_encrypted else None)
        self._receiver = Receiver(local_endpoint(self._instance), self._ingest, self._stats, welcome, listen)
        self._given_up = GivenUpFiles(self._instance, self._ingest, self._stats)
        self._status_path = f"{self._instance}/{NAME}.json"
        self._duties: tuple[_Duty, ...] = (
            lambda _now: self._receiver.retry(),
            lambda _now: self._upkeep.hand_over_counters(jobs_max=COUNTERS_A_TICK),
            self._upkeep.tick,
            self._handle_alerts,
            self._alert_command.tick,
            lambda now: self._copier.tick(now),  # noqa: PLW0108  # a reload replaces it
            self._given_up.end_jobs,
            self._reload_if_due,
            self._remove_expired,
            self._write_status_if_due,
            self._write_live,
            self._tell_manager,
        )
        gc.freeze()  # these objects live as long as the process: the garbage collector need not scan them

    def serve(self) -> None:
        """Receive and store until ``stop`` or the idle time.

        The collector is idle if no message has arrived for `idle_s` and no data waits to be stored.
        """
        while not self._is_stopping:
            received = self._receiver.turn(int(1000 * TICK_S) if self._given_up.is_unfinished else TURN_MS)
            now = time.monotonic()
            self._tick(now)
            if (
                not received
                and now - self._stats.last_message_s >= self._options.idle_s
                and not self._ingest.slices.is_waiting
            ):
                return

    def stop(self) -> None:
        """Make ``serve`` return."""
        self._is_stopping = True

    def close(self) -> None:
        """Store pending messages within DRAIN_S and release the store.

        Open jobs stay open for the next collector.
        """
        self.manager.stopping()
        deadline = time.monotonic() + DRAIN_S
        while time.monotonic() < deadline:
            messages_before = self._stats.messages
            self._receiver.turn(0)
            if self._stats.messages == messages_before and not self._ingest.slices.is_waiting:
                break
        self._receiver.retry()
        self._alert_command.close()
        self._copier.close()
        self._ingest.slices.close()
        self._receiver.close()
        self._upkeep.hand_over_counters(jobs_max=len(self._jobs.open))
        self._write_status(time.monotonic())
        self._store.close()

    def _tick(self, now: float) -> None:
        if now - self._last_tick_s < TICK_S:
            return
        self._last_tick_s = now
        for duty in self._duties:
            try:
                duty(now)
            except StoreError as error:
                self._stats.count_stall(error)
            except Exception as error:  # noqa: BLE001  # the daemon goes on with other duties and messages
                self._stats.count_failure(0, error)

    def _handle_alerts(self, now: float) -> None:
        for uid, alert in self._upkeep.store_alerts():
            info = self._jobs.open[uid].writer.info
            values = {
                "slug": alert.slug,
                "text": sentence(alert, functions_of(info)),
                "job": info.hex,
                "name": info.name,
                "host": info.host,
                "pid": str(info.pid or ""),
                "store": str(self._options.store),
            }
            self._alert_command.add(uid, values, now)
            order = self._alert_orders.order(uid, alert, str(info.identity.get("trace") or ""), now)
            if order is not None:
                self._receiver.order(uid, order)

    def _remove_expired(self, now: float) -> None:
        if now - self._last_removal_s >= REMOVAL_S:
            self._last_removal_s = now
            remove_expired(
                self._options.store,
                socket.gethostname(),
                self._options.retention,
                time.time_ns(),
                self._jobs.open.keys(),
            )
            self._store.trim_hosts()

    def _write_status_if_due(self, now: float) -> None:
        if now - self._last_status_s >= STATUS_S:
            self._write_status(now)

    def _write_status(self, now: float) -> None:
        self._last_status_s = now
        status = self._stats.snapshot(self._jobs.rows, now)
        status |= {
            "version": VERSION,
            "decoder": self._decoder.name,
            "store": str(self._options.store),
            "service": self._options.is_service,
            "jobs": len(self._jobs.open),
            "lag_s": round(self._ingest.slices.lag_s, 3),
            "lost_samples": self._ingest.samples.lost,
            "copy": self._copier.progress,
            "quarantined": {hex_id(uid): reason for uid, reason in self._ingest.failures.quarantined.items()},
        }
        try:
            write_json(self._status_path, status)
        except OSError as error:
            log(f"tfprof: cannot write {self._status_path}: {error.strerror}", level=WARNING)
            with contextlib.suppress(OSError):  # the time of the file shows that this collector does not hang
                os.utime(self._status_path)

    def _write_live(self, now: float) -> None:
        with contextlib.suppress(OSError):  # readers then read the rows
            self._upkeep.write_live(f"{self._instance}/{LIVE}", now)

    def _reload_if_due(self, _now: float) -> None:
        """Use the settings as they are now; if one is invalid, all stay as they were."""
        self.manager.reload_if_due(self._description, self._use_settings)

    def _use_settings(self) -> None:
        self._options = self._options.with_settings()
        self._alert_command.command = self._options.alert_command
        self._alert_orders.steps = self._options.alert_steps
        self._copier.close()
        self._copier = Copier(self._options.store, self._options.copy_to)
        self._last_removal_s = float("-inf")  # new limits apply at once

    def _tell_manager(self, now: float) -> None:
        if self._options.is_service and not self._is_ready:
            self._is_ready = True
            log(f"tfprof: {self._description}, pid {os.getpid()}; SIGTERM or Ctrl-C ends it")
            self.manager.ready(self._description)
        self.manager.alive(now)

    @property
    def _description(self) -> str:
        listen = self._options.listen
        return f"serves {self._options.store}" + ("" if listen is None else f", listens at {listen.url}")


def serve(
    store: str,
    idle_s: float | None,
    decoder: str,
    *,
    is_service: bool = False,
    listen: Endpoint | None = None,
    is_encrypted: bool = True,
) -> int:
    """Run a collector until it stops; return the exit status.

    A service is never idle, and SIGHUP makes it reload its settings. ``listen``: where other hosts
    send to, encrypted unless that is typed. The caller holds the lock of
    ``store``. TfprofError if the collector cannot start, or cannot store its pending data.
    """
    os.nice(NICENESS)
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    pa.set_memory_pool(pa.mimalloc_memory_pool())
    idle_s = SETTINGS["collector-idle"].read() if idle_s is None else idle_s
    options = CollectorOptions(
        Path(store),
        float("inf") if is_service else idle_s,
        decoder,
        is_service=is_service,
        listen=listen,
        is_encrypted=is_encrypted,
    )
    collector = Collector(options.with_settings())

    def stop_on_signal(_number: int, _frame: FrameType | None) -> None:
        collector.stop()

    signal.signal(signal.SIGHUP, collector.manager.request_reload if is_service else signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop_on_signal)
    collector.start()
    try:
        collector.serve()
    finally:
        store_error = _close(collector)
    if store_error is not None:
        raise store_error
    return 0


def _close(collector: Collector) -> StoreError | None:
    """Close ``collector``; return a StoreError instead of raising it.

    A raised StoreError could hide a crash of the collector.
    """
    try:
        collector.close()
    except StoreError as error:
        return error
    return None
