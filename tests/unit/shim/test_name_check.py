"""The names that a module of a job has, has under another name, or has with other parameters."""

import sys
import types

import pytest
from tfprof.shim import name_check

SOURCE = """
import functools
import os

class Base:
    inherited = 1

    def __init__(self):
        self.assigned_in_base = 1

def decorated(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        return function(*args, **kwargs)
    return call

class Session(Base):
    class Inner:
        def __init__(self):
            self.handle = 0

    @property
    def graph(self):
        self.cached = os.getcwd()
        return self.missing_here

    @decorated
    def run(self, fetches, *, options=None):
        def inner():
            return helper(fetches)
        return inner()

    def any_number(self, *arguments):
        return arguments

default_session = Session()
"""


@pytest.fixture
def module(monkeypatch):
    """A loaded module of a job."""
    new_module = types.ModuleType("job.session")
    exec(compile(SOURCE, "session.py", "exec"), new_module.__dict__)
    monkeypatch.setitem(sys.modules, new_module.__name__, new_module)
    return new_module


def missing(module, *names, version="2.10.1"):
    """Return the missing names."""
    return name_check.check(module, names, version)[0]


@pytest.mark.parametrize(
    "name",
    [
        "Session",
        "Session.run",
        "Session.inherited",
        "Session.assigned_in_base",
        "Session.cached",
        "Session.Inner.handle",
        "default_session.cached",
        "Session.run()",
        "*.run()",
        "Session.run(2)",
        "Session.any_number(4)",
        "Session.run > helper",
        "Session.run > options",
        "os.getcwd",
        "job.session:",
        "job.session:Session.run",
        "Session.gone | Session.run",
        "Session.gone since 2.11",
        "Session.gone since 3.0",
    ],
)
def test_a_name_that_exists_is_not_missing(module, name):
    assert missing(module, name) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Gone.run", "Gone"),
        ("Gone.__init__(2)", "Gone"),
        ("Session.gone", "Session.gone"),
        ("Session.missing_here", "Session.missing_here"),
        ("default_session.gone", "default_session.gone"),
        ("Session.inherited()", "Session.inherited"),
        ("*.gone()", "*.gone"),
        ("Session.run(3)", "the parameters of Session.run"),
        ("Session.any_number > helper", "helper in Session.any_number"),
        ("Session.gone > helper", "Session.gone"),
        ("Session.gone | Session.lost", "Session.gone or Session.lost"),
        ("Session.gone since 2.4", "Session.gone"),
        ("job.gone:", "job.gone"),
        ("job.gone:Session.run", "job.gone"),
    ],
)
def test_a_name_that_does_not_exist_is_missing(module, name, text):
    assert missing(module, name) == [text]


def test_what_is_missing_is_named_once(module):
    assert missing(module, "Gone.run", "Gone.run > helper", "Gone", "Gone.a | Gone.b") == ["Gone"]


def test_a_name_of_later_versions_is_not_looked_up_in_an_unknown_version(module):
    assert missing(module, "Session.gone since 2.4", version=None) == []


@pytest.mark.parametrize(
    ("name", "can_be_patched"),
    [
        ("Session.gone", True),
        ("Session.gone!", False),
        ("Gone!", False),
        ("Gone.name!", True),
        ("Session.run(2)!", True),
        ("Session.run(3)", True),
        ("Session.run(3)!", False),
        ("Session.gone(3)!", True),
        ("Session.any_number > helper!", False),
        ("Session.gone! since 2.11", True),
    ],
)
def test_a_module_that_differs_where_a_patch_would_do_harm_is_not_patched(module, name, can_be_patched):
    assert name_check.check(module, [name], "2.10.1")[1] is can_be_patched


@pytest.fixture
def importer(module, monkeypatch):
    """A loaded module that only imports the names of ``module``."""
    new_module = types.ModuleType("job.importer")
    vars(new_module).update(Session=module.Session, decorated=module.decorated)
    monkeypatch.setitem(sys.modules, new_module.__name__, new_module)
    return new_module


def test_a_module_that_only_imports_needs_no_names_of_its_own(importer):
    assert missing(importer, "Gone.run()", "Session.gone", "job.session:Session.gone") == ["job.session.Session.gone"]


def test_a_module_that_only_imports_does_not_count_as_loaded(importer, module):
    assert missing(module, "job.importer:", "job.importer: | job.session:") == ["job.importer"]


def test_no_code_of_the_job_runs(module):
    class Meta(type):
        def __getattr__(cls, name):
            raise AssertionError(name)

        def __eq__(cls, other):
            raise AssertionError(other)

        __hash__ = type.__hash__

    class Proxy(metaclass=Meta):
        __module__ = module.__name__

        def __getattribute__(self, name):
            raise AssertionError(name)

    module.Proxy, module.proxy = Proxy, Proxy()
    names = ("Proxy.run()", "proxy.run", "*.run()", "Proxy.run > helper", "proxy.gone.further", "job.session:")
    assert missing(module, *names) == ["Proxy.run", "proxy.run", "proxy.gone"]
