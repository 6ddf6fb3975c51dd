"""Shapes as text."""

from ..tfviews.nodes import Shape


def shape_text(shape: Shape) -> str:
    """Return dimensions joined by x, `unknown` for an unknown rank."""
    return "x".join(map(str, shape)) or "unknown"
