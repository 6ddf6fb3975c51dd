"""A file in memory whose content is taken while it is written."""

import io


class Sink(io.BytesIO):
    """What a library writes to; `take` returns what was written since the last call."""

    def __init__(self) -> None:
        super().__init__()
        self._taken = 0

    def tell(self) -> int:
        """Return the number of bytes written so far."""
        return self._taken + super().tell()

    def seek(self, _offset: int, _whence: int = 0, /) -> int:
        """Raise UnsupportedOperation: `take` may have removed what was written."""
        raise io.UnsupportedOperation

    def take(self) -> bytes:
        """Return the content that was not taken yet."""
        content = self.getvalue()
        super().seek(0)
        self.truncate()
        self._taken += len(content)
        return content
