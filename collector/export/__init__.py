"""Views in the formats of other programs."""
