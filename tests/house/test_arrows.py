"""Rules for imports: what each room may import, no cycles, and lists of modules named by strings.

A room is a package, or a module of a package in SPLIT.
"""

import ast
import importlib
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest
from house.tree import PARTS, ROOT, imports, sources, tree
from tfprof.collector.tfviews.parity import COMPAT

#: Packages in which each module counts as a room of its own. Some of these modules import the
#: package's folders, and some are imported by them.
SPLIT = ("agent", "collector", "shim")
#: Room -> the rooms, or single modules of them, that it may import. A room may also import itself
#: and GENERATED.
ALLOWED = {
    "formats": "",
    "commands": "formats",
    "shim": "",
    "shim.arming": "shim.core shim.tensorflow",
    "shim.attached": "",
    "shim.channel": ("formats shim.clock shim.descriptors shim.guard shim.libc shim.own_os shim.reentrant_guard"),
    "shim.clock": "shim.libc shim.own_os",
    "shim.core": (
        "shim.channel shim.guard shim.hook shim.name_check shim.opening shim.own_os shim.pacing shim.process_events"
    ),
    "shim.cpython": "shim.own_os",
    "shim.descriptors": "shim.guard shim.own_os",
    "shim.file_size_signal": "",
    "shim.guard": "formats shim.cpython shim.own_os",
    "shim.hook": "shim.clock",
    "shim.inject": "",
    "shim.libc": "",
    "shim.name_check": "shim.cpython",
    "shim.opening": (
        "formats shim.channel shim.clock shim.descriptors shim.file_size_signal shim.guard shim.own_os shim.pacing "
        "shim.try_lock"
    ),
    "shim.own_os": "",
    "shim.pacing": "formats shim.channel shim.clock shim.cpython shim.guard shim.own_os shim.reentrant_guard",
    "shim.process_events": "shim.cpython shim.guard",
    "shim.reentrant_guard": "shim.clock",
    "shim.steps": (
        "formats shim.channel shim.clock shim.core shim.cpython shim.guard shim.libc shim.own_os shim.pacing "
        "shim.process_events shim.try_lock shim.weak_table"
    ),
    "shim.tensorflow": (
        "formats shim.channel shim.clock shim.core shim.cpython shim.descriptors shim.file_size_signal "
        "shim.guard shim.libc shim.own_os shim.pacing shim.process_events shim.steps shim.try_lock "
        "shim.weak_table"
    ),
    "shim.try_lock": "shim.weak_table",
    "shim.weak_table": "shim.clock",
    "agent": "",
    "agent.__main__": "agent.daemon commands formats",
    "agent.announcements": "formats",
    "agent.attach": (
        "agent.channels agent.control agent.daemon_start agent.identity agent.launches agent.processes "
        "agent.python_command agent.rings commands formats"
    ),
    "agent.channels": "agent.old_channels agent.rings formats",
    "agent.rings": "agent.old_channels formats",
    "agent.old_channels": "formats",
    "agent.local_daemons": "agent.daemon_start commands formats",
    "agent.control": "agent.channels formats",
    "agent.diagnosis": "agent.attach agent.python_command commands formats",
    "agent.daemon": (
        "agent.announcements agent.attach agent.channels agent.control agent.daemon_start agent.folder_watch "
        "agent.identity agent.launches agent.processes agent.rings agent.spool agent.transport commands formats"
    ),
    "agent.daemon_start": "commands formats",
    "agent.folder_watch": "",
    "agent.identity": "formats",
    "agent.launcher": (
        "agent.announcements agent.channels agent.daemon_start agent.folder_watch agent.identity "
        "agent.launches agent.processes agent.python_command commands formats"
    ),
    "agent.launches": "agent.identity formats",
    "agent.processes": "commands formats",
    "agent.python_command": "",
    "agent.spool": "agent.transport commands formats",
    "agent.transport": "agent.channels agent.rings commands formats",
    "collector": "collector.api",
    "collector.__main__": "collector.daemon commands formats",
    "collector.advice": (
        "collector.growth collector.numbers collector.store.devices collector.summaries collector.tfviews"
    ),
    "collector.alert_command": "commands",
    "collector.alert_orders": "collector.alerts formats",
    "collector.alerts": "collector.growth collector.numbers collector.records collector.store.catalog formats",
    "collector.api": (
        "collector.errors collector.export collector.exporters collector.forms collector.job_tables collector.loader "
        "collector.moment collector.query collector.render collector.store collector.summaries collector.tfviews "
        "collector.view_screen collector.write_output commands formats"
    ),
    "collector.client": "agent.local_daemons collector.records collector.summaries formats",
    "collector.copier": "commands",
    "collector.copy_rounds": "collector.errors collector.store commands formats",
    "collector.daemon": (
        "collector.alert_command collector.alert_orders collector.alerts collector.copier collector.decoders "
        "collector.errors collector.ingest collector.selfstats collector.store collector.summaries commands formats"
    ),
    "collector.daemon_status": "collector.decoders collector.errors collector.store commands formats",
    "collector.decoders": "collector.errors collector.loader collector.store formats",
    "collector.documents": (
        "collector.advice collector.daemon_status collector.errors collector.imports collector.query "
        "collector.store collector.summaries collector.tfviews formats"
    ),
    "collector.errors": "formats",
    "collector.export": "collector.advice collector.errors collector.store.devices collector.tfviews formats.pb_wire",
    "collector.exporters": (
        "collector.errors collector.export collector.flops.attributes collector.forms collector.loader "
        "collector.numbers collector.query collector.store collector.summaries collector.tables collector.tfviews "
        "collector.traces commands formats"
    ),
    "collector.flops": "collector.errors collector.store.output_signatures collector.tfviews",
    "collector.forms": "collector.export collector.loader collector.query collector.render collector.tfviews",
    "collector.growth": "",
    "collector.imports": (
        "collector.decoders collector.errors collector.export collector.flops collector.ingest collector.loader "
        "collector.store collector.summaries.op_classes collector.tfviews formats"
    ),
    "collector.ingest": (
        "collector.alerts collector.decoders collector.errors collector.records collector.selfstats "
        "collector.store collector.summaries.live commands formats"
    ),
    "collector.job_tables": "collector.query collector.tables",
    "collector.loader": "",
    "collector.job_changes": "collector.client collector.records collector.store formats",
    "collector.node_client": "collector.client collector.records commands formats",
    "collector.numbers": "",
    "collector.options": "",
    "collector.query": (
        "collector.advice collector.alerts collector.errors collector.flops collector.growth collector.loader "
        "collector.numbers collector.store collector.summaries collector.tfviews commands formats"
    ),
    "collector.records": "collector.errors formats",
    "collector.render": (
        "collector.advice collector.alerts collector.numbers collector.query collector.summaries collector.tfviews "
        "commands formats"
    ),
    "collector.selfstats": "collector.errors commands formats",
    "collector.moment": "",
    "collector.store": "collector.errors collector.loader collector.moment collector.suggestion formats",
    "collector.sharing": "agent.daemon_start collector.errors collector.store commands formats",
    "collector.suggestion": "",
    "collector.summaries": (
        "collector.errors collector.numbers collector.records collector.store.catalog "
        "collector.store.columns collector.store.devices collector.store.schema collector.store.selectors "
        "collector.tfviews formats"
    ),
    "collector.tables": (
        "collector.errors collector.query collector.store collector.summaries collector.tfviews "
        "collector.traces formats"
    ),
    "collector.tfviews": (
        "collector.errors collector.store.columns collector.store.devices collector.store.schema formats"
    ),
    "collector.traces": ("collector.alerts collector.query collector.store collector.summaries collector.tfviews"),
    "collector.view_screen": "collector.render",
    "collector.write_output": (
        "collector.errors collector.export collector.exporters collector.forms collector.loader "
        "collector.query collector.render collector.tfviews formats"
    ),
    "cli": (
        "agent.attach agent.channels agent.diagnosis agent.identity agent.local_daemons agent.processes "
        "collector.api collector.client collector.daemon_status collector.documents "
        "collector.errors collector.export collector.job_changes collector.node_client "
        "collector.exporters collector.forms collector.imports collector.loader collector.moment "
        "collector.numbers collector.query collector.render collector.sharing collector.store collector.suggestion "
        "collector.summaries collector.tfviews collector.write_output commands formats web web.server"
    ),
    "web": (
        "collector.documents collector.errors collector.numbers collector.query collector.render collector.store "
        "collector.summaries collector.tfviews commands formats"
    ),
    "web.server": (
        "collector.daemon_status collector.documents collector.errors collector.exporters "
        "collector.query collector.store collector.summaries commands formats web"
    ),
}
GENERATED = {"collector.proto", "collector.decoders.proto"}
#: File -> the modules that it names in strings, to start processes with them.
STARTED_MODULES = {
    "agent/attach/helper_process.py": {"agent.attach.__main__"},
    "agent/daemon_start.py": {"agent.__main__", "collector.__main__"},
    "agent/launcher/report.py": {"cli.report"},
    "cli/serve.py": {"collector.__main__", "collector.sharing.__main__"},
    "collector/copier.py": {"collector.copy_rounds"},
    "commands/isolated.py": {"agent.launcher.run", "cli.main"},
}
#: File -> the names (`module:name`) that it imports on first use, with collector/loader.py.
LOADED_NAMES = {
    "collector/api.py": {
        "collector.export.messages:advice_message",
        "collector.exporters.profile_proto:job_pieces",
        "collector.render.html:jobs_table",
        "collector.render.html:ops_table",
    },
    "collector/forms.py": {
        "collector.export.messages:code_message",
        "collector.export.messages:op_message",
        "collector.export.messages:tree_message",
        "collector.proto.tfprof_output_pb2:",
        "collector.render.op_text:lines",
        "collector.render.tree_text:lines",
    },
    "collector/query/engine.py": {
        "collector.tfviews.code:code_view",
        "collector.tfviews.tree:graph_view",
        "collector.tfviews.op:op_view",
        "collector.tfviews.tree:scope_view",
    },
    "collector/write_output.py": {"collector.query.own_layout:ask", "collector.render.view_text:lines"},
    "cli/main.py": {
        "cli.advise:advise",
        "cli.analyze:analyze",
        "cli.alerts:alerts",
        "cli.completion:answer",
        "cli.completion:completion",
        "cli.attach:attach",
        "cli.breakdown:breakdown",
        "cli.memory:memory",
        "cli.workers:workers",
        "cli.compiled:compiled",
        "cli.config:config",
        "cli.curves:curves",
        "cli.daemons:start",
        "cli.daemons:stop",
        "cli.diff:diff_",
        "cli.doctor:doctor",
        "cli.export:export",
        "cli.follow:follow",
        "cli.host:host",
        "cli.import_:import_",
        "cli.job_names:is_job",
        "cli.jobs:jobs",
        "cli.keys:keys",
        "cli.metrics:metrics",
        "cli.profile_proto:profile_proto",
        "cli.page_report:report",
        "cli.rm:rm",
        "cli.ps:ps",
        "cli.serve:serve",
        "cli.shell:shell",
        "cli.show:show",
        "cli.source:source",
        "cli.spans:spans",
        "cli.status:status",
        "cli.steps:steps",
        "cli.store:store",
        "cli.tag:tag",
        "cli.top:top",
        "cli.trace:detach",
        "cli.trace:trace",
        "cli.views:code",
        "cli.views:graph",
        "cli.views:op",
        "cli.views:scope",
        "cli.web:web",
    },
    "cli/metrics.py": {
        "web.server.metrics:serve",
        "web.server.serve:bind_port",
        "web.server.serve:bind_socket",
    },
    "cli/web.py": {
        "web.server.serve:bind_port",
        "web.server.serve:bind_socket",
        "web.server.serve:serve",
        "web.server.serve:socket_path",
    },
}
LOADED_NAME = re.compile(r"tfprof(\.\w+)+:\w*\Z")
#: Packages that the shim may import in a job, since TensorFlow has loaded them before any patch
#: runs.
JOB_PACKAGES = ("tensorflow", "tf_keras", "keras", "wrapt")


@cache
def _packages() -> set[str]:
    return {
        ".".join(path.parent.relative_to(ROOT).parts) for top in PARTS for path in (ROOT / top).rglob("__init__.py")
    }


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def _module_of(name: str) -> str:
    """Return the module with this name, or the module that has this attribute; "" for none."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        path = ROOT.joinpath(*parts[:end])
        if path.with_suffix(".py").exists() or (path / "__init__.py").exists():
            return ".".join(parts[:end])
    return ""


def _room(module: str) -> str:
    """Return the room of a module: its package, or the module itself in a package of SPLIT."""
    package = module.rpartition(".")[0]
    return module if module in _packages() or package in SPLIT else package


@cache
def _loaded_names(path: Path) -> set[str]:
    """Return the `module:name` strings in ``path``; the name is missing if the code appends it."""
    return {
        node.value.removeprefix("tfprof.")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and LOADED_NAME.match(node.value)
    }


def _modules(path: Path, names: Iterable[str]) -> Iterator[str]:
    """Yield the modules of tfprof that have ``names``, except the packages around ``path``."""
    module = _module(path)
    for name in names:
        if name.startswith("tfprof.") and not f"{module}.".startswith(f"{name.removeprefix('tfprof.')}."):
            yield _module_of(name.removeprefix("tfprof."))


def _imported_modules(path: Path) -> Iterator[str]:
    """Yield the modules of tfprof that ``path`` imports or loads, except its own packages."""
    loaded = (f"tfprof.{target.partition(':')[0]}" for target in _loaded_names(path))
    return _modules(path, (*imports(path), *loaded))


@cache
def _arrows() -> dict[str, set[str]]:
    """Return the modules of other rooms that each room imports."""
    arrows: dict[str, set[str]] = {}
    for path in sources():
        room = _room(_module(path))
        modules = {name for name in _imported_modules(path) if _room(name) not in {room, *GENERATED}}
        arrows.setdefault(room, set()).update(modules)
    return arrows


def _is_allowed(module: str, allowed: set[str]) -> bool:
    return module in allowed or _room(module) in allowed


def test_every_room_is_in_the_table() -> None:
    assert set(ALLOWED) == {_room(_module(path)) for path in sources()} - GENERATED


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_a_room_imports_only_what_its_row_allows(room: str) -> None:
    allowed = set(ALLOWED[room].split())
    assert not {module for module in _arrows().get(room, ()) if not _is_allowed(module, allowed)}


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_a_row_allows_only_what_its_room_imports(room: str) -> None:
    imported = _arrows().get(room, set())
    assert not set(ALLOWED[room].split()) - imported - {_room(module) for module in imported}


def _without_cycles(arrows: dict[str, set[str]]) -> None:
    while arrows:
        lowest = {name for name, below in arrows.items() if not below & set(arrows)}
        assert lowest, f"in a cycle, or above a cycle: {' '.join(sorted(arrows))}"
        arrows = {name: below for name, below in arrows.items() if name not in lowest}


def test_imports_between_rooms_form_no_cycle() -> None:
    _without_cycles({room: {_room(module) for module in modules} for room, modules in _arrows().items()})


def test_imports_between_modules_form_no_cycle() -> None:
    _without_cycles({_module(path): set(_modules(path, imports(path))) for path in sources()})


def test_names_loaded_on_first_use_are_listed_and_exist() -> None:
    names_of_files = {str(path.relative_to(ROOT)): names for path in sources() if (names := _loaded_names(path))}
    assert names_of_files == LOADED_NAMES
    for name, _, function in (target.partition(":") for names in names_of_files.values() for target in names):
        module = importlib.import_module(f"tfprof.{name}")
        assert not function or callable(getattr(module, function))


#: Modules of the store that any room may import. They define what a store contains and answers,
#: and not its files on disk.
STORE_CONTENT = {
    "catalog",
    "columns",
    "devices",
    "output_signatures",
    "protocols",
    "recorded_outputs",
    "schema",
    "selectors",
    "sql_queries",
}
#: Room -> the other modules of the store that it may import.
STORE_ACCESS = {
    "cli": {"archive_import", "copying", "opening", "reader"},
    "collector.api": {"opening"},
    "collector.copy_rounds": {"archive", "copying", "durable", "opening", "reader", "row_follower", "store_files"},
    "collector.daemon": {"retention", "shared", "writer"},
    "collector.imports": {"job_import", "writer"},
    "collector.ingest": {"shared", "writer"},
    "collector.sharing": {"shared"},
    "collector.traces": {"aggregation", "rollup"},
    "web.server": {"opening", "reader"},
    # Of a folder, watching and following read only what is new.
    "collector.query": {"reader", "row_follower"},
}
#: Modules of collector.query that work on the folders of a store.
FOLDER_QUERIES = {"followed", "metrics", "store_watch", "watching"}
SQL = re.compile(r"\b(SELECT\s.*\sFROM|CREATE\s+(TABLE|VIEW)|read_parquet)\b", re.DOTALL)


def test_rooms_above_the_store_import_only_its_listed_modules() -> None:
    for room, modules in _arrows().items():
        store_modules = {
            module.removeprefix("collector.store.") for module in modules if module.startswith("collector.store.")
        }
        assert store_modules <= STORE_CONTENT | STORE_ACCESS.get(room, set()), room


def test_queries_import_the_storage_modules_only_to_work_on_folders() -> None:
    for path in sources("collector/query"):
        names = {name.removeprefix("tfprof.collector.store") for name in imports(path)} - set(imports(path))
        store_modules = {name.removeprefix(".") for name in names}
        assert path.stem in FOLDER_QUERIES or store_modules <= STORE_CONTENT | {""}, path


def test_only_the_store_has_sql_and_duckdb() -> None:
    for path in sources():
        if "collector/store" in str(path):
            continue
        assert not [name for name in imports(path) if name.split(".")[0] == "duckdb"], path
        texts = (node.value for node in ast.walk(tree(path)) if isinstance(node, ast.Constant))
        assert not [text for text in texts if isinstance(text, str) and SQL.search(text)], path


def test_modules_named_by_a_string_are_listed() -> None:
    modules = {}
    for path in sources():
        names = {
            node.value.removeprefix("tfprof.")
            for node in ast.walk(tree(path))
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_module(node.value)
        }
        if names:
            modules[str(path.relative_to(ROOT))] = names
    assert modules == STARTED_MODULES


def _is_module(text: str) -> bool:
    top, _, module = text.partition(".")
    return top == "tfprof" and (ROOT / module.replace(".", "/")).with_suffix(".py").exists()


def test_only_the_file_of_parity_decides_by_compat_or_exact() -> None:
    def is_query(node: ast.AST) -> bool:
        if isinstance(node, ast.Compare):
            operands = (node.left, *node.comparators)
            return any(isinstance(operand, ast.Constant) and operand.value in COMPAT for operand in operands)
        return isinstance(node, ast.Attribute) and node.attr == "exact"

    files = {path.relative_to(ROOT).as_posix() for path in sources() for node in ast.walk(tree(path)) if is_query(node)}
    assert files == {"collector/tfviews/parity.py"}


def test_imports_of_tfprof_are_relative() -> None:
    assert not [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sources()
        for node in ast.walk(tree(path))
        if (isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").startswith("tfprof"))
        or (isinstance(node, ast.Import) and any(alias.name.startswith("tfprof") for alias in node.names))
    ]


@pytest.mark.parametrize("room", ["formats", "commands", "shim"])
def test_formats_commands_and_shim_import_only_the_standard_library_and_packages_of_the_job(room: str) -> None:
    forbidden = [
        f"{path}: {name}"
        for path in sources(room)
        for name in imports(path)
        if name.split(".")[0] not in sys.stdlib_module_names | {"tfprof", "_tfprof", "sitecustomize"}
        and not name.startswith(JOB_PACKAGES)
    ]
    assert not forbidden


def test_the_launcher_starts_without_third_party_packages() -> None:
    import subprocess

    code = "import sys, tfprof.agent.launcher.run; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    # asyncio is part of the standard library, but slow to import.
    forbidden = {"zmq", "psutil", "pyarrow", "duckdb", "click", "rich", "google.protobuf", "asyncio"}
    assert not forbidden & set(loaded)


def test_the_collector_daemon_never_loads_the_query_engine() -> None:
    import subprocess

    code = "import sys, tfprof.collector.daemon; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "duckdb" not in loaded
    assert "rich" not in loaded
