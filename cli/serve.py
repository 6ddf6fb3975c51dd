"""`tfprof serve`: the collector as a service of this user, or of all users of the host."""

import contextlib
import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from ..agent.local_daemons import stop_and_wait
from ..collector.daemon_status import checked_instance_dir
from ..collector.errors import TfprofError, UsageError
from ..collector.sharing.service import readers_group
from ..collector.store import catalog
from ..commands import daemons, key_files, settings_files
from ..commands.service_unit import SHARED_STORE, SHARED_USER, Unit, shared_unit, system_unit, user_unit
from ..commands.streams import note, print_lines
from ..formats.addresses import is_remote, local_endpoint, remote_endpoint
from ..formats.runtime_dir import endpoint_elsewhere, make_instance
from ..formats.settings import SETTINGS
from .command import folder_option
from .values import NON_EMPTY

_COLLECTOR: Final = "collector"
_MODULE: Final = "tfprof.collector.__main__"
_SHARED_MODULE: Final = "tfprof.collector.sharing.__main__"
#: Time limit for taking the place of a collector that jobs start (seconds).
_TAKE_OVER_S: Final = 60.0
_POLL_S: Final = 0.05


class ServiceError(TfprofError):
    """The service cannot be installed or started."""

    slug = "service"


@click.command()
@click.option("--print", "print_only", is_flag=True, help="Print the systemd unit of the service.")
@click.option("--install", is_flag=True, help="Write the unit, enable the service and start it.")
@click.option("--system", is_flag=True, help="With the two: a unit of the host's systemd, not of your own.")
@click.option("--user", metavar="USER", type=NON_EMPTY, help="With --system: serve this user only (all users).")
@click.option("--shared", is_flag=True, help="Serve all users of this host; each reads their own jobs.")
@click.option("--force", is_flag=True, help="With --install: overwrite another unit.")
@click.option("--listen", metavar="ADDRESS", type=NON_EMPTY, help="Listen for other hosts, at tcp://HOST:PORT.")
@click.option("--no-encryption", is_flag=True, help="With --listen at 127.0.0.1: no keys; any local user may send.")
@folder_option
@click.pass_context
def serve(
    context: click.Context,
    store: str,
    print_only: bool,
    install: bool,
    system: bool,
    user: str | None,
    shared: bool,
    force: bool,
    listen: str | None,
    no_encryption: bool,
) -> None:
    """Serve as your collector in the foreground until SIGTERM or Ctrl-C.

    Jobs send their data to it, as to the collector that they start themselves, but it does not end
    when idle. If a collector already runs, it takes its place. SIGHUP reloads the settings. It
    tells systemd when it is ready.

    With --shared, it serves all users of the host, who read and steer their own jobs. --install
    --system makes a service that does this as the user tfprof.
    """
    serves_all = shared or (system and user is None)
    _check_options(context.params, serves_all=serves_all)
    is_store_given = context.get_parameter_source("store") is ParameterSource.COMMANDLINE
    words = [] if listen is None else _listen_words(listen, is_encrypted=not no_encryption)
    if not print_only and not install:
        _serve_all(store) if shared else _serve(store, words)
    shared_store = store if is_store_given else SHARED_STORE
    if serves_all:
        unit = shared_unit(shared_store)
    else:
        unit = _unit(store if is_store_given else None, user, words, is_system=system)
    if print_only:
        print_lines(unit.text.splitlines())
        return
    if serves_all:
        _make_account()
    _install(unit, is_system=system, force=force)
    if serves_all:
        print_lines([f'for all users, in {settings_files.HOST_FILE}: store = "{shared_store}"'])


def _check_options(options: Mapping[str, Any], *, serves_all: bool) -> None:
    """Raise UsageError for an option that makes no sense together with the others."""
    has_unit = options["print_only"] or options["install"]
    for option, is_given, base, has_base in (
        ("--system", options["system"], "--print or --install", has_unit),
        ("--user", options["user"] is not None, "--system", options["system"]),
        ("--user", options["user"] is not None, "a service of one user, not --shared", not options["shared"]),
        ("--shared", options["shared"] and has_unit, "--system: its unit is one of the host", options["system"]),
        ("--force", options["force"], "--install", options["install"]),
        ("--no-encryption", options["no_encryption"], "--listen", options["listen"] is not None),
        ("--listen", options["listen"] is not None, "a service of one user: --user USER", not serves_all),
    ):
        if is_given and not has_base:
            raise UsageError(f"{option} needs {base}")
    elsewhere = None if serves_all else endpoint_elsewhere(options["store"])
    if elsewhere is not None:
        raise UsageError(f"jobs of this host go to {elsewhere.place}: run the service there, or give --store DIR")


def _listen_words(listen: str, *, is_encrypted: bool) -> list[str]:
    """Return the options for a collector that listens at the address ``listen``.

    KeyFileError if it has no keys yet; UsageError if anyone could send without one.
    """
    endpoint = remote_endpoint(listen)
    if is_encrypted:
        key_files.collector_pair()
    elif not endpoint.is_loopback:
        raise UsageError(f"--no-encryption is for 127.0.0.1 only, not {listen}: tfprof keys init makes keys")
    return ["--listen", endpoint.url, *([] if is_encrypted else ["--no-encryption"])]


def _serve_all(store: str) -> None:
    """Become the service of a shared store. This function returns only by raising an error."""
    if is_remote(store):
        raise UsageError(f"jobs of this host go to {store}: give --store DIR")
    local_endpoint(store)  # FolderError if the path of its socket is too long
    catalog.make_shared(Path(store), readers_group())
    _become(store, _SHARED_MODULE, ["--store", store])


def _serve(store: str, listen_words: Sequence[str]) -> None:
    """Become the collector. This function returns only by raising an error."""
    checked_instance_dir(store)
    _become(store, _MODULE, ["--store", store, "--service", *listen_words])


def _become(store: str, module: str, words: list[str]) -> None:
    """Become the collector of ``store``, the program ``module``, when an earlier one has ended."""
    for setting in SETTINGS.values():
        if _COLLECTOR in setting.users:
            setting.read()  # an invalid value is reported before a running collector is stopped
    instance_dir = make_instance(store)
    lock = daemons.PidFileLock(instance_dir, _COLLECTOR)
    deadline = time.monotonic() + _TAKE_OVER_S
    while not lock.take():  # meanwhile an agent may start another collector
        pid = daemons.running_pid(instance_dir, _COLLECTOR)
        status = daemons.read_status(instance_dir, _COLLECTOR) or {}
        if (status.get("service") and status.get("pid") == pid) or time.monotonic() > deadline:
            raise ServiceError(f"the collector of process {pid} serves {store}: stop it first", "store-in-use")
        if pid:
            note(f"takes the place of the collector of process {pid}")
            stop_and_wait(_COLLECTOR, instance_dir, pid)
        else:  # it is starting
            time.sleep(_POLL_S)
    daemons.become(module, words, lock)


def _unit(store: str | None, user: str | None, words: Sequence[str], *, is_system: bool) -> Unit:
    if not is_system:
        return user_unit(store, words)
    try:
        return system_unit(store, pwd.getpwnam(user or ""), words)
    except KeyError:
        raise UsageError(f"--user: there is no user {user!r}") from None


def _install(unit: Unit, *, is_system: bool, force: bool) -> None:
    path = Path(unit.path)
    with contextlib.suppress(FileNotFoundError):
        if path.read_text(errors="replace") != unit.text and not force:
            raise ServiceError(f"{path} exists and differs: --force overwrites it", "file-exists")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(unit.text)
    temporary.replace(path)
    print_lines([f"wrote {path}"])
    systemctl = shutil.which("systemctl")
    command = ["systemctl", *([] if is_system else ["--user"])]
    if systemctl is None:
        print_lines(["there is no systemctl here, so the service is not enabled"])
        return
    for words in (["daemon-reload"], ["enable", unit.name], ["restart", unit.name]):
        _run([*command, *words], systemctl)
    print_lines([f"enabled and started {unit.name}: {' '.join(command)} status {unit.name}"])
    if not is_system:
        print_lines(["it starts when you log in; at boot after: loginctl enable-linger"])


def _make_account() -> None:
    """Make the user of the service unless there is one; ServiceError if that fails."""
    try:
        pwd.getpwnam(SHARED_USER)
    except KeyError:
        home = ["--home-dir", SHARED_STORE, "--no-create-home", "--shell", "/usr/sbin/nologin"]
        _run(["useradd", "--system", *home, SHARED_USER], shutil.which("useradd") or "/usr/sbin/useradd")
        print_lines([f"made the user {SHARED_USER}"])


def _run(command: Sequence[str], program: str) -> None:
    """Run a command of the system; ServiceError with its message if it fails."""
    try:
        done = subprocess.run(
            command, executable=program, capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:
        raise ServiceError(f"cannot run {program}: {error.strerror}") from None
    if done.returncode:
        message = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
        raise ServiceError(f"{' '.join(command)}: {message}")
