"""Session runs by purpose: each set of fetches and targets is examined once per session."""

from __future__ import annotations

import weakref

from ...formats import layout
from .. import core
from ..clock import mono
from ..guard import guarded
from .run_kinds import kind_of, role_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    from ..pacing.tracker import Tracker

_LAST, _KNOWN = "_tfprof_run", "_tfprof_runs"  # attributes of a session: the role of its last run, and all
_ROLES_MAX = 256  # maximum roles remembered per session


class Role(object):
    """Runs with the same ``fetches`` and ``targets``: span ``key`` without feeds, ``tracker``."""

    __slots__ = ("fetches", "key", "targets", "tracker")

    def __init__(self, fetches: list[Any] | None, targets: list[Any], key: int, tracker: Tracker) -> None:
        self.fetches = fetches
        self.targets = targets
        self.key = key
        self.tracker = tracker


class Runs(object):
    """The roles of this process's session runs."""

    def __init__(self, tf_session: Any) -> None:
        self.tf_session = tf_session
        self.trackers = {kind: core.tracker(kind) for kind in layout.RUN_KINDS}
        self.unknown = Role(None, [], 0, self.trackers[layout.RUN])  # matches no run
        self._sessions: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()  # with our attributes
        core.at_disarm(self._forget)

    def find(self, session: Any, fetches: list[Any], targets: list[Any]) -> Role:
        """Return the role of a run unlike the last one of ``session``, and remember it."""
        if core.state() is None:  # already disarmed
            return self.unknown
        role = self._find(session, fetches, targets)
        if role is None:
            role = Role(list(fetches), list(targets), 0, self.unknown.tracker)
        vars(session)[_LAST] = role
        return role

    def _forget(self) -> None:
        """Remove our attributes from the sessions."""
        for session in list(self._sessions.values()):
            for name in (_LAST, _KNOWN):
                vars(session).pop(name, None)

    def of_names(self, graph: Any, fetches: Sequence[str], targets: Sequence[str]) -> Role:
        """Return the role of runs with these names of fetched tensors and target ops."""
        start = mono()
        names = [name.rpartition(":")[0] or name for name in fetches]
        tracker = self.trackers[self._kind(graph, list(targets) + names) or layout.RUN]
        if tracker.channel is not None:
            tracker.spend(mono() - start)
        return Role([], [], role_key(fetches, targets), tracker)

    @guarded
    def _find(self, session: Any, fetches: list[Any], targets: list[Any]) -> Role:
        known: dict[Any, Role] | None = vars(session).get(_KNOWN)
        if known is None:
            known = vars(session)[_KNOWN] = {}
            self._sessions[id(session)] = session
        at = (tuple(map(id, fetches)), tuple(map(id, targets)))
        role = known.get(at)
        if role is None:
            role = self._examine(session.graph, fetches, targets)
            if len(known) >= _ROLES_MAX:
                known.clear()
            known[at] = role
        return role

    def _examine(self, graph: Any, fetches: list[Any], targets: list[Any]) -> Role:
        name = self.tf_session.TF_OperationName
        outputs = ["%s:%d" % (name(each.oper), each.index) for each in fetches]
        role = self.of_names(graph, outputs, list(map(name, targets)))
        # The ids of these objects are the key. Keep them alive, so that no other object gets the
        # same id.
        role.fetches, role.targets = list(fetches), list(targets)
        return role

    @guarded
    def _kind(self, graph: Any, names: Sequence[str]) -> int:
        return kind_of(graph, [graph.get_operation_by_name(name) for name in names])
