"""The known versions of CPython, and what the shim relies on in each.

On any other version no bytecode of the job's is changed, the C part is not loaded, and plain
functions count and time all steps.
"""

import sys

TYPE_CHECKING = False  # types are quoted: importing even __future__ would slow down every interpreter's start
if TYPE_CHECKING:
    from typing import Any, List, Tuple

    Instructions = List[Tuple[str, int]]  # name and argument


class Version(object):
    """A version of CPython.

    ``line_table`` is the form of a code's line table: `lnotab`, `linetable` or `locations`.
    ``jump_unit`` is the unit of a jump's argument, in bytes. ``release`` has the instructions that
    release a value at the bottom of the stack before a return, by the return's instruction.
    ``caches`` has the inline caches of the instructions of a call, by name, in units of two bytes.
    ``null_at`` is the position of PUSH_NULL in a call, before or after the function; None if calls
    have no such instruction. ``reports_last_line``: a call that spans several lines has the number
    of the last one. ``has_resume``: a function begins with RESUME, which runs signal handlers.
    ``drops_own_entry``: an except clause can drop the entry of its own frame from a traceback.
    """

    def __init__(self, line_table: str, jump_unit: int, release: "dict[str, Instructions]", **others: "Any") -> None:
        self.line_table = line_table
        self.jump_unit = jump_unit
        self.release = release
        self.caches: "dict[str, int]" = others.get("caches", {})
        self.null_at: "int | None" = others.get("null_at")
        self.reports_last_line = bool(others.get("is_37"))
        self.has_resume = self.drops_own_entry = line_table == "locations"


# Before Python 3.9 a return releases all values. Since Python 3.11 it does so only if nothing
# refers to the frame, such as an exception that was raised below and that the job has stored.
_ROTATE = {"RETURN_VALUE": [("ROT_TWO", 0), ("POP_TOP", 0)]}
_SWAP = {"RETURN_VALUE": [("SWAP", 2), ("POP_TOP", 0)]}
_SWAP_OR_POP = dict(_SWAP, RETURN_CONST=[("POP_TOP", 0)])

KNOWN = {
    (3, 7): Version("lnotab", 1, {}, is_37=True),
    (3, 8): Version("lnotab", 1, {}),
    (3, 9): Version("lnotab", 1, _ROTATE),
    (3, 10): Version("linetable", 2, _ROTATE),
    (3, 11): Version("locations", 2, _SWAP, caches={"PRECALL": 1, "CALL": 4}, null_at=0),
    (3, 12): Version("locations", 2, _SWAP_OR_POP, caches={"CALL": 3}, null_at=0),
    (3, 13): Version("locations", 2, _SWAP_OR_POP, caches={"CALL": 3}, null_at=1),
}


_HAS_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()
_VERSION = sys.version_info[:2] if sys.implementation.name == "cpython" and _HAS_GIL else (0, 0)
#: The row of this interpreter; None if it is unknown, or has no GIL.
CURRENT = KNOWN.get(_VERSION)
#: Whether the instructions RESUME and STORE_ATTR are known; 3.14 has them as 3.13 has.
KNOWS_INSTRUCTIONS = CURRENT is not None or _VERSION == (3, 14)
#: Whether a value can be kept on the stack while a function runs: CPython 3.11.0 exposes a partly
#: cleared frame to finalizers (GH-99729).
CAN_KEEP_VALUES = CURRENT is not None and not (3, 11) <= sys.version_info < (3, 11, 1)
