"""The exporters: one file here and one row in a table for each type of file."""
