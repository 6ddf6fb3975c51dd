"""Which of the files in nodes' stacks are the user's own: those outside of packages and of Python itself."""

import re
from collections.abc import Iterable
from typing import Final

from tfprof.collector.views.code import basename
from tfprof.collector.views.nodes import Node

#: Where packages are installed, where Python has its own, and what is no file.
_FOREIGN: Final = re.compile(r".*/(site-packages|dist-packages|lib/python[0-9.]+)/.*|<.*|", re.DOTALL)


def own_files(nodes: Iterable[Node]) -> list[str]:
    """Return the names, without folders, of the user's files, outermost callers first."""
    stacks = {id(node.facts.stack): node.facts.stack for node in nodes if node.facts.stack}
    files = dict.fromkeys(frame.file for stack in stacks.values() for frame in stack)
    return list(dict.fromkeys(name for file in files if not _FOREIGN.fullmatch(file) and (name := basename(file))))
