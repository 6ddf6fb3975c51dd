"""Parity with the TF profiler: which version is followed, and whether its errors are reproduced."""

from typing import Final, NamedTuple

#: Versions that can be followed; they differ in sorting, in the slots of inputs and in two texts.
COMPAT: Final = ("2.21", "1.15")


class Parity(NamedTuple):
    """`compat`: one of COMPAT. `exact`: reproduce the TF profiler's output, even where it is wrong or incomplete."""

    compat: str = COMPAT[0]
    exact: bool = False

    @property
    def old(self) -> bool:
        """Whether the version sorts unstably and reads the slots of inputs."""
        return self.compat == "1.15"


DEFAULT: Final = Parity()
