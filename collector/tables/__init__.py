"""Reads jobs as tables, for exports and for the Python API; docs/exports.md has the columns."""
