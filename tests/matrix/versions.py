"""The versions of TensorFlow in the matrix, each in an environment of `make matrix-venvs`."""

import os
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]
VENVS: Final = Path(os.environ.get("TFPROF_TEST_VENVS", ROOT / ".venvs"))


class Version(NamedTuple):
    """A version, the folder of its environment, and the rows that CI runs with it (None: all)."""

    name: str
    folder: str
    ci_rows: frozenset[str] | None

    @property
    def number(self) -> tuple[int, ...]:
        """The version as a tuple, for comparisons."""
        return tuple(map(int, self.name.split(".")))

    @property
    def python(self) -> Path:
        """The path of the interpreter."""
        return VENVS / self.folder / "bin/python"


VERSIONS: Final = (
    Version("1.15", "tf1", None),
    Version("2.4", "tf24", frozenset({"keras_fit", "function_loop"})),
    Version("2.10", "tf210", frozenset()),
    Version("2.15", "tf215", frozenset({"keras_fit", "estimator"})),
    Version("2.18", "tf218", frozenset()),
    Version("2.21", "tf2", None),
)
