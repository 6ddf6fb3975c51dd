"""Renders answers as text and as JSON."""
