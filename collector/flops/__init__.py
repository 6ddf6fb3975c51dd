"""Infers shapes of nodes and counts their operations."""
