"""Where sessions are."""
