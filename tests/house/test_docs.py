"""The documentation matches the code.

Tests formats/layout.py.
"""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from house.tree import ROOT, slugs
from matrix import table
from matrix.rows import JOBS, LIMITS, ROWS
from matrix.versions import VERSIONS
from tfprof.collector.store import schema
from tfprof.formats import layout, settings, version, wire

DOCS = ROOT / "docs"
PAGES = sorted(path for path in (*ROOT.glob("*.md"), *DOCS.rglob("*.md")) if "_build" not in path.parts)


def prose(text: str, with_tables: bool = False) -> Iterator[str]:
    """Yield the lines of a page without code blocks and, unless ``with_tables``, without tables."""
    in_block = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            in_block = not in_block
        elif not in_block and not line.startswith("    ") and (with_tables or not line.startswith("|")):
            yield line


def anchors(text: str) -> set[str]:
    """Return the anchors that GitHub and Sphinx give to a page's headings."""
    headings = [line.lstrip("#").strip() for line in prose(text) if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


#: Slugs that no code uses any more, but that are in stores of old releases.
STORED_SLUGS = {"page-faults"}


def test_slugs_and_paragraphs_of_the_errors_page_match() -> None:
    headings = set(re.findall(r"^## `([a-z0-9-]+)`", (DOCS / "errors.md").read_text(), re.MULTILINE))
    assert not slugs() - headings, "slugs without a paragraph in docs/errors.md"
    assert not headings - slugs() - STORED_SLUGS, "paragraphs about slugs that no code uses"


@pytest.mark.parametrize(
    ("page", "number"),
    [
        ("channel.md", version.CHANNEL_VERSION),
        ("wire.md", version.WIRE_VERSION),
        ("store.md", schema.STORE_VERSION),
    ],
)
def test_each_format_page_states_the_version_of_the_code_and_its_history(page: str, number: int) -> None:
    text = (DOCS / page).read_text()
    assert re.search(rf"^Version {number}\b", text, re.MULTILINE)
    history = text.split("## History")[1]
    assert re.findall(r"^(\d+)\.", history, re.MULTILINE) == [str(n) for n in range(1, number + 1)]


def test_the_wire_page_lists_every_message_type() -> None:
    listed_types = {
        (int(n), name)
        for n, name in re.findall(r"^\| (\d+) ([A-Z_]+) \|", (DOCS / "wire.md").read_text(), re.MULTILINE)
    }
    types = {name: value for name, value in vars(wire).items() if name.isupper() and isinstance(value, int)}
    for name in ("BODY_MAX", "COUNTED_FROM", "WIRE_VERSION", "_REPEATED_MAX", "_UNRELEASED_VERSION"):
        types.pop(name)
    assert listed_types == {(value, name) for name, value in types.items()}


def test_the_channel_page_states_the_offsets_of_the_layout() -> None:
    text = (DOCS / "channel.md").read_text()
    kinds_size = 8 * layout.KINDS_MAX
    for start, end in (
        (0, layout.COUNTS_AT),
        (layout.COUNTS_AT, layout.COUNTS_AT + kinds_size),
        (layout.TIMES_AT, layout.TIMES_AT + kinds_size),
        (layout.FAILED_AT, layout.FAILED_AT + kinds_size),
        (min(layout.AGENT_WORDS.values()), layout.RANGES_AT),
        (layout.RANGES_AT, layout.RANGES_AT + 16 * layout.RANGES_MAX),
        (layout.FAULT_AT, layout.PAGE),
        (layout.HELLO_AT, layout.HELLO_AT + layout.HELLO_MAX),
        (layout.SPANS_AT, layout.RING_AT),
    ):
        assert f"\n| {start} – {end - 1} | " in text
    assert f"\n| {layout.RING_AT} – end | " in text
    assert f"{layout.SPAN_COUNT:,} entries" in text
    for kind in (layout.GRAPH, layout.FRAMES, layout.RUN_METADATA, layout.XSPACE, layout.REFUSED):
        assert f"\n| {kind} `{layout.RECORD_NAMES[kind]}` |" in text
    listed_kinds = re.findall(r"(\d+) `(\w+)`", text.partition("| kind of span |")[2].partition("\n\n")[0])
    assert {int(kind): name for kind, name in listed_kinds} == layout.SPAN_NAMES
    for flag in (layout.FLAG_TRACED, layout.FLAG_FAILED, layout.FLAG_SETUP, layout.FLAG_SAMPLED):
        assert f"\n| {flag} | the " in text
    for structure in (layout.SPAN, layout.RECORD, layout.XSPACE_HEAD):
        assert f"`{structure.format}`" in text


def test_every_setting_is_documented() -> None:
    text = (DOCS / "settings.md").read_text()
    rows = settings.SETTINGS.values()
    missing = [
        row.name for row in rows if f"| `{row.name}` | `{row.variable}` |" not in text or row.sentence not in text
    ]
    assert not missing


def test_every_page_is_linked_from_the_readme_or_the_index() -> None:
    links = (ROOT / "README.md").read_text() + (DOCS / "index.md").read_text()
    names = [str(page.relative_to(DOCS)) for page in PAGES if page.is_relative_to(DOCS)]
    assert [name for name in names if name != "index.md" and f"({name}" not in links] == []


def test_every_page_is_in_the_contents() -> None:
    lines = (DOCS / "index.md").read_text().splitlines()
    pages = {path.relative_to(DOCS).with_suffix("").as_posix() for path in PAGES if DOCS in path.parents}
    assert [page for page in pages - {"index"} if not any(fnmatchcase(page, line) for line in lines)] == []


def test_no_page_has_the_marks_of_an_unfinished_merge() -> None:
    marks = re.compile("^(<{7} |={7}$|>{7} )", re.MULTILINE)
    assert [page for page in PAGES if marks.search(page.read_text())] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_prose_is_wrapped_at_100_columns(page: Path) -> None:
    text = page.read_text().replace(table.markdown(), "")
    assert [line for line in prose(text) if len(line) > 100] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file_and_to_a_heading(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", "\n".join(prose(page.read_text(), with_tables=True))):
        name, _, anchor = target.partition("#")
        if ":" in name:
            continue
        path = page.parent / name if name else page
        if not path.exists() or (anchor and anchor not in anchors(path.read_text())):
            broken.append(target)
    assert broken == []


def test_the_tracing_page_has_the_current_matrix() -> None:
    assert table.markdown() in (DOCS / "tracing.md").read_text()


def test_the_matrix_names_only_existing_rows_limitations_and_jobs() -> None:
    names = {row.name for row in ROWS}
    assert len(names) == len(ROWS)
    assert {name for version in VERSIONS for name in version.ci_rows or ()} <= names
    assert {limit for row in ROWS for limit in row.limits.values()} == set(LIMITS)
    scripts = {row.script for row in ROWS}
    assert scripts == {path.name for path in JOBS.glob("[a-z]*.py")}


#: Example -> line number that the pages show -> text in this line.
EXAMPLES = {
    "session_digits.py": {
        13: "conv2d",
        16: "conv2d",
        19: "matmul",
        20: "softmax",
        37: "network(",
        38: "minimize",
        53: "main()",
    },
    "keras_digits.py": {31: "fit("},
}


def test_the_pages_show_current_line_numbers_of_the_examples() -> None:
    for name, texts in EXAMPLES.items():
        code = (ROOT / "examples" / name).read_text().splitlines()
        lines = {int(number) for page in PAGES for number in re.findall(rf"{name}:(\d+)", page.read_text())}
        assert lines == set(texts)
        assert not {number: text for number, text in texts.items() if text not in code[number - 1]}
