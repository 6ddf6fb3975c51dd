"""The table of exporters: every type of file that tfprof writes for other programs.

Commands, help, completion and the API use this table.
"""

from __future__ import annotations

from typing import NamedTuple

#: What a file shows: the result of a view, one job, or one or more jobs.
VIEW, JOB, JOBS = "view", "job", "jobs"
#: Options that only some formats have.
STEPS, KIND, DEVICE, TABLE, SINCE = "steps", "kind", "device", "table", "since"
_SELECTION = (STEPS, KIND, DEVICE, SINCE)
#: Names of tables, for formats of tables; the first one is the default.
TABLES = ("executions", "ops", "nodes", "steps", "spans", "host", "events", "graph")
DEFAULT_TABLE = TABLES[0]
#: The end of a name that asks for compression.
GZIP = ".gz"
_BINARY = "application/octet-stream"


class Exporter(NamedTuple):
    """A type of file.

    ``title``: what the file contains; ``reader``: the programs that read it. ``subject``: VIEW, JOB
    or JOBS. ``module``: the module in collector/exporters/. For a view, its function `files` gets
    the engine and the answer, and yields a `File` for each file. Otherwise its function `pieces`
    gets a `Request`, and yields the bytes. ``suffixes``: ends of file names that mean this format,
    also with `.gz` if it ``can_compress``. ``options``: the options of `tfprof export` that it has.
    ``is_folder``: the exporter writes a folder. Its module then has `folder`, which returns a
    `Folder`, instead of `pieces`. ``package``: a package that the exporter needs; ``extra``: the
    extra of pip that installs the package.

    These are for views only. ``views``: the views that support the type. ``refusal``: the message
    for other views; it is the TF profiler's if there is one. ``remark``: a remark for the help.
    """

    name: str
    title: str
    subject: str
    module: str
    suffixes: tuple[str, ...] = ()
    media_type: str = _BINARY
    reader: str = ""
    options: tuple[str, ...] = ()
    can_compress: bool = False
    is_folder: bool = False
    package: str = ""
    extra: str = ""
    views: frozenset[str] = frozenset()
    refusal: str = ""
    remark: str = ""


#: All exporters, in the order of the help. Names are unique among the exporters of views, and among
#: all others.
EXPORTERS = (
    Exporter(
        "file",
        "the text of a view",
        VIEW,
        "view_file",
        media_type="text/plain",
        views=frozenset({"scope", "graph", "op", "code"}),
    ),
    Exporter(
        "timeline",
        "a view as a flame graph, or the executions of its steps",
        VIEW,
        "view_timeline",
        media_type="application/json",
        views=frozenset({"scope", "graph", "code"}),
        refusal="op view doesn't support timeline yet. Consider graph/scope/code view.",
        remark=" for a trace",
    ),
    Exporter(
        "pprof",
        "the code view with one counter",
        VIEW,
        "view_pprof",
        views=frozenset({"code"}),
        refusal="Only 'code' view supports pprof output now.",
    ),
    Exporter(
        "perfetto",
        "timeline: devices, steps, events, curves",
        JOBS,
        "perfetto",
        (".perfetto-trace", ".pftrace"),
        reader="Perfetto",
        options=_SELECTION,
        can_compress=True,
    ),
    Exporter(
        "chrome",
        "the same timeline as JSON",
        JOBS,
        "chrome",
        (".json",),
        "application/json",
        "Perfetto, chrome://tracing",
        _SELECTION,
        can_compress=True,
    ),
    Exporter(
        "speedscope",
        "profiles by scope and line, and a timeline of each lane",
        JOBS,
        "speedscope",
        (".speedscope.json",),
        "application/json",
        "speedscope",
        _SELECTION,
        can_compress=True,
    ),
    Exporter(
        "pprof",
        "executions by stack: count, time, bytes, operations",
        JOBS,
        "pprof",
        (".pb", ".pprof"),
        reader="pprof, go tool pprof",
        options=_SELECTION,
        can_compress=True,
    ),
    Exporter(
        "tensorboard",
        "a folder for the profile page: steps, ops, input, timeline",
        JOBS,
        "tensorboard",
        reader="TensorBoard, XProf",
        options=_SELECTION,
        is_folder=True,
    ),
    Exporter(
        "otlp",
        "steps and phases as OpenTelemetry spans",
        JOBS,
        "otlp",
        (".otlp",),
        "application/x-protobuf",
        "OpenTelemetry collectors",
        (STEPS, SINCE),
        can_compress=True,
    ),
    Exporter(
        "otlp-json",
        "the same spans as lines of JSON",
        JOBS,
        "otlp_json",
        (".otlp.jsonl",),
        "application/x-ndjson",
        "OpenTelemetry collectors",
        (STEPS, SINCE),
        can_compress=True,
    ),
    Exporter(
        "parquet",
        "a table of the jobs (--table)",
        JOBS,
        "parquet",
        (".parquet",),
        "application/vnd.apache.parquet",
        "DuckDB, pandas, polars, Spark",
        (*_SELECTION, TABLE),
    ),
    Exporter(
        "csv",
        "the same tables as text",
        JOBS,
        "csv",
        (".csv",),
        "text/csv",
        "spreadsheets",
        (*_SELECTION, TABLE),
        can_compress=True,
    ),
    Exporter(
        "arrow",
        "the same tables in Arrow's file format",
        JOBS,
        "arrow",
        (".arrow", ".feather"),
        "application/vnd.apache.arrow.file",
        "pandas, polars, pyarrow",
        (*_SELECTION, TABLE),
    ),
    Exporter(
        "profile",
        "a folder with summaries, and a timeline and StepStats of each step",
        JOB,
        "profile_tree",
        ("/",),
        reader="people, scripts, TensorFlow, Perfetto",
        options=_SELECTION,
        is_folder=True,
    ),
    Exporter(
        "memory-flow",
        "the memory of one step over time, as a picture",
        JOB,
        "memory_flow",
        (".svg",),
        "image/svg+xml",
        "browsers",
        _SELECTION,
    ),
    Exporter(
        "memory-flow-png",
        "the same picture as pixels, with the extra `png`",
        JOB,
        "memory_flow_png",
        (".png",),
        "image/png",
        "everything",
        _SELECTION,
        package="resvg_py",
        extra="png",
    ),
    Exporter(
        "megengine",
        "time, computation, memory and shapes of the operators of a step",
        JOBS,
        "megengine",
        media_type="application/json",
        reader="MegEngine's profile_analyze",
        options=(STEPS, KIND, DEVICE),
    ),
    Exporter(
        "tfprof",
        "the whole job, for tfprof elsewhere",
        JOB,
        "archive",
        (".tfprof",),
        reader="tfprof import",
    ),
    Exporter(
        "profile-proto",
        "executions, shapes and stacks as a ProfileProto",
        JOB,
        "profile_proto",
        reader="the TF profiler, tfprof import",
        options=(STEPS, KIND),
    ),
    Exporter(
        "op-log",
        "operations, types and stacks of nodes as an OpLogProto",
        JOB,
        "op_log",
        reader="the TF profiler, tfprof import",
    ),
)
#: The exporters of views, and those of `tfprof export`, by name.
VIEW_EXPORTERS = {row.name: row for row in EXPORTERS if row.subject == VIEW}
FORMATS = {row.name: row for row in EXPORTERS if row.subject != VIEW}


def uncompressed(exporter: Exporter, path: str) -> str:
    """Return ``path`` without the `.gz` that asks ``exporter`` for compression."""
    return path[: -len(GZIP)] if exporter.can_compress and path.endswith(GZIP) else path


def exporter_of(path: str) -> Exporter | None:
    """Return the exporter that the end of ``path`` means, None if there is none."""
    matches = [
        (len(suffix), row)
        for row in FORMATS.values()
        for suffix in row.suffixes
        if uncompressed(row, path).endswith(suffix)
    ]
    return max(matches, key=lambda match: match[0])[1] if matches else None
