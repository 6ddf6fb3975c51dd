"""Starts commands and daemons; code that both share. Standard library only."""
