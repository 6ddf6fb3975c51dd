"""Starts commands and daemons, and holds what they share. Standard library only."""
