"""The exporters of `tfprof profile-proto`, which write whole jobs.

Each has a row here, and a module of the same name in this folder.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from ..loader import load
from ..store.protocols import JobReader

DataFunction = Callable[[JobReader, tuple[int, int] | None, str, Sequence[int] | None], Iterable[bytes]]


class JobFile(NamedTuple):
    """An option that names a file to write.

    The function `data` of the module ``name`` returns the bytes of the file.
    """

    name: str
    flags: tuple[str, ...]
    help: str

    @property
    def data(self) -> DataFunction:
        """The function that makes the file; it returns pieces of bytes.

        Its arguments are a job, the first and the last step, a version of TensorFlow, and kinds of
        steps.
        """
        function: DataFunction = load(f"{__package__}.{self.name}:data")
        return function


#: In the order of the help; files are written in reverse, the smallest first.
JOB_FILES: Final = (
    JobFile("profile_proto", ("-o", "--output"), "Where the profile is written to (ProfileProto)."),
    JobFile("op_log", ("--op-log",), "Where an op log is written to (OpLogProto): operations, types, Python stacks."),
)
