"""The documents that `--json` prints: a public format (docs/json.md).

A module is a noun. It has the types of a document, and a plain function that makes the document
from a frozen answer. The types are TypedDicts, from which `make schemas` writes the JSON Schemas in
docs/schemas:

- The first field is ``schema``, the name of the format and its version, ``tfprof.jobs/1``. The
  version changes when a field is removed or its meaning changes, not when one is added.
- Each field is written out in its type; none comes from an internal class by itself. It has a
  sentence that says what it is, and its unit is in its name (``_ns``, ``_bytes``, ``_s``). A share
  is a fraction of 1.
- Each field is always present. It is null if it is unknown.
- Lists of rows are sorted by what the text shows, most first.

The functions read nothing: a query returns the answer, for the text and for the document.
`table.DOCUMENTS` lists the documents of each command.
"""
