"""A check of the main tables of a store."""

from tfprof.collector.store.reader import LocalStore

TABLES = ("ops", "traces", "spans", "events", "names", "graph_nodes", "frames", "stacks", "samples")


def check_tables(store: LocalStore) -> None:
    """Raise pyarrow.ArrowInvalid if one of the TABLES of any job breaks the rules of its format."""
    for job in store.jobs():
        for table in TABLES:
            job.table(table).validate(full=True)
