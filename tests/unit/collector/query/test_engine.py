"""Queries: the facts that a query requires, and the cache of profiles."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes import small_store
from fakes.made_store import write_job
from tfprof.collector.exporters.table import outputs
from tfprof.collector.forms import FORMS, empty_message
from tfprof.collector.loader import load
from tfprof.collector.query import engine as engine_module
from tfprof.collector.query.engine import VIEWS, QueryEngine, required_facts
from tfprof.collector.query.facts import ALL_FACTS, FLOAT_OPS, GRAPH, SHAPES, STACKS
from tfprof.collector.query.job_selection import Selection
from tfprof.collector.store.catalog import RUNNING, STALE
from tfprof.collector.store.reader import LocalJob, LocalStore
from tfprof.collector.tfviews.option_values import TYPES
from tfprof.collector.tfviews.options import TABLE, from_texts
from tfprof.formats.exports import VIEW_EXPORTERS


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> LocalStore:
    path = small_store.write(tmp_path_factory.mktemp("answers") / "store")
    write_job(path, 7 << 60, {}, state=None, identity={"name": "live.py"})
    return LocalStore(path)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The reads of the store, each as (step, required_facts)."""
    calls: list[Any] = []
    real_profile = engine_module.profile

    def profile(selection: Selection, step: int, facts: Any, **options: Any) -> Any:
        calls.append((step, facts))
        return real_profile(selection, step, facts, **options)

    monkeypatch.setattr(engine_module, "profile", profile)
    return calls


@pytest.mark.parametrize(
    ("view", "texts", "expected"),
    [
        ("scope", {}, set()),
        ("op", {"select": "bytes,micros,occurrence,device", "order_by": "peak_bytes"}, set()),
        ("op", {"select": "params"}, {GRAPH}),
        ("op", {"order_by": "params"}, {GRAPH}),
        ("scope", {"min_params": "1"}, {GRAPH}),
        ("scope", {"account_type_regexes": "_trainable_variables"}, {GRAPH}),
        ("op", {"select": "op_types"}, {GRAPH}),
        ("op", {"select": "input_shapes"}, {GRAPH, SHAPES}),
        ("op", {"select": "float_ops"}, {FLOAT_OPS}),
        ("op", {"min_float_ops": "1"}, {FLOAT_OPS}),
        ("graph", {}, {GRAPH}),
        ("code", {}, {STACKS}),
    ],
)
def test_a_query_requires_only_the_facts_that_it_shows(view: str, texts: dict[str, str], expected: set[str]) -> None:
    assert required_facts(VIEWS[view], from_texts(texts), for_message=False) == expected


def test_a_message_requires_all_facts_except_that_only_the_code_view_requires_stacks() -> None:
    assert required_facts(VIEWS["op"], from_texts({}), for_message=True) == ALL_FACTS - {STACKS}
    assert required_facts(VIEWS["code"], from_texts({}), for_message=True) == ALL_FACTS


def test_an_ended_job_is_read_once_for_repeated_queries(store: LocalStore, reads: list[Any]) -> None:
    engine, selection = QueryEngine(), Selection((store.job("aa10"),))
    first = engine.ask(selection, "op", from_texts({"select": "params"}))
    second = engine.ask(Selection((store.job("aa10"),)), "scope", from_texts({}))
    assert first.profile is second.profile
    engine.ask(selection, "graph", from_texts({}))
    assert reads == [(-1, {GRAPH})]
    engine.ask(selection, "op", from_texts({"select": "float_ops"}))
    engine.ask(selection, "op", from_texts({"step": "1"}))
    engine.ask(Selection((store.job("bb10"),)), "op", from_texts({}))
    assert reads[1:] == [(-1, {GRAPH, FLOAT_OPS}), (1, set()), (-1, set())]


@pytest.mark.parametrize("state", [RUNNING, STALE])
def test_a_job_that_may_continue_is_read_each_time(store: LocalStore, reads: list[Any], state: str) -> None:
    live = store.job("live.py")
    engine, selection = QueryEngine(), Selection((LocalJob(live.folder, replace(live.info, state=state)),))
    assert engine.ask(selection, "op", from_texts({})).profile is None
    engine.ask(selection, "op", from_texts({}))
    assert len(reads) == 2


def test_only_a_few_profiles_are_cached(store: LocalStore, reads: list[Any]) -> None:
    engine, job = QueryEngine(), store.job("aa10")
    for last in range(10, 30):
        engine.ask(Selection((job,), steps=(0, last)), "op", from_texts({}))
    engine.ask(Selection((job,), steps=(0, 29)), "op", from_texts({}))
    assert len(reads) == 20
    engine.ask(Selection((job,), steps=(0, 10)), "op", from_texts({}))
    assert len(reads) == 21


@pytest.mark.parametrize("name", ["scope", "graph", "op", "code"])
def test_every_view_in_the_table_can_be_loaded_with_its_message(name: str) -> None:
    form = FORMS[name]
    assert all(callable(load(target)) for target in (VIEWS[name].fold, form.lines, form.message))
    assert outputs(name) <= set(TYPES)
    assert type(empty_message(name, "x")).__name__ == form.proto
    assert empty_message(name, "x").name == "x"


@pytest.mark.parametrize("name", ["scope", "graph", "op", "code"])
def test_help_and_docs_name_the_exporters_of_the_table(name: str) -> None:
    (option,) = [option for option in TABLE if option.name == "output"]
    assert {kind for kind in TYPES if re.search(rf"\b{kind}\b", option.help_for(name))} == outputs(name)
    docs = (Path(__file__).parents[4] / "docs" / "commands.md").read_text()
    assert all(f"`{kind}:outfile=F`" in docs for kind in VIEW_EXPORTERS)
    assert {*VIEW_EXPORTERS, "none", "stdout"} == set(TYPES)
