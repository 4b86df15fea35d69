"""Options of the wrong kind are refused by name, never by a bare error from within."""

import numpy as np
import pytest

import discreet as dc
from discreet.errors import DiscreetError, ParameterError
from discreet.noise import linear_table
from tests.protect.tables import declared

NOISE = linear_table(5, 2.0, 2)
MAKERS = {
    "alpha": dc.Pram,
    "convention": lambda convention: dc.CellKey(NOISE, convention=convention),
    "epsilon": dc.Laplace,
    "max_move": dc.Safe,
    "grid": lambda grid: dc.DropAdd(grid=grid),
    "population": lambda population: declared().protect(
        dc.DiscreteLaplace(1.0, population=population)
    ),
    "accept_delta": lambda accept_delta: declared().protect(
        dc.DiscreteLaplace(1.0, accept_delta=accept_delta)
    ),
    "rho": dc.DiscreteGaussian,
    "seconds": dc.Safe,
    "share": dc.DropAdd,
    "split": lambda split: dc.DiscreteLaplace(1.0, split=split),
    "edges": lambda edges: dc.protect.Quality(dc.CellKey(NOISE), edges=edges),
    "keep": lambda keep: dc.protect.Quality(dc.CellKey(NOISE), keep=keep),
    "centre": lambda centre: linear_table(5, 2.0, 2, centre=centre),
    "asymmetry": lambda asymmetry: linear_table(5, 2.0, 2, asymmetry=asymmetry),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(
    "wrong", ["x", [0.5], np.nan, object()], ids=["text", "list", "nan", "object"]
)
def test_the_option_is_named(name, wrong):
    with pytest.raises(DiscreetError, match=name.replace("_", ".")) as why:
        MAKERS[name](**{name: wrong})
    assert str(wrong).strip("[]")[:4] in str(why.value)


def test_adjust_names_its_largest_move():
    with pytest.raises(ParameterError, match="max_move must be a positive number, got 'x'"):
        dc.Adjust(dc.CellKey(NOISE), max_move="x")


def test_safe_says_what_a_largest_move_must_be():
    with pytest.raises(ParameterError, match="at least min_count - 1 = 2, .* got 'x'"):
        dc.Safe(max_move="x")
    with pytest.raises(ParameterError, match="got 1"):
        dc.Safe(max_move=1)
    assert dc.Safe(max_move=np.inf).max_move == np.inf
    assert dc.Safe(max_move=np.int64(4)).max_move == 4
