"""The exporters: each type of file has a module here and a row in a table."""
