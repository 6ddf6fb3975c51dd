"""A job's page, or the difference of two jobs, as one file with the modules and documents."""

import base64
import gzip
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from ..collector.documents.curves import curves_document
from ..collector.query.curves import job_curves
from ..collector.store.protocols import JobReader, StoreReader
from ..formats.version import VERSION
from . import assets, bundle
from .caps import LADDER, Caps, memory_rows, op_rows, program_rows, shortened, tree_rows
from .documents import document

#: Maximum size of a report (bytes).
SIZE_MAX: Final = 2 * 10**6
_STYLES: Final = ("vendor/uplot.css", "tokens.css", "page.css")
_CHART: Final = "vendor/uplot.js"
_ENTRY: Final = "main.js"
#: Documents of a job's page.
_NAMES: Final = (
    *("show", "advise", "steps", "alerts", "spans", "breakdown", "memory"),
    *("compiled", "op", "scope", "code", "source"),
)
#: The functions that shorten documents. Of alerts and events, the latest ones are kept.
_SHORTENERS: Final[Mapping[str, Callable[[Mapping[str, Any], Caps], Mapping[str, Any]]]] = {
    "show": lambda show, caps: {**show, "top_ops": {**show["top_ops"], "ops": show["top_ops"]["ops"][: caps.ops]}},
    "spans": lambda spans, caps: {**spans, **{name: spans[name][: caps.rows] for name in ("spans", "activities")}},
    "alerts": lambda alerts, caps: {**alerts, "alerts": alerts["alerts"][-caps.rows :]},
    "steps": lambda steps, caps: {**steps, "events": steps["events"][-caps.rows :]},
    "op": op_rows,
    "memory": memory_rows,
    "compiled": program_rows,
    "scope": tree_rows,
    "code": tree_rows,
}


def job_report(store: StoreReader, job: JobReader) -> str:
    """Return the page of ``job`` as HTML, at most SIZE_MAX long."""
    uid = job.info.hex
    whole: dict[str, Mapping[str, Any]] = {name: document(store, name, (uid,), {}) for name in _NAMES}
    return _smallest(f"/job/{uid}", lambda caps: dict(_job_documents(job, whole, caps)))


def diff_report(store: StoreReader, before: JobReader, after: JobReader) -> str:
    """Return the page with the difference of two jobs as HTML."""
    jobs = (before.info.hex, after.info.hex)
    difference = document(store, "diff", jobs, {})
    path = f"/diff/{jobs[0]}/{jobs[1]}"

    def documents(caps: Caps) -> dict[str, str]:
        ops, facts = difference["ops"][: caps.ops], difference["differences"][: caps.rows]
        return {f"/api{path}": _json(shortened({**difference, "ops": ops, "differences": facts}, caps))}

    return _smallest(path, documents)


def _smallest(path: str, documents: Callable[[Caps], Mapping[str, str]]) -> str:
    """Return the page with as much as fits."""
    text = ""
    for caps in LADDER:
        text = _html(path, caps, documents(caps))
        if len(text.encode()) <= SIZE_MAX:
            break
    return text


def _job_documents(job: JobReader, whole: Mapping[str, Mapping[str, Any]], caps: Caps) -> Iterator[tuple[str, str]]:
    """Yield (path, text) of the documents of a job's page."""
    base = f"/api/job/{job.info.hex}"
    for name, content in whole.items():
        short = _SHORTENERS[name](content, caps) if name in _SHORTENERS else content
        yield f"{base}/{name}", _json(shortened(short, caps))
    curves = curves_document(job_curves(job, caps.points))
    yield f"{base}/curves", _json(shortened({**curves, "step_curves": curves["step_curves"][: caps.kinds]}, caps))


def _json(content: Any) -> str:
    return json.dumps(content, separators=(",", ":"))


def _html(path: str, caps: Caps, documents: Mapping[str, str]) -> str:
    head = {"page": path, "version": VERSION, "made_ns": time.time_ns(), "limits": caps.sentence()}
    texts = ",".join(f"{json.dumps(name)}:{text}" for name, text in documents.items())
    data = f'{_json(head)[:-1]},"documents":{{{texts}}}}}'
    packed = base64.b64encode(gzip.compress(data.encode(), 9, mtime=0)).decode()
    styles, scripts = [*map(assets.text, _STYLES)], [assets.text(_CHART), bundle.script(_ENTRY)]
    policy = (
        f"default-src 'none'; script-src {_hashes(scripts)}; style-src {_hashes(styles)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return "".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            '<meta name="color-scheme" content="light dark">\n<title>tfprof report</title>\n',
            *(f"<style>{text}</style>\n" for text in styles),
            '</head>\n<body>\n<div id="app"><noscript>This page needs JavaScript.</noscript></div>\n',
            f'<script type="application/octet-stream" id="data">{packed}</script>\n',
            *(f"<script>{text}</script>\n" for text in scripts),
            "</body>\n</html>\n",
        )
    )


def _hashes(texts: Sequence[str]) -> str:
    return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in texts)
