"""Shapes and operation counts of nodes."""
