"""Fits of large tables with structural zeros: passes that store nothing, and lists of cells."""

import itertools

import numpy as np
import pytest

import discreet as dc
from discreet.solve.least_squares import least_squares

SIZES = {"age": 5, "status": 6, "sex": 2, "branch": 40, "region": 70}


def designs():
    """The same design twice: with its masks, and with its cells alone."""
    possible = np.ones(tuple(SIZES.values()), dtype=bool)
    possible[0, 1:] = False
    possible[:, :, :, 7, 10:] = False
    margins = list(itertools.combinations(SIZES, 2))
    cells = np.nonzero(possible)
    masked, listed = (dc.Design.sparse(SIZES, margins, cells) for _ in range(2))
    listed.__dict__["masks"] = None
    assert masked.has_passes
    assert not listed.has_passes
    return masked, listed


@pytest.mark.parametrize(
    ("fitter", "noise", "allowed"),
    [
        (dc.NonNegative(), 4.0, 2e-3),
        (dc.LeastSquares(), 4.0, 2e-6),
        (dc.LogLinear(), 0.0, 1e-5),
        (dc.solve.Poisson(), 0.0, 2e-2),
    ],
    ids=["non-negative", "least-squares", "log-linear", "poisson"],
)
def test_masks_and_listed_cells_give_the_same_fit(fitter, noise, allowed):
    masked, listed = designs()
    rng = np.random.default_rng(2)
    truth = masked.aggregate(rng.poisson(2.0, masked.n_inner).astype(float))
    exact = slice(0, int(masked.offsets[1]))
    z = truth + rng.laplace(scale=noise, size=len(truth)) if noise else truth
    z[exact] = truth[exact]
    found, expected = (fitter(design, z).require() for design in (masked, listed))
    assert found.notes["solver"] == "Newton on the dual"
    assert expected.notes.get("solver") != "Newton on the dual"
    np.testing.assert_allclose(found.z, expected.z, rtol=0, atol=allowed)
    np.testing.assert_allclose(masked.aggregate(found.y), found.z, rtol=1e-9, atol=1e-9)
    assert len(found.y) == masked.n_inner


@pytest.mark.parametrize("with_zeros", [False, True])
def test_least_squares_of_tables_too_large_to_store_have_the_same_margins(monkeypatch, with_zeros):
    sizes, possible = {"a": 4, "b": 5, "c": 6}, np.ones((4, 5, 6), dtype=bool)
    possible[0, 1:] = not with_zeros
    design = dc.Design.sparse(sizes, "a*b + a*c + b*c", np.nonzero(possible))
    design = design if with_zeros else design.crossing_with_inner().design
    z = np.random.default_rng(1).normal(5.0, 3.0, design.n_published)
    expected = dc.LeastSquares()(design, z).require()
    monkeypatch.setattr(least_squares, "LARGEST_DENSE", 0)
    monkeypatch.setattr(least_squares, "NEVER_STORED", 0)
    found = dc.LeastSquares()(design, z).require()
    assert found.notes["solver"] == "Newton on the dual"
    np.testing.assert_allclose(found.z, expected.z, rtol=0, atol=2e-6)
    np.testing.assert_allclose(found.y, expected.y, rtol=0, atol=1e-4)
