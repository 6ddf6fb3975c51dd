"""Parity with the TF profiler: which version is followed, and whether its errors are reproduced."""

from typing import Final, NamedTuple

#: Versions of TensorFlow that can be followed. They differ in sorting, in the slots of inputs, in
#: the ops with a formula, and in a few texts.
COMPAT: Final = ("2.21", "1.15")


class Parity(NamedTuple):
    """The version that is followed, and how closely.

    `compat`: one of COMPAT. `exact`: reproduce the TF profiler's output, even where it is wrong or
    incomplete.
    """

    compat: str = COMPAT[0]
    exact: bool = False

    @property
    def old(self) -> bool:
        """Whether the version is 1.15, which sorts unstably and reads the slots of inputs."""
        return self.compat == "1.15"


DEFAULT: Final = Parity()
