"""Tokens of forms: an order from the page needs one that the page has asked for just before."""

import secrets
import time
from collections import OrderedDict
from typing import Final

#: Time for which a token is valid (seconds), and maximum number of valid tokens.
_VALID_S: Final = 600.0
_TOKENS_MAX: Final = 100


class Forms:
    """The tokens that are valid, each for one order."""

    def __init__(self) -> None:
        self._ends_s: OrderedDict[str, float] = OrderedDict()

    def new(self) -> str:
        """Return a new token; of too many, the oldest one becomes invalid."""
        while len(self._ends_s) >= _TOKENS_MAX:
            self._ends_s.popitem(last=False)
        token = secrets.token_urlsafe(24)
        self._ends_s[token] = time.monotonic() + _VALID_S
        return token

    def take(self, token: object) -> bool:
        """Return whether ``token`` is valid; it is not any more after that."""
        return isinstance(token, str) and self._ends_s.pop(token, 0.0) > time.monotonic()
