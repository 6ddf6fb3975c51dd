"""Session runs by purpose: each set of fetches and targets is examined once per session."""

from __future__ import annotations

from typing import Any, Sequence

from ...formats import layout
from ...formats.run_keys import signature_key
from .. import core
from ..clock import identity, mono
from ..guard import guarded
from ..pacing.tracker import Tracker
from ..weak_table import WeakTable
from .run_kinds import kind_of

#: Attributes of a session: the signature of its last run, and those of all its runs.
LAST_RUN, _ALL_RUNS = "_tfprof_run", "_tfprof_runs"
_SIGNATURES_MAX = 256  # maximum signatures remembered per session


class RunSignature(object):
    """Span key (without feeds) and tracker of runs with the same ``fetches`` and ``targets``."""

    __slots__ = ("fetches", "key", "targets", "tracker")

    def __init__(self, fetches: list[Any] | None, targets: list[Any], key: int, tracker: Tracker) -> None:
        self.fetches = fetches
        self.targets = targets
        self.key = key
        self.tracker = tracker


class RunSignatures(object):
    """The signatures of this process's session runs."""

    def __init__(self, tf_session: Any) -> None:
        self.tf_session = tf_session
        self.trackers = {kind: core.tracker(kind) for kind in layout.RUN_KINDS}
        self.unknown_signature = RunSignature(None, [], 0, self.trackers[layout.RUN])  # matches no run
        self._sessions = WeakTable()  # sessions that have our attributes
        core.at_disarm(self._forget)

    def find(self, session: Any, fetches: list[Any], targets: list[Any]) -> RunSignature:
        """Return the signature of a run, and remember it as that of the last run of ``session``."""
        if core.state() is None:  # already disarmed
            return self.unknown_signature
        signature = self._find(session, fetches, targets)
        if signature is None:
            signature = RunSignature(list(fetches), list(targets), 0, self.unknown_signature.tracker)
        vars(session)[LAST_RUN] = signature
        return signature

    def _forget(self) -> None:
        for session in self._sessions.existing():
            for name in (LAST_RUN, _ALL_RUNS):
                vars(session).pop(name, None)

    def of_names(self, graph: Any, fetches: Sequence[str], targets: Sequence[str]) -> tuple[int, Tracker]:
        """Return (span key, tracker) of runs with these names of fetched tensors and target ops."""
        start = mono()
        names = [name.rpartition(":")[0] or name for name in fetches]
        tracker = self.trackers[self._kind(graph, list(targets) + names) or layout.RUN]
        tracker.spend(mono() - start)
        return signature_key(fetches, targets), tracker

    @guarded
    def _find(self, session: Any, fetches: list[Any], targets: list[Any]) -> RunSignature:
        signatures: dict[Any, RunSignature] | None = vars(session).get(_ALL_RUNS)
        if signatures is None:
            signatures = vars(session)[_ALL_RUNS] = {}
            self._sessions.set(session)
        object_ids = (tuple(map(identity, fetches)), tuple(map(identity, targets)))
        signature = signatures.get(object_ids)
        if signature is None:
            op_name = self.tf_session.TF_OperationName
            outputs = ["%s:%d" % (op_name(each.oper), each.index) for each in fetches]
            key, tracker = self.of_names(session.graph, outputs, list(map(op_name, targets)))
            if len(signatures) >= _SIGNATURES_MAX:
                signatures.clear()
            # The signature keeps the objects alive, so that no other object gets the same id.
            signature = signatures[object_ids] = RunSignature(list(fetches), list(targets), key, tracker)
        return signature

    @guarded
    def _kind(self, graph: Any, names: Sequence[str]) -> int:
        return kind_of(graph, [graph.get_operation_by_name(name) for name in names])
