"""Where the fit without bounds is positive it is the answer, however large the counts are."""

import numpy as np

import discreet as dc

Z = [482341, 93261539, 1212, 107892558, 490806925, 40052623, 37971900, 694832, 21758425]
Z += [79666098, 5544271, 16004667, 93745155, 638752055, 60425115, 101214995, 226012897]
Z += [590307471, 77816921, 894137346, 93745120, 638752045, 60425136, 101214987, 894137337]
Z += [226012922, 590307554, 77816887]
WEIGHTS = [1, 0.1, 0.1, 0.1, 0.1, 1, 4, 4, 10, 4, 1, 0.1, 4, 10, 1, 10, 1, 10, 0.1, 10, 1, 10]
WEIGHTS += [10, 1, 4, 10, 1, 10]


def test_uneven_weights_on_counts_of_a_billion():
    design = dc.Design.product({"a": 4, "b": 3, "c": 1}, "a*b + a*c + b*c")
    z, weights = np.array(Z, dtype=float), np.array(WEIGHTS)
    free = dc.LeastSquares()(design, z, weights=weights).require()
    assert free.y.min() > 0
    fit = dc.NonNegative()(design, z, weights=weights).require()
    np.testing.assert_allclose(fit.y, free.y, rtol=1e-9)
