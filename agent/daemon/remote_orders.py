"""Whether this host obeys orders and requests that a collector on another host passes on."""

from ...commands import settings_files
from ...commands.key_files import NO_KEY
from ...formats.addresses import Endpoint
from ...formats.errors import TfprofError
from ...formats.requests import ATTACH, Request
from ...formats.settings import SETTINGS


def refusal(endpoint: Endpoint, key: str, host: str) -> TfprofError | None:
    """Return the reason why orders of the collector at ``endpoint`` are refused now, None if none.

    ``key`` is the setting `collector-key`, ``host`` the name of this host. The setting
    `remote-orders` is read from its file each time, and an invalid file refuses, too. A collector
    on this host is behind a socket of this user.
    """
    if endpoint.socket_file is not None:
        return None
    try:
        settings_files.load_into_environment()
        is_allowed = SETTINGS["remote-orders"].read()
    except TfprofError as error:
        return error
    if not is_allowed:
        text = f"{host} takes no orders from other hosts: the setting remote-orders is off there"
        return TfprofError(text, slug="remote-orders")
    if key == NO_KEY:
        text = f"{host} takes no orders over a connection without encryption: `tfprof keys add` makes a key"
        return TfprofError(text, "order-unverified")
    return None


def request_refusal(endpoint: Endpoint, key: str, host: str, request: Request) -> TfprofError | None:
    """Return the reason why ``request`` is refused now, None if none; arguments as in `refusal`.

    Attaching runs code in a process that nobody has started for tfprof, so a setting of its own
    allows it.
    """
    error = refusal(endpoint, key, host)
    if error is not None or endpoint.socket_file is not None or request.command != ATTACH:
        return error
    if SETTINGS["remote-attach"].read():
        return None
    text = f"nobody attaches to processes of {host} from other hosts: the setting remote-attach is off there"
    return TfprofError(text, slug="remote-attach")
