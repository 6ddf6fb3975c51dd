"""Parity with the TF profiler: which version is followed, and whether its errors are reproduced."""

from typing import Final, NamedTuple

#: Versions that can be followed: they differ in sorting, in the slots of inputs, in two texts.
COMPAT: Final = ("2.21", "1.15")


class Parity(NamedTuple):
    """`compat`: one of COMPAT. `exact`: nothing better than what tfprof says, even where it is wrong or silent."""

    compat: str = COMPAT[0]
    exact: bool = False

    @property
    def old(self) -> bool:
        """Whether entries of equal value are in the order of an unstable sort, and slots of inputs are read."""
        return self.compat == "1.15"


DEFAULT: Final = Parity()
