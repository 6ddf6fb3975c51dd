"""A store in ClickHouse: the same tables as in a folder, over plain HTTP."""
