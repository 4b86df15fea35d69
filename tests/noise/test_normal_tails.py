"""Normal tails: their shape, the conditions they keep, and the printed rows of the paper."""

import numpy as np
import pytest
from scipy.stats import norm

from discreet.errors import ParameterError
from discreet.noise import linear_table
from discreet.noise.linear import tail_shape

# Giessing & Höhne (2011), Table 1, D = 5: rows whose centre is fixed, from their first target on.
PRINTED = {
    3: (0, [0.119, 0.700, 0.082, 0.050, 0.028, 0.014, 0.007]),
    5: (0, [0.025, 0.068, 0.068, 0.700, 0.059, 0.027, 0.019, 0.018, 0.017]),
    7: (3, [0.025, 0.035, 0.035, 0.062, 0.700, 0.060, 0.028, 0.020, 0.018, 0.018]),
    8: (3, [0.015, 0.016, 0.019, 0.032, 0.068, 0.700, 0.068, 0.032, 0.019, 0.016, 0.015]),
}


@pytest.mark.parametrize("mean_square", [2.0, 5.0, 9.0])
def test_a_tail_is_a_piece_of_a_normal_law_with_its_mean_square(mean_square):
    r = np.arange(1.0, 6.0)
    shape = tail_shape(r, mean_square)
    assert shape.sum() == pytest.approx(1)
    assert shape @ r**2 == pytest.approx(mean_square, abs=1e-6)
    assert (np.diff(shape) <= 1e-12).all()
    found = []
    for k in range(6):
        spreads = np.geomspace(0.3, 60, 4_000)[:, None]
        pieces = norm.sf((k + r - 0.5) / spreads) - norm.sf((k + r + 0.5) / spreads)
        pieces /= pieces.sum(axis=1, keepdims=True)
        found.append(np.abs(pieces - shape).max(axis=1).min())
    assert min(found) < 2e-3
    even = np.full(5, 0.2)  # the comparison can fail: no piece is this far from even tails
    assert np.abs(even - shape).max() > 0.02


@pytest.mark.parametrize(("D", "V", "js"), [(4, 2.002, 2), (5, 2.002, 2), (5, 3.0, 2), (4, 1.5, 0)])
def test_moments_are_exact_and_tails_fall(D, V, js):
    table = linear_table(D, V, js, tails="normal")
    mean, square = table.law @ table.deviations, table.law @ table.deviations**2
    np.testing.assert_allclose(mean, 0, atol=1e-9)
    np.testing.assert_allclose(square[1:], V, atol=1e-9)
    assert table.keeps_zeros
    last = table.law[-1]
    assert (np.diff(last[table.deviations >= 1]) <= 1e-9).all()
    assert table.parameters["tails"] == "normal"
    assert "tails" not in linear_table(D, V, js).parameters


def test_printed_rows_are_met_about_as_nearly_as_by_entropy():
    """The paper's own tails were shaped by hand; neither rule gives them to the digit."""
    for tails, most in (("entropy", 0.017), ("normal", 0.018)):
        table = linear_table(5, 2.002, 2, tails=tails)
        for count, (first, row) in PRINTED.items():
            targets = [j for j in range(first, count + 6) if j not in (1, 2)]
            places = np.array(targets) - count + table.max_move
            own = table.probabilities(count)[places]
            assert np.abs(own - row).max() < most


def test_other_tails_are_refused():
    with pytest.raises(ParameterError, match="tails"):
        linear_table(5, 2.002, 2, tails="even")
