"""Rules for the files of a store: only `collector/store/store_files.py` opens them for reading.

A store may contain pipes, links and files without end. No other code may open a file by its path.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from house.tree import ROOT, sources, tree

#: Functions and classes that open a file by its path.
OPENERS = frozenset(
    {"open", "open_code", "openat", "mmap", "read_bytes", "read_text", "write_bytes", "write_text", "copyfile", "copy"}
    | {"OSFile", "memory_map", "input_stream", "FileSystemDataset", "dataset", "open_file_reader"}
    | {"ParquetFile", "ParquetDataset", "ParquetWriter", "read_table", "read_metadata", "read_schema", "from_parquet"}
    | {"read_parquet", "parquet_scan", "read_csv", "read_json", "read_blob"}
)
CALL_IN_TEXT = re.compile(r"\b(\w+)\(")
#: File -> the openers in it.
EXPECTED = {
    # Reading: the file is checked first, and the libraries get the descriptor or the checked path.
    "collector/store/store_files.py": {"open"},
    "collector/store/segment.py": {"ParquetFile", "ParquetWriter"},  # it writes into memory
    "collector/store/sql.py": {"read_parquet"},
    # An archive: entries of a ZIP file, a file that the user names, and a file below /proc.
    "collector/store/archive.py": {"open"},
    "collector/store/archive_import.py": {"open", "read_text"},
    # Writing: new files, and files of this user; folders.
    "collector/store/durable.py": {"open"},
    # Figures of running jobs in the collector's runtime folder.
    "collector/query/watching.py": {"read_json"},
    # Source files of jobs, which are no part of a store.
    "collector/query/job_source.py": {"open"},
}


def _openers(path: Path) -> Iterator[str]:
    """Yield the openers that are called in ``path``, or named in its SQL."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            yield from {name} & OPENERS
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from set(CALL_IN_TEXT.findall(node.value)) & OPENERS


def test_files_of_a_store_are_opened_in_one_place() -> None:
    openers = {
        path.relative_to(ROOT).as_posix(): names
        for path in sources("collector/store", "collector/query")
        if (names := set(_openers(path)))
    }
    assert openers == EXPECTED
