"""Whether output has colors."""

import os
import sys


def has_colors() -> bool:
    """Return whether standard output is a terminal with colors, and $NO_COLOR is not set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"
