"""Creates the tables of a store in ClickHouse, on one server or on the servers of a cluster."""

from ..errors import StoreError
from .clickhouse_address import Address, Credentials
from .clickhouse_server import OLDEST_WITH_RULES, Server
from .clickhouse_tables import TABLES_VERSION, Rules, statements


def create(address: Address, credentials: Credentials, rules: Rules) -> None:
    """Create the database and its tables unless they exist.

    UsageError if ``rules`` are invalid. StoreError if a server is too old for them, refuses a
    statement, or has the tables for another cluster or of another version.
    """
    texts = list(statements(address, rules))
    server = Server(address._replace(database="default"), credentials)  # the database may not exist yet
    server.check()
    if rules.keep_days or rules.admins:
        server.check(OLDEST_WITH_RULES, "--keep-days and --admins need")
    servers = [server.at(host) for host in server.hosts(rules.cluster)] if rules.cluster else [server]
    for each in servers:
        there = each.cluster(address.database, "jobs")
        if there not in (None, rules.cluster):
            where = f"for the cluster {there}" if there else "for one server"
            raise StoreError(f"{each.address.text}: it has the tables {where}", "engine-cluster")
    for each in servers:
        for text in texts:
            each.command(text)
        check_version(Server(address._replace(host=each.address.host), credentials))  # there may be older tables


def check_version(server: Server) -> None:
    """Raise StoreError ``store-version`` unless the tables are of the version of this build."""
    versions = server.query("SELECT max(version) AS version FROM store")["version"].to_pylist()
    if versions != [TABLES_VERSION]:
        numbers = ", ".join(map(str, versions))
        text = f"{server.address.text} has tables of version {numbers}, and this tfprof has version {TABLES_VERSION}"
        todo = "use the tfprof that created them, or create another database and copy the jobs into it"
        raise StoreError(f"{text}: {todo}", "store-version")
