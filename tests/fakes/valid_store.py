"""A check of everything that a store holds."""

from tfprof.collector.store.reader import LocalStore

TABLES = ("ops", "traces", "spans", "events", "names", "graph_nodes", "frames", "stacks", "samples")


def check_tables(store: LocalStore) -> None:
    """Raise pyarrow.ArrowInvalid for a table of any job that breaks the rules of its format."""
    for job in store.jobs():
        for table in TABLES:
            job.table(table).validate(full=True)
