"""The collector of a store.

Started as ``python -m tfprof.collector [--store DIR] [--idle S] [--decoder NAME] [--service]``.
"""

import argparse
import sys
from collections.abc import Sequence

from ..commands import daemons, settings_files, streams
from ..formats.addresses import remote_endpoint
from ..formats.errors import TfprofError
from ..formats.runtime_dir import store_path
from ..formats.values import seconds


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the collector of a store until it is stopped or idle; return the exit status.

    The exit status is 1 if the store already has a running collector.
    """
    parser = argparse.ArgumentParser(prog="python -m tfprof.collector", description=main.__doc__)
    parser.add_argument("--store", default=None, help="folder of the results")
    parser.add_argument("--idle", type=seconds, help="end after this many seconds without messages")
    parser.add_argument("--decoder", default="auto", choices=["auto", "walker", "python"])
    parser.add_argument("--service", action="store_true", help="serve until stopped; SIGHUP reloads the settings")
    parser.add_argument("--listen", type=remote_endpoint, help="where other hosts send to")
    parser.add_argument("--no-encryption", action="store_true", help="listen without keys")
    options = parser.parse_args(arguments)
    try:
        store = settings_files.store() if options.store is None else store_path(options.store)
    except TfprofError as error:
        streams.say(f"tfprof: {error}")
        return error.exit_code
    return daemons.run("collector", store, lambda: _serve(store, options))


def _serve(store: str, options: argparse.Namespace) -> int:
    settings_files.load_into_environment()
    from .daemon import serve  # noqa: PLC0415 - its imports take long: take the lock first

    return serve(
        store,
        options.idle,
        options.decoder,
        is_service=options.service,
        listen=options.listen,
        is_encrypted=not options.no_encryption,
    )


if __name__ == "__main__":
    sys.exit(main())
