"""Nothing published, nothing used, nothing counted, huge and tiny numbers: all three fitters."""

import numpy as np
import pytest

import discreet as dc
from discreet.errors import DataError, ParameterError
from discreet.solve import Status

FITTERS = [dc.LogLinear(), dc.solve.Poisson(), dc.LeastAbsolute()]
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


EVERY = [*FITTERS, dc.LeastSquares(), dc.NonNegative(), dc.Additive(), dc.solve.Auto()]


@pytest.mark.parametrize("tolerance", [np.inf, np.nan, 0, -1, "x", None])
@pytest.mark.parametrize("kind", [type(f) for f in EVERY])
def test_a_tolerance_that_makes_no_sense_is_refused(kind, tolerance):
    with pytest.raises(ParameterError, match="tolerance must"):
        kind(tolerance=tolerance)


@pytest.mark.parametrize("steps", [2.5, 0, "x"])
@pytest.mark.parametrize("kind", [type(f) for f in EVERY if f.name != "auto"])
def test_steps_are_counted_in_whole_numbers(kind, steps):
    with pytest.raises(ParameterError, match="max_steps must be a whole number of at least 1"):
        kind(max_steps=steps)


@pytest.mark.parametrize("start", ["x", [[1], [1, 2]], {}])
@pytest.mark.parametrize("kind", [dc.LeastSquares, dc.NonNegative, dc.LogLinear, dc.solve.Poisson])
def test_a_starting_table_is_made_of_numbers(kind, start):
    with pytest.raises(ParameterError, match="starting table must be numbers"):
        kind(start=start).prepare(DESIGN)


@pytest.mark.parametrize("fitter", EVERY, ids=lambda f: f.name)
def test_published_values_and_weights_are_numbers(fitter):
    z = np.zeros(DESIGN.n_published)
    with pytest.raises(ParameterError, match="published values must be numbers"):
        fitter(DESIGN, "x")
    with pytest.raises(ParameterError, match="weights must be numbers"):
        fitter(DESIGN, z, weights="x")


@fitters
@pytest.mark.parametrize("published", [0, 2])
def test_no_inner_cell(fitter, published):
    design = dc.Design.from_matrix(np.zeros((0, published), dtype=int))
    fit = fitter(design, np.zeros(published)).require()
    assert len(fit.y) == 0
    assert not fit.z.any()


@pytest.mark.parametrize("kind", [dc.LogLinear, dc.solve.Poisson])
def test_no_inner_cell_may_be_positive(kind):
    fitter = kind(start=np.zeros(6))
    assert not fitter(DESIGN, np.zeros(DESIGN.n_published)).require().y.any()
    assert fitter(DESIGN, DESIGN.aggregate(np.ones(6))).status is Status.inconsistent


NOISY = np.array([7, 3, 6, 0, 2, 5, 8, 4, 7, 14, 9, 21.0])


@pytest.mark.parametrize("factor", [1e-50, 1e50])
@pytest.mark.parametrize("size", [1e-45, 1e-9, 1e14])
@pytest.mark.parametrize(
    "fitter", [dc.LeastSquares(), dc.NonNegative(tolerance=1e-6)], ids=lambda f: f.name
)
def test_least_squares_fits_depend_on_ratios_alone(fitter, factor, size):
    plain = fitter(DESIGN, NOISY).require()
    fit = fitter(DESIGN, size * NOISY, weights=np.full(len(NOISY), factor))
    # Certificates are in counts, which doubles of 10¹⁵ hardly tell apart: fits may say so.
    assert fit.is_converged or size > 1e12
    np.testing.assert_allclose(fit.z / size, plain.z, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("weight", [1e-300, 1e300])
@pytest.mark.parametrize("fitter", EVERY, ids=lambda f: f.name)
def test_weights_beyond_double_precision_are_refused(fitter, weight):
    with pytest.raises(ParameterError, match="weights must lie between 1e-50 and 1e\\+50"):
        fitter(DESIGN, NOISY, weights=np.full(len(NOISY), weight))


@pytest.mark.parametrize("fitter", EVERY, ids=lambda f: f.name)
def test_values_beyond_double_precision_are_refused(fitter):
    z = NOISY.copy()
    z[3] = 1e300
    with pytest.raises(DataError, match=r"is 1e\+300, but values from 2\*\*53 on"):
        fitter(DESIGN, z)
