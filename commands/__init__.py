"""How commands and daemons start, and what they share. Standard library only."""
