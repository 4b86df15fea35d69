"""The linear programming design against the appendix of Giessing & Höhne (2011)."""

import numpy as np
import pytest

from discreet.errors import InfeasibleError, ParameterError
from discreet.noise import feasibility_intervals, linear_table, perturbation_table, realised_bias
from discreet.noise.checks import admissible, rising_tails, table_rows

TARGETS = [0, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]

# Appendix, Table 1, random noise with variance 2 + eps; rows are true counts 1 to 8.
PRINTED = {
    3: [
        [0.667, 0.332, 0.001],
        [0.334, 0.666],
        [0.125, 0.687, 0.063, 0.063, 0.063],
        [0.000, 0.601, 0.099, 0.100, 0.100, 0.100],
        [0.000, 0.167, 0.167, 0.416, 0.083, 0.083, 0.083],
        [0.000, 0.072, 0.072, 0.072, 0.571, 0.072, 0.072, 0.072],
        [0.000, 0.000, 0.072, 0.072, 0.072, 0.571, 0.072, 0.072, 0.072],
        [0.000, 0.000, 0.000, 0.072, 0.072, 0.072, 0.571, 0.072, 0.072, 0.072],
    ],
    4: [
        [0.667, 0.333],
        [0.334, 0.666],
        [0.120, 0.700, 0.082, 0.045, 0.027, 0.026],
        [0.064, 0.076, 0.700, 0.068, 0.037, 0.029, 0.026],
        [0.000, 0.143, 0.143, 0.542, 0.043, 0.043, 0.043, 0.043],
        [0.000, 0.063, 0.063, 0.063, 0.662, 0.038, 0.038, 0.038, 0.038],
        [0.000, 0.032, 0.033, 0.034, 0.050, 0.700, 0.050, 0.034, 0.033, 0.032],
        [0.000, 0.000, 0.032, 0.033, 0.034, 0.050, 0.700, 0.050, 0.034, 0.033, 0.032],
    ],
    5: [
        [0.667, 0.333],
        [0.334, 0.666],
        [0.119, 0.700, 0.082, 0.050, 0.028, 0.014, 0.007],
        [0.062, 0.076, 0.704, 0.075, 0.037, 0.020, 0.014, 0.012],
        [0.025, 0.068, 0.068, 0.700, 0.059, 0.027, 0.019, 0.018, 0.017],
        [0.000, 0.057, 0.057, 0.057, 0.700, 0.041, 0.023, 0.021, 0.021, 0.021],
        [0.000, 0.025, 0.035, 0.035, 0.062, 0.700, 0.060, 0.028, 0.020, 0.018, 0.018],
        [0.000, 0.015, 0.016, 0.019, 0.032, 0.068, 0.700, 0.068, 0.032, 0.019, 0.016, 0.015],
    ],
}


def distance(D, count):
    printed = np.array(PRINTED[D][count - 1] + [0.0] * 12)[:12]
    return np.abs(linear_table(D, 2.002).dense(14)[count, TARGETS] - printed).max()


@pytest.mark.parametrize(("D", "count"), [(3, c) for c in range(3, 9)] + [(4, 5), (4, 6)])
def test_rows_of_the_appendix_that_the_design_determines(D, count):
    assert distance(D, count) <= 5.5e-4


@pytest.mark.parametrize("D", [3, 4, 5])
@pytest.mark.parametrize("count", [1, 2])
def test_rows_of_the_appendix_that_are_forced(D, count):
    assert distance(D, count) <= 8e-4


def test_rows_with_a_capped_centre_come_near_the_manual_fit_of_the_appendix():
    assert distance(5, 3) <= 2.5e-3
    assert max(distance(5, count) for count in range(4, 9)) <= 0.02
    assert max(distance(4, count) for count in (3, 4, 7, 8)) <= 0.02


@pytest.mark.parametrize("D", [3, 4, 5])
def test_promises_hold(D):
    table = linear_table(D, 2.002)
    audit = table.audit()
    np.testing.assert_allclose(audit.mean, 0, atol=1e-9)
    np.testing.assert_allclose(audit.variance[1:], 2.002, atol=1e-8)
    assert audit.stay[1:].max() <= 0.70 + 1e-9
    assert table.blocked == 2
    for count in table_rows(D, 2):
        support = admissible(count, D, 2)
        row = table.probabilities(count)[[table.max_move + v for v in support.deviations]]
        assert all(row[o] <= row[i] + 1e-9 for o, i in rising_tails(support).steps())


def test_intervals_of_the_paper_s_worked_case():
    lines = {
        (x["i"], x["j"]): (x["lowest"], x["highest"])
        for x in feasibility_intervals(3, 2.002).to_pylist()
    }
    p4 = 0.002 / 4
    p3 = (1 - 4 * p4) / 3
    for j, p in ((0, 1 - p3 - p4), (3, p3), (4, p4)):
        assert lines[1, j] == pytest.approx((p, p), abs=1e-12)
    four = {
        (x["i"], x["j"]): (x["lowest"], x["highest"])
        for x in feasibility_intervals(4, 2.002).to_pylist()
    }
    assert four[3, 0] == pytest.approx((0.0953, 0.1668), abs=5e-5)
    assert four[3, 3] == pytest.approx((0.3327, 0.8332), abs=5e-5)


def test_every_designed_row_lies_in_its_intervals():
    table = linear_table(4, 2.2)
    for line in feasibility_intervals(4, 2.2, mono=True).to_pylist():
        p = table.probabilities(line["i"])[table.max_move + line["v"]]
        assert line["lowest"] - 1e-9 <= p <= line["highest"] + 1e-9


def test_order_narrows_the_intervals():
    wide = feasibility_intervals(4, 2.2).to_pydict()
    narrow = feasibility_intervals(4, 2.2, mono=True).to_pydict()
    width = [np.subtract(x["highest"], x["lowest"]) for x in (wide, narrow)]
    assert np.all(width[1] <= width[0] + 1e-9)
    assert width[1].sum() < 0.8 * width[0].sum()


def test_asymmetry_is_bounded():
    free, bounded = linear_table(5, 2.002), linear_table(5, 2.002, asymmetry=0.005)
    for count in range(4, 9):
        skew = [t.probabilities(count)[4] - t.probabilities(count)[6] for t in (free, bounded)]
        assert abs(skew[1]) <= 0.005 + 1e-9
    assert max(abs(free.law[4:, 4] - free.law[4:, 6])) > 0.02
    np.testing.assert_allclose(bounded.audit().variance[1:], 2.002, atol=1e-8)


def test_infeasible_design_names_the_range():
    with pytest.raises(InfeasibleError, match=r"V must lie in \[2, 2\.2222"):
        linear_table(3, 3)
    with pytest.raises(InfeasibleError, match="V must lie in"):
        feasibility_intervals(3, 1.5)
    with pytest.raises(InfeasibleError, match="no variance"):
        linear_table(3, 2.002, asymmetry=0.001)


def test_bad_options_are_refused():
    for bad in ({"centre": 0.0}, {"centre": 1.2}, {"asymmetry": -0.1}):
        with pytest.raises(ParameterError):
            linear_table(4, 2.1, **bad)


def test_realised_bias_beside_its_design():
    table = perturbation_table(5, 3, 2)
    rng = np.random.default_rng(5)
    counts = rng.integers(0, 12, 60_000)
    noise = table.noise(counts, rng.integers(0, 2**32, counts.size), 2**32)
    result = realised_bias(table, counts, noise).to_pydict()
    for count, cells, bias, mean, sd in zip(*result.values(), strict=True):
        assert cells == np.count_nonzero(counts == count)
        assert bias == pytest.approx(noise[counts == count].mean())
        assert mean == pytest.approx(0, abs=1e-9)
        assert sd == pytest.approx(0 if count == 0 else np.sqrt(3 / cells), rel=1e-6)
        assert abs(bias) <= 4.5 * sd


@pytest.mark.parametrize(("D", "V", "js"), [(30, 0.3, 0), (30, 1, 1), (40, 2, 2), (40, 4, 3)])
def test_small_variances_of_wide_tables_are_met(D, V, js):
    audit = linear_table(D, V, js).audit()
    np.testing.assert_allclose(audit.mean, 0, atol=1e-9)
    np.testing.assert_allclose(audit.variance[1:], V, atol=1e-9)
