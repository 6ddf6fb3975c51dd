"""Whether the jobs of this host obey orders that a collector on another host passes on."""

from ...commands.key_files import NO_KEY
from ...formats.addresses import Endpoint
from ...formats.errors import TfprofError


class RemoteOrdersError(TfprofError):
    """The settings of this host refuse orders from other hosts."""

    slug = "remote-orders"


class UnverifiedOrderError(TfprofError):
    """An order came over a connection without encryption: anyone may have sent it."""

    slug = "order-unverified"


def refusal(endpoint: Endpoint, key: str, host: str, *, is_allowed: bool) -> TfprofError | None:
    """Return the reason why orders of the collector at ``endpoint`` are refused, None if none is.

    ``key`` and ``is_allowed`` are the settings `collector-key` and `remote-orders`; ``host`` is the
    name of this host. A collector on this host is behind a socket of this user.
    """
    if endpoint.socket_file is not None:
        return None
    if not is_allowed:
        return RemoteOrdersError(f"{host} takes no orders from other hosts: the setting remote-orders is off there")
    if key == NO_KEY:
        return UnverifiedOrderError(
            f"{host} takes no orders over a connection without encryption: `tfprof keys add` makes a key"
        )
    return None
