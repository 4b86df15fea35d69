"""Nothing published, nothing used, nothing counted, huge and tiny numbers: all three fitters."""

import numpy as np
import pytest

import discreet as dc

FITTERS = [dc.LogLinear(), dc.Poisson(), dc.LeastAbsolute()]
fitters = pytest.mark.parametrize("fitter", FITTERS, ids=lambda f: f.name)
DESIGN = dc.Design.product({"a": 3, "b": 2}, "a*b")


@fitters
@pytest.mark.parametrize("scale", [1e-9, 1, 1e12])
def test_additive_tables_of_any_size_are_met(fitter, scale):
    z = scale * DESIGN.aggregate(np.arange(6))
    fit = fitter(DESIGN, z).require()
    np.testing.assert_allclose(fit.y, scale * np.arange(6), rtol=1e-6, atol=1e-6 * scale)


@fitters
def test_a_table_of_zeros(fitter):
    fit = fitter(DESIGN, np.zeros(DESIGN.n_published)).require()
    assert not fit.y.any()


@fitters
def test_no_cell_in_use(fitter):
    z = np.full(DESIGN.n_published, np.nan)
    fit = fitter(DESIGN, z, weights=np.zeros(DESIGN.n_published)).require()
    assert np.isfinite(fit.y).all()


@fitters
def test_no_published_cell(fitter):
    fit = fitter(dc.Design.from_matrix(np.zeros((3, 0), dtype=int)), np.zeros(0)).require()
    assert len(fit.y) == 3
    assert len(fit.z) == 0


@fitters
def test_whole_numbers_and_lists_are_taken(fitter):
    z = DESIGN.aggregate(np.arange(6))
    np.testing.assert_allclose(fitter(DESIGN, z.astype(np.int32)).y, fitter(DESIGN, list(z)).y)


@pytest.mark.parametrize("fitter", FITTERS[1:], ids=lambda f: f.name)
def test_weights_of_very_different_size_still_give_a_proof(fitter):
    z = DESIGN.aggregate(np.arange(6)) + np.arange(DESIGN.n_published) % 3
    fit = fitter(DESIGN, z, weights=10.0 ** np.arange(DESIGN.n_published)).require()
    assert fit.certificate.holds
