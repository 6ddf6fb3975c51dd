"""Refuses requests that do not come from the page itself, and adds the headers of every answer."""

import hmac
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final
from urllib.parse import parse_qs, urlencode

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

#: Names by which a browser reaches this server, also through a tunnel. Any other name is that of a
#: page that resolves to this host (DNS rebinding).
_HOSTS: Final = frozenset({"localhost", "127.0.0.1"})
_SITES: Final = frozenset({"same-origin", "none"})
_METHODS: Final = frozenset({"GET", "POST"})
#: Maximum size of the path and query, and of a body (bytes).
TARGET_MAX: Final = 4096
BODY_MAX: Final = 4096
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
_HEADERS: Final = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
_PARAMETER: Final = "token"
_REFUSED: Final = (
    "refused: only the page itself, at localhost or 127.0.0.1, may ask; paste the link into the address bar\n"
)
_OPEN_LINK: Final = "refused: open the link that `tfprof web` has printed\n"


class Guard:
    """Passes a request on to ``app`` if it comes from the page, and from the user.

    ``token``: the secret of the printed link, empty for a socket that only the user can open. A
    request with the right token gets a cookie called ``cookie``, and is sent to the same address
    without the token.
    """

    def __init__(self, app: App, token: str = "", cookie: str = "tfprof") -> None:
        self._app = app
        self._token = token
        self._cookie = cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return
        headers = _header_table(scope)
        target = len(scope.get("raw_path") or b"") + len(scope["query_string"])
        if scope["method"] not in _METHODS:
            await _answer(send, 405, "only GET and POST\n")
        elif target > TARGET_MAX:
            await _answer(send, 414, "the address is too long\n")
        elif headers is None or not _is_from_page(scope, headers):
            await _answer(send, 403, _REFUSED)
        elif self._token and not self._has_cookie(headers):
            await self._exchange_token(scope, send)
        else:
            await self._app(scope, _bounded(receive), _with_headers(send))

    def _has_cookie(self, headers: Mapping[str, str]) -> bool:
        # SimpleCookie would refuse all of them for one that a server at another port has set.
        pairs = (pair.strip().partition("=") for pair in headers.get("cookie", "").split(";"))
        return any(name == self._cookie and self._is_token(value) for name, _, value in pairs)

    def _is_token(self, value: str) -> bool:
        return hmac.compare_digest(value.encode("utf-8", "surrogateescape"), self._token.encode())

    async def _exchange_token(self, scope: Scope, send: Send) -> None:
        """Answer a request without cookie: with a cookie if the address has the token."""
        query = parse_qs(scope["query_string"].decode("latin1"), max_num_fields=20) if _is_short(scope) else {}
        tokens = query.pop(_PARAMETER, [])
        if scope["method"] != "GET" or len(tokens) != 1 or not self._is_token(tokens[0]):
            await _answer(send, 403, _OPEN_LINK)
            return
        # Several slashes at the beginning become one, since a browser takes two for the beginning
        # of a host.
        path = "/" + (scope.get("raw_path") or b"/").decode("latin1").lstrip("/\\")
        rest = urlencode(query, doseq=True)
        cookie = f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict"
        location = f"{path}?{rest}" if rest else path
        await _answer(send, 303, "", (b"location", location.encode("latin1")), (b"set-cookie", cookie.encode()))


def _is_short(scope: Scope) -> bool:
    return bool(scope["query_string"].count(b"&") < 20)


def _header_table(scope: Scope) -> dict[str, str] | None:
    """Return the headers; None if one that is checked occurs twice."""
    table: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin1").lower()
        if key in table and key in {"host", "origin", "sec-fetch-site", "content-length"}:
            return None
        table[key] = f"{table[key]}; {value.decode('latin1')}" if key in table else value.decode("latin1")
    return table


def _is_from_page(scope: Scope, headers: Mapping[str, str]) -> bool:
    host = headers.get("host", "")
    name, _, port = host.partition(":")
    if name.lower() not in _HOSTS or not (port == "" or (port.isascii() and port.isdecimal())):
        return False
    if "origin" in headers and headers["origin"].lower() != f"http://{host.lower()}":
        return False
    if scope["method"] == "POST" and headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return False
    return headers.get("sec-fetch-site", "none") in _SITES


def _bounded(receive: Receive) -> Receive:
    """Return a ``receive`` that reports a disconnect if the body is too long."""
    size = 0

    async def receive_part() -> MutableMapping[str, Any]:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        return {"type": "http.disconnect"} if size > BODY_MAX else message

    return receive_part


def _with_headers(send: Send) -> Send:
    async def send_part(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *_HEADERS]
        await send(message)

    return send_part


async def _answer(send: Send, status: int, text: str, *headers: tuple[bytes, bytes]) -> None:
    body = text.encode()
    kind = (b"content-type", b"text/plain; charset=utf-8")
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [kind, length, *_HEADERS, *headers]})
    await send({"type": "http.response.body", "body": body})
