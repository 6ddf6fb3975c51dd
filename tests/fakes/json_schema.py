"""The JSON Schemas of the documents that `--json` prints."""

import json
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

from jsonschema import Draft202012Validator

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "schemas"


@cache
def generator() -> ModuleType:
    """Return tools/schemas as a module."""
    loader = SourceFileLoader("tools_schemas", str(ROOT / "tools" / "schemas"))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not JSON")


def validated(text: str) -> Any:
    """Return the document that ``text`` has; it must be valid by the schema that it names.

    Raises ValueError, and jsonschema.ValidationError.
    """
    document = json.loads(text, parse_constant=_no_number)
    schema = json.loads((FOLDER / f"{document['schema'].replace('/', '-')}.json").read_text())
    Draft202012Validator(schema).validate(document)
    return document
