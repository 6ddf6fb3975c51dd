"""The agent: finds channels, drains them, samples processes."""
