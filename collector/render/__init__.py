"""Tables as text and as JSON."""
