"""What the session runs of a job fetch.

The key of a run has a hash of the fetched names. In a traced run, one op for each fetch returns its
value, and the names are read from these ops.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from ...formats import layout, run_keys
from ..store.columns import integers, pc, row_tuples
from ..store.protocols import JobReader
from ..store.schema import NODE, NONE_ID
from ..summaries.steps import RunName
from ..tfviews.nodes import interned_texts

#: The op that returns a fetch: the node, its output, and the position of the fetch.
_RETURNED: Final = re.compile(r"_retval_(?P<node>.+)_(?P<output>\d+)_(?P<position>\d+)", re.DOTALL)
#: Maximum number of calls that get names. A graph that grows in a loop has a new call for each run.
_CALLS_MAX: Final = 64


def run_names(job: JobReader) -> dict[int, RunName]:
    """Return what the traced session runs of ``job`` fetch, by key; none of an imported job."""
    first_traces: dict[int, int] = {}
    for kind, key, trace in row_tuples(job.table("traces", ("trace", "kind", "key")), "kind", "key", "trace"):
        if kind in layout.RUN_KINDS and key:
            first_traces.setdefault(key, trace)
    if not first_traces:
        return {}
    names = interned_texts(job.table("names"), NODE)
    runs = {key: _run_name(job, key, trace, names) for key, trace in list(first_traces.items())[:_CALLS_MAX]}
    return {key: run for key, run in runs.items() if run}


def _run_name(job: JobReader, key: int, trace: int, names: Mapping[int, str]) -> RunName | None:
    """Return what the run ``trace`` fetches, None if it is unknown."""
    rollup = job.rollup((trace,))
    ran = rollup.filter(pc.not_equal(rollup["device"], NONE_ID))
    nodes = {names[number] for number in integers(ran["node"]) if number in names}
    returned = [match for node in nodes if (match := _RETURNED.fullmatch(node))]
    returned.sort(key=lambda match: int(match["position"]))
    _, fetches, targets = run_keys.call_counts(key)
    if min(len(returned), run_keys.COUNT_MAX) != fetches:
        return None
    tensors = [f"{match['node']}:{match['output']}" for match in returned]
    target = _target(key, tensors, nodes) if targets == 1 else ""
    fetched = tuple(name.removesuffix(":0") for name in tensors)
    return RunName(fetched, target) if fetched or target else None


def _target(key: int, fetches: Sequence[str], nodes: Collection[str]) -> str:
    """Return the target of a run, the node whose name has the hash in ``key``; else ``""``."""
    feeds, _, _ = run_keys.call_counts(key)
    keys = {node: run_keys.with_feeds(run_keys.signature_key(fetches, [node]), feeds) for node in sorted(nodes)}
    return next((node for node, node_key in keys.items() if node_key == key), "")
