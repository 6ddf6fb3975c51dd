"""The files of the page: vendored ones are those of the lock, and the others can be joined.

Tests web/assets.py, web/bundle.py.
"""

import ast
import hashlib
import importlib.util
import json
import re
from pathlib import Path

import pytest
from fakes.command import caller
from house.tree import ROOT, imports, sources
from tfprof.web import assets, bundle

STATIC = ROOT / "web/static"
VENDOR = STATIC / "vendor"
LICENCES = {"MIT", "Apache-2.0"}


def test_the_vendored_files_are_those_of_the_lock() -> None:
    rows = json.loads((VENDOR / "lock.json").read_text())
    assert {row["file"] for row in rows} | {"lock.json"} == {path.name for path in VENDOR.iterdir()}
    for row in rows:
        assert hashlib.sha256((VENDOR / row["file"]).read_bytes()).hexdigest() == row["sha256"], row["file"]
        assert row["licence"] in LICENCES
        assert all((row["version"], row["package"], row["path"]))


def test_all_files_of_the_page_are_small() -> None:
    assert sum(path.stat().st_size for path in STATIC.rglob("*") if path.is_file()) < 500_000


def test_the_files_are_installed() -> None:
    (patterns,) = re.findall(r"^tfprof\.web = py\.typed, (.*)$", (ROOT / "setup.cfg").read_text(), re.MULTILINE)
    matched = {path for pattern in patterns.split(", ") for path in (ROOT / "web").glob(pattern) if path.is_file()}
    assert matched == {path for path in STATIC.rglob("*") if path.is_file()}


def test_every_module_is_part_of_the_page_and_none_imports_in_another_form() -> None:
    modules = {name for name in assets.names() if name.endswith(".js") and name != "vendor/uplot.js"}
    assert set(bundle.modules("main.js")) == modules
    for name in modules - {"vendor/preact-htm.js"}:
        text = assets.text(name)
        lines = [line for line in text.splitlines() if re.match(r"\s*(import|export)\b", line)]
        form = r'import \{[^}]*\} from "[^"]+";|export (async )?(function|class|const|let) .*'
        assert [line for line in lines if not re.fullmatch(form, line)] == [], name
        assert "import(" not in text


def test_the_script_of_a_report_has_no_end_of_an_element() -> None:
    script = bundle.script("main.js") + assets.text("vendor/uplot.js")
    assert not re.search(r"</script|<!--", script, re.IGNORECASE)
    assert not re.search("</style", "".join(map(assets.text, ["page.css", "tokens.css", "vendor/uplot.css"])))


def test_the_page_names_no_other_host() -> None:
    allowed = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml", "https://github.com/leeoniya/uPlot"}
    for name in assets.names():
        links = set(re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}[^\s\"'`)]*", assets.text(name)))
        assert {link for link in links if link.startswith("http")} <= allowed, name


def test_only_the_server_imports_its_packages() -> None:
    for path in sources():
        names = {name.partition(".")[0] for name in imports(path)}
        assert not names & {"starlette", "uvicorn", "anyio"} or path.is_relative_to(ROOT / "web/server"), path


def test_a_circle_of_modules_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"a.js": 'import { b } from "./b.js";', "b.js": 'import { a } from "./a.js";'}
    monkeypatch.setattr(bundle, "text", texts.__getitem__)
    with pytest.raises(ValueError, match=r"a\.js b\.js a\.js"):
        bundle.modules("a.js")


def test_the_server_says_what_to_install(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    status, out, err = caller(capsys)("web")
    assert (status, out) == (2, "")
    assert "pip install 'tfprof[web]'" in err
    assert "[no-web-packages]" in err


def test_no_handler_makes_a_document_of_its_own() -> None:
    tree = ast.parse(Path(ROOT / "web/documents.py").read_text())
    made = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert {name for name in made if name.endswith("_document")} == {
        f"{name}_document"
        for name in (
            "advice",
            "alerts",
            "breakdown",
            "compiled",
            "curves",
            "diff",
            "host",
            "jobs",
            "memory",
            "show",
            "source",
            "spans",
            "steps",
            "view",
        )
    }
