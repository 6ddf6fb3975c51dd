"""Exports: views and jobs in the formats of other programs."""
