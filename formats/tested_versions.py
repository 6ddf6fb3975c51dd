"""The versions of CPython and of the frameworks that tfprof is tested with."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

#: Versions of CPython whose bytecode and memory layouts the shim knows.
PYTHON = ("3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13")
#: What is different on another version.
OTHER_PYTHON = "plain functions count and time every step, which takes longer"
#: The versions of each framework that the matrix of tests runs.
FRAMEWORKS = {"tensorflow": ("1.15", "2.4", "2.10", "2.15", "2.18", "2.21")}


def release(version: str) -> tuple[int, ...]:
    """Return the first two numbers of ``version``; fewer if it has fewer."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


def is_outside(version: str, tested: Sequence[str]) -> bool:
    """Return whether ``version`` is outside of the range of the ``tested`` versions."""
    return not release(tested[0]) <= release(version) <= release(tested[-1])


def remark(version: str, tested: Sequence[str]) -> str:
    """Return how ``version`` relates to the ``tested`` versions, as the end of a sentence."""
    older = [each for each in tested if release(each) <= release(version)]
    newer = [each for each in tested if release(each) >= release(version)]
    if not older:
        return "older than %s, the oldest tested version" % tested[0]
    if not newer:
        return "newer than %s, the newest tested version" % tested[-1]
    if older[-1] == newer[0]:
        return "a tested version"
    return "between the tested versions %s and %s" % (older[-1], newer[0])
