"""The stacks of executions in profiles: the op type, and above it Python calls or name scopes."""

from typing import NamedTuple

from ..traces.model import Label


class Call(NamedTuple):
    """One entry of a stack; file and lines are '' and 0 for scopes and op types."""

    name: str
    file: str = ""
    line: int = 0
    start_line: int = 0


def code_stack(label: Label) -> list[Call]:
    """Return the Python stack of an execution, outermost call first; without one, its scopes."""
    frames = [Call(frame.function, frame.file, frame.line, max(frame.start_line, 0)) for frame in label.stack]
    return [*frames, Call(label.op)] if frames else scope_stack(label)


def scope_stack(label: Label) -> list[Call]:
    """Return the name scopes of an execution's node, outermost first."""
    *scopes, _ = label.node.split("/")
    return [*map(Call, scopes), Call(label.op)]
