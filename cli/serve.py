"""`tfprof serve`: the collector as a service of this user."""

import contextlib
import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
from click.core import ParameterSource

from ..agent.local_daemons import stop_and_wait
from ..collector.daemon_status import checked_instance_dir
from ..collector.errors import TfprofError, UsageError
from ..commands import daemons, key_files
from ..commands.service_unit import Unit, system_unit, user_unit
from ..commands.streams import note, print_lines
from ..formats.addresses import is_remote, remote_endpoint
from ..formats.runtime_dir import make_instance
from ..formats.settings import SETTINGS
from .command import folder_option
from .values import NON_EMPTY

_COLLECTOR: Final = "collector"
_MODULE: Final = "tfprof.collector.__main__"
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
@click.option(
    "--user", metavar="USER", type=NON_EMPTY, help="With --system: whom the service serves (you, also with sudo)."
)
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
    force: bool,
    listen: str | None,
    no_encryption: bool,
) -> None:
    """Serve as your collector in the foreground until SIGTERM or Ctrl-C.

    Jobs send their data to it, as to the collector that they start themselves, but it does not end
    when idle. If a collector already runs, it takes its place. SIGHUP reloads the settings. It
    tells systemd when it is ready.
    """
    for option, is_given, base, has_base in (
        ("--system", system, "--print or --install", print_only or install),
        ("--user", user is not None, "--system", system),
        ("--force", force, "--install", install),
        ("--no-encryption", no_encryption, "--listen", listen is not None),
    ):
        if is_given and not has_base:
            raise UsageError(f"{option} needs {base}")
    if is_remote(store):
        raise UsageError(f"jobs of this host go to {store}: run the service there, or give --store DIR")
    words = [] if listen is None else _listen_words(listen, is_encrypted=not no_encryption)
    if not print_only and not install:
        _serve(store, words)
    is_store_given = context.get_parameter_source("store") is ParameterSource.COMMANDLINE
    unit = _unit(store if is_store_given else None, user if system else None, words, is_system=system)
    if print_only:
        print_lines(unit.text.splitlines())
    else:
        _install(unit, is_system=system, force=force)


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


def _serve(store: str, listen_words: Sequence[str]) -> None:
    """Become the collector; return only by an error."""
    for setting in SETTINGS.values():
        if _COLLECTOR in setting.users:
            setting.read()  # an invalid value is reported before a running collector is stopped
    checked_instance_dir(store)
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
    daemons.become(_MODULE, ["--store", store, "--service", *listen_words], lock)


def _unit(store: str | None, user: str | None, words: Sequence[str], *, is_system: bool) -> Unit:
    if not is_system:
        return user_unit(store, words)
    try:
        name = user or os.environ.get("SUDO_USER")
        return system_unit(store, pwd.getpwnam(name) if name else pwd.getpwuid(os.geteuid()), words)
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


def _run(command: Sequence[str], program: str) -> None:
    """Run a command of systemd; ServiceError with its message if it fails."""
    done = subprocess.run(command, executable=program, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        message = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
        raise ServiceError(f"{' '.join(command)}: {message}")
