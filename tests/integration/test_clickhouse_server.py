"""Servers of ClickHouse 18.16, which Debian has: one, and two that share the jobs.

The tests need the Debian package clickhouse-server; without it, they are skipped.

Tests collector/store/clickhouse_setup.py.
"""

import random
import subprocess
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from fakes import clickhouse_program, page_store, random_rows
from fakes.all_exports import exports
from fakes.command import output_of
from fakes.made_store import rows, write_job
from fakes.same_figures import assert_same_figures, assert_same_rows
from tfprof.collector.errors import StoreError
from tfprof.collector.store import clickhouse_target, copying, schema
from tfprof.collector.store.clickhouse_address import Credentials, parse
from tfprof.collector.store.clickhouse_server import Server
from tfprof.collector.store.opening import create, open_reader
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.store.schema import JOB_TABLES
from tfprof.collector.store.sql_queries import memory_levels
from tfprof.formats.ids import hex_id

pytestmark = pytest.mark.skipif(not clickhouse_program.PROGRAM, reason="clickhouse-server is not installed")
#: Commands about one job, those about the ops of any job, and those about several.
OF_OPS = ("show", "memory", "op")
QUESTIONS = (
    *("show", "breakdown", "memory", "compiled", "scope", "graph", "op", "code", "source", "advise"),
    *("steps", "spans", "curves", "host", "alerts"),
)
OF_SEVERAL = (
    ("jobs",),
    ("alerts",),
    ("diff", "last~1", "last"),
    ("op", "last", "last~1"),
    ("advise", "last", "last~1"),
    ("workers", "all"),
)
RANDOM_JOBS = range(1, 19)
LAYOUTS = {"one": [], "sharded": ["--cluster", "pair"]}


class Pair(NamedTuple):
    """Two servers with one HTTP port."""

    port: int
    processes: list[subprocess.Popen[bytes]]

    def url(self, database: str, server: int = 0) -> str:
        return f"clickhouse://{clickhouse_program.HOSTS[server]}:{self.port}/{database}"

    def server(self, database: str, server: int = 0) -> Server:
        return Server(parse(self.url(database, server)), Credentials("default", ""))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("ch")
    with clickhouse_program.running(folder, clickhouse_program.HOSTS) as (port, processes):
        yield Pair(port, processes)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with 20 jobs: 18 with ops at random, and two with everything that is shown."""
    path = tmp_path_factory.mktemp("folder") / "store"
    for seed in RANDOM_JOBS:
        identity = {"group": "all", "tags": {"tf_task": f"worker:{seed}"}}
        write_job(path, seed, _random_tables(seed), identity=identity)
    return page_store.write(path)


def _random_tables(seed: int) -> dict[str, pa.Table]:
    """Return ops at random, and changes of memory at random: many of them in the same µs."""
    rng = random.Random(seed)
    names = [
        {"kind": kind, "id": number, "text": b"net/%d" % number}
        for kind, count in ((schema.NODE, 8), (schema.LABEL, 1), (schema.ALLOCATOR, 2), (schema.OUTPUTS, 1))
        for number in range(count)
    ]
    ids = {"trace": 10, "node": 8, "device": 2, "allocator": 2, "t_us": 20}
    changes = [
        {**{name: rng.randrange(end) for name, end in ids.items()}, "bytes": rng.randrange(-(10**6), 10**6)}
        for _ in range(200)
    ]
    return {
        "names": pa.concat_tables([random_rows.device_names(), rows("names", names)]),
        "ops": rows("ops", random_rows.random_ops(0, 10, 8, seed=seed)),
        "traces": random_rows.traces(0, 10),
        "memory_changes": rows("memory_changes", changes),
        "allocations": rows("allocations", changes[:50]),
    }


@pytest.fixture(scope="module")
def copied(pair: Pair, folder: Path) -> Callable[[str], tuple[str, str]]:
    """Copy the folder once to each layout; return the URL, and that of the other server."""

    @cache
    def copy(layout: str) -> tuple[str, str]:
        url, other = pair.url(layout), pair.url(layout, layout == "sharded")
        for _ in range(2):  # tables that exist stay
            output_of("store", "init", url, *LAYOUTS[layout])
        with pytest.MonkeyPatch.context() as patch:  # several groups of a few traces
            for module in (copying, clickhouse_target):
                patch.setattr(module, "SEAL_ROWS", 4)
            assert "20 of 20 jobs copied" in output_of("store", "copy", folder, url)
        assert "0 of 20 jobs copied" in output_of("store", "copy", folder, other)
        return url, other

    return copy


@pytest.fixture(scope="module", params=LAYOUTS)
def urls(request: pytest.FixtureRequest, copied: Callable[[str], tuple[str, str]]) -> tuple[str, str]:
    """A copy of the folder, and the same seen from the other server if the jobs are shared."""
    return copied(request.param)


def test_every_answer_equals_that_of_the_folder(urls: tuple[str, str], folder: Path, tmp_path: Path) -> None:
    url, other = urls
    questions = [*OF_SEVERAL, *((question, "last") for question in QUESTIONS)]
    for words in questions:
        assert _answer(words, other) == _answer(words, folder), words
    followed = ("follow", "last", "--all", "--json", "--store")
    assert output_of(*followed, other) == output_of(*followed, folder)
    if other != url:
        assert dict(exports(other, "last", tmp_path / "1")) == dict(exports(folder, "last", tmp_path / "2"))
    back = tmp_path / "back"
    output_of("store", "copy", "--job", "last", url, back)
    for question in QUESTIONS:
        assert _answer((question, "last"), back) == _answer((question, "last"), folder)
    output_of("rm", "last", "--yes", "--store", other)
    assert "1 of 20 jobs copied" in output_of("store", "copy", folder, url)
    assert _answer(("jobs",), other) == _answer(("jobs",), folder)


@pytest.mark.parametrize("uids", [pytest.param(RANDOM_JOBS[:1], id="one"), pytest.param(RANDOM_JOBS[1:], id="others")])
def test_ops_at_random_have_the_same_figures(urls: tuple[str, str], folder: Path, uids: Sequence[int]) -> None:
    store, local_store = open_reader(urls[1]), LocalStore(folder)
    for uid in map(hex_id, uids):
        for question in OF_OPS:
            assert _answer((question, uid), urls[1]) == _answer((question, uid), folder), uid
        job, local = store.job(uid), local_store.job(uid)
        assert_same_rows(job, local, JOB_TABLES.keys() - {"host_samples"})  # the folder has them once for all jobs
        assert_same_figures(job, local)
        for hosts in ({}, {random_rows.GPU: random_rows.CPU}):
            levels = partial(memory_levels, hosts=hosts)
            assert job.with_sql(levels) == local.with_sql(levels)


def _answer(words: Sequence[str], store: Path | str) -> str:
    """Return the document about a store, without the store's address."""
    return output_of(*words, "--json", "--store", store).replace(str(store), "")


def test_a_job_is_on_one_server_and_removed_there(
    pair: Pair, folder: Path, copied: Callable[[str], tuple[str, str]]
) -> None:
    url, _ = copied("sharded")
    jobs = [_column(pair.server("sharded", at), "SELECT DISTINCT job FROM ops_part") for at in range(2)]
    assert all(jobs)
    assert len(jobs[0]) + len(jobs[1]) == len({*jobs[0], *jobs[1]}) == 20
    for uid in (jobs[0][0], jobs[1][0]):
        output_of("rm", uid.decode(), "--yes", "--store", url)
        for name in ("ops", "rollup", "times", "jobs", "batches"):
            assert _column(pair.server("sharded", 1), f"SELECT count() FROM {name} WHERE job = '{uid.decode()}'") == [0]
    assert "2 of 20 jobs copied" in output_of("store", "copy", folder, url)


def _column(server: Server, sql: str) -> Any:
    return server.query(sql).column(0).to_pylist()


def test_a_query_may_list_many_numbers(pair: Pair) -> None:
    numbers = ", ".join(map(str, range(60_000)))
    assert _column(pair.server("default"), f"SELECT count() FROM system.one WHERE dummy IN ({numbers})") == [1]


def test_what_the_old_server_lacks_is_refused(pair: Pair) -> None:
    for rules in ((30, ()), (0, ("operators",))):
        with pytest.raises(StoreError, match=r"18\.16\.1, and --keep.* need .*22\.8.*\[engine-version\]"):
            create(pair.url("rules"), *rules, only_print=False)
    with pytest.raises(StoreError, match=r"knows no cluster other.*\[engine-cluster\]"):
        create(pair.url("rules"), 0, (), "other", only_print=False)
    create(pair.url("rules"), 0, (), only_print=False)
    with pytest.raises(StoreError, match=r"tables for one server.*\[engine-cluster\]"):
        create(pair.url("rules"), 0, (), "pair", only_print=False)


def test_half_of_the_jobs_is_no_answer(tmp_path: Path) -> None:
    with clickhouse_program.running(tmp_path, clickhouse_program.HOSTS) as (port, processes):
        url = Pair(port, processes).url("the-half")
        create(url, 0, (), "pair", only_print=False)
        assert open_reader(url).jobs() == []
        processes[1].kill()
        processes[1].wait()
        with pytest.raises(StoreError, match=r"\[engine-answer\]") as refused:
            open_reader(url).jobs()
        assert str(refused.value).isprintable()
