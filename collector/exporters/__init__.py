"""The exporters: one module for each type of file."""
