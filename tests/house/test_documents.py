"""The documents that `--json` prints are made in collector/documents and have a JSON Schema.

Tests collector/documents/table.py.
"""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from fakes.json_schema import FOLDER, generator, validated
from house.tree import ROOT, imports, sources, tree
from jsonschema import Draft202012Validator, ValidationError
from tfprof.cli.main import COMMANDS
from tfprof.collector.documents.table import DOCUMENTS
from tfprof.collector.loader import load

TYPES = {generator().name_of(kind): kind for kinds in DOCUMENTS.values() for kind in kinds}


def _options(command: click.Command) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts}


def test_each_command_with_json_has_documents() -> None:
    commands = {name: load(target[0]) for name, target in COMMANDS.items()}
    with_json = {
        name
        for name, command in commands.items()
        if isinstance(command, click.Command) and "--json" in _options(command)
    }
    assert with_json == set(DOCUMENTS)


@pytest.mark.parametrize("name", TYPES)
def test_the_schema_of_each_document_is_current(name: str) -> None:
    kind = TYPES[name]
    assert (FOLDER / generator().file_name(kind)).read_text() == generator().text_of(kind), "make schemas"


def test_the_page_of_fields_is_current() -> None:
    assert (ROOT / "docs" / "json-fields.md").read_text() == generator().page(), "make schemas"


def test_there_is_no_other_schema() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {generator().file_name(kind) for kind in TYPES.values()}


@pytest.mark.parametrize("name", TYPES)
def test_each_schema_is_one_and_admits_no_other_field(name: str) -> None:
    schema = generator().schema_of(TYPES[name])
    Draft202012Validator.check_schema(schema)
    for part in (schema, *schema.get("$defs", {}).values()):
        if "properties" in part:
            assert part["additionalProperties"] is False
            assert part["description"]
            assert set(part["required"]) == set(part["properties"])
            assert all(field.get("description") for field in part["properties"].values())


def test_no_document_is_made_from_an_internal_class_by_itself() -> None:
    for path in sources("collector/documents"):
        names = {
            node.attr if isinstance(node, ast.Attribute) else node.id
            for node in ast.walk(tree(path))
            if isinstance(node, (ast.Attribute, ast.Name))
        }
        assert not names & {"asdict", "_asdict", "vars", "__dict__"}, path


def _calls(path: Path, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            yield node


def _functions_of_documents(path: Path) -> set[str]:
    return {
        alias.name
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom) and ".documents." in f".{node.module}."
        for alias in node.names
    }


def test_commands_print_only_documents_of_the_room() -> None:
    printing = 0
    for path in sources("cli"):
        for call in (*_calls(path, "print_json"), *_calls(path, "line")):
            document = call.args[0]
            assert isinstance(document, ast.Call), f"{path}:{call.lineno}"
            assert isinstance(document.func, ast.Name)
            assert document.func.id in _functions_of_documents(path), f"{path}:{call.lineno}"
            printing += 1
    assert printing > 10


def test_no_command_and_no_screen_makes_json_itself() -> None:
    users = {
        path.relative_to(ROOT).as_posix() for path in sources("cli", "collector/render") if "json" in imports(path)
    }
    assert not users


def test_an_undocumented_field_fails() -> None:
    document = {"schema": "tfprof.tag/1", "job": "7f3a112233445566", "tags": []}
    assert validated(json.dumps(document)) == document
    for wrong in ({**document, "colour": "red"}, {"schema": "tfprof.tag/1", "tags": []}, {**document, "tags": [1]}):
        with pytest.raises(ValidationError):
            validated(json.dumps(wrong))
