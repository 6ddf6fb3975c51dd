"""Operation counts of Einsum."""

from typing import Any

import pytest
from tfprof.collector.flops.einsum import einsum_ops


@pytest.mark.parametrize(
    ("equation", "inputs", "output", "expected"),
    [
        ("ij,jk->ik", [(3, 5), (5, 7)], (3, 7), 2 * 3 * 5 * 7),
        ("bij, bjk -> bik", [(2, 3, 5), (2, 5, 7)], (2, 3, 7), 2 * 2 * 3 * 5 * 7),
        ("i,j->ij", [(3,), (5,)], (3, 5), 15),
        ("i,i->", [(3,), (3,)], (), 6),
        ("ij->i", [(3, 5)], (3,), 12),
        ("ii->", [(3, 3)], (), 2),
        ("ii->i", [(3, 3)], (3,), 0),
        ("iij->i", [(3, 3, 4)], (3,), 9),
        ("...ij->...", [(2, 3, 5)], (2,), 28),
        ("ij->ji", [(3, 5)], (5, 3), 0),
        ("...ij,...jk->...ik", [(2, 4, 3, 5), (4, 5, 7)], (2, 4, 3, 7), 2 * 8 * 3 * 5 * 7),
        ("...ij,jk->...ik", [(2, 1, 3, 5), (5, 7)], (2, 1, 3, 7), 2 * 2 * 3 * 5 * 7),
        ("...i,...i->i", [(2, 3), (2, 3)], (3,), 12),
    ],
)
def test_operations_by_equation(equation: str, inputs: Any, output: Any, expected: int) -> None:
    assert einsum_ops(equation, inputs, output) == expected


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError):
        einsum_ops("ij,jk->ik", [(3, 5, 1), (5, 7)], (3, 7))
    with pytest.raises(ValueError):
        einsum_ops("ij,jk->ik", [(3, 5)], (3, 7))
