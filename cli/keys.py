"""`tfprof keys`: which other hosts may send to the collector of this one."""

import shlex
from pathlib import Path

import click
import zmq

from ..collector.errors import TfprofError, UsageError
from ..commands import key_files
from ..commands.key_files import KeyFileError, KeyPair, NodeKey
from ..commands.streams import note, print_lines
from .values import NON_EMPTY


@click.group(no_args_is_help=False)
def keys() -> None:
    """Manage the keys of hosts that send to the collector of this one (tfprof serve --listen).

    A running collector uses changes at once, also for hosts that are connected.
    """


@keys.command()
def init() -> None:
    """Make the collector's keys, once."""
    print_lines([f"wrote {key_files.write_collector(_new_pair())}; next: tfprof keys add NODE"])


@keys.command()
@click.argument("node", type=NON_EMPTY)
@click.option("-o", "path", metavar="FILE", type=NON_EMPTY, help="The file for the node (NODE.key).")
def add(node: str, path: str | None) -> None:
    """Let the host NODE send, and write its key file.

    Jobs from there get NODE as the name of their host.
    """
    name = key_files.node_name(node)
    collector = key_files.collector_pair()
    if name in key_files.nodes():
        raise UsageError(f"{name} has a key: tfprof keys revoke {name} withdraws it")
    pair = _new_pair()
    target = Path(path or f"{name}.key")
    key_files.write_node_key(str(target), NodeKey(name, pair, collector.public))
    try:
        key_files.change_nodes(name, pair.public)
    except (OSError, TfprofError):
        target.unlink()
        raise
    word = shlex.quote(str(target))
    print_lines(
        [
            f"wrote {target}, which is secret: move it to ~/.config/tfprof/collector.key on {name}, for example by",
            f"ssh {name} install -Dm600 /dev/stdin .config/tfprof/collector.key < {word} && rm {word}",
        ]
    )


@keys.command("list")
def list_() -> None:
    """Print the hosts that may send, each with its public key."""
    nodes = key_files.nodes()
    print_lines([f"{node}  {key}" for node, key in nodes.items()])
    if not nodes:
        note("no keys: tfprof keys add NODE")


@keys.command()
@click.argument("node", type=NON_EMPTY)
def revoke(node: str) -> None:
    """Let the host NODE send no more."""
    if node not in key_files.nodes():
        raise KeyFileError(f"there is no key of {node}: tfprof keys list", "no-such-key")
    key_files.change_nodes(node, None)
    print_lines([f"{node} may not send any more; its jobs stay"])


def _new_pair() -> KeyPair:
    public, secret = zmq.curve_keypair()
    return KeyPair(public.decode(), secret.decode())
