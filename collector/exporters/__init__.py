"""The exporters: for each type of file a module here and a row in a table."""
