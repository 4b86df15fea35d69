"""Discrete Gaussian noise: the law, ρ and what it implies."""

import math
from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from discreet import registry
from discreet.accounting import rho_to_epsilon
from discreet.errors import DiscreetError, ParameterError
from discreet.protect.budget import GaussianShare
from discreet.protect.draws import gaussian_noise, gaussian_scale_for, seeded_gaussian
from discreet.tables import Bounds, CellValues, DataSet
from discreet.testing import check_method, chi_square, chi_square_p
from tests.protect.tables import declared, party, square


def law(scale, reach=80):
    u = np.arange(-reach, reach + 1)
    p = np.exp(-(u**2) / (2 * scale**2))
    return u, p / p.sum()


@pytest.mark.parametrize(("tilt", "accepted"), [(1.0, True), (0.93, False), (1.07, False)])
@pytest.mark.parametrize("source", ["system", "seeded"])
@pytest.mark.parametrize("scale", [0.7, 2.5])
def test_draws_follow_the_law_and_no_other(source, scale, tilt, accepted):
    n = 20_000
    drawn = (
        gaussian_noise(n, scale)
        if source == "system"
        else seeded_gaussian(np.random.default_rng(3), n, scale)
    )
    p = chi_square_p(*chi_square(drawn, *law(scale * tilt)))
    assert (p > 1e-6) == accepted


def test_the_noise_of_a_table_has_the_scale_of_its_sensitivity():
    """Six cells hold each record, so σ² = 6/2ρ."""
    table, method = declared(), dc.DiscreteGaussian(0.5, nonnegative=False)
    moves = np.concatenate([table.simulate(method, seed=s).z - table.z for s in range(400)])
    assert chi_square_p(*chi_square(moves, *law(math.sqrt(6)))) > 1e-6
    u, p = law(math.sqrt(6))
    release = table.protect(method)
    np.testing.assert_allclose(1 / release.precision, p @ u**2)


def test_the_battery_finds_nothing_to_complain_of():
    check_method(dc.DiscreteGaussian(2.0, nonnegative=False), draws=5_000)


@pytest.mark.parametrize(("squared", "rho"), [(1, 0.5), (6, 0.1), (40, 3.0), (7, 1e-4)])
def test_the_scale_is_one_for_which_rho_is_proved(squared, rho):
    from discreet.protect import draws as opendp_source

    scale = gaussian_scale_for(rho, squared)
    np.testing.assert_allclose(scale, math.sqrt(squared / (2 * rho)), rtol=1e-9)
    assert squared / (2 * scale**2) <= rho
    assert opendp_source._gaussian(scale) is not None


def test_rho_and_the_epsilon_it_implies_are_stated():
    statement = declared().protect(dc.DiscreteGaussian(0.1, population=50_000)).statement
    privacy = statement.privacy
    assert (privacy.rho, privacy.delta, privacy.sensitivity) == (0.1, 2e-6, 6)
    assert privacy.epsilon == rho_to_epsilon(0.1, 2e-6)
    assert privacy.rho_replace == pytest.approx(0.2 * 5 / 6)  # the total stays
    assert privacy.epsilon_replace == rho_to_epsilon(privacy.rho_replace, 2e-6)
    assert "ρ = 0.1; ε is what this implies at δ = 2e-06" in statement.text
    assert f"ε = {privacy.epsilon:.6g} and δ = 2e-06 for one record added" in statement.text
    assert declared().protect(dc.DiscreteGaussian(0.1)).statement.privacy.delta == 1e-9


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (8.0, 0.01)])
def test_epsilon_and_delta_are_the_largest_rho_that_proves_them(epsilon, delta):
    method = dc.DiscreteGaussian(epsilon=epsilon, delta=delta)
    privacy = declared().protect(method).statement.privacy
    assert (privacy.rho, privacy.delta) == (method.spent_rho, delta)
    assert epsilon * (1 - 1e-9) < privacy.epsilon <= epsilon
    assert rho_to_epsilon(method.spent_rho * (1 + 1e-9), delta) > epsilon


def test_a_delta_too_large_for_the_population_is_refused():
    method = dc.DiscreteGaussian(epsilon=1.0, delta=1e-3, population=1_000)
    with pytest.raises(ParameterError, match=r"at most 0\.0001"):
        declared().protect(method)


def test_known_margins_cost_twice_rho():
    privacy = declared().protect(dc.DiscreteGaussian(0.1, known=["1"])).statement.privacy
    assert privacy.rho == 0.2
    assert privacy.epsilon == privacy.epsilon_replace == rho_to_epsilon(0.2, 1e-9)
    assert privacy.unit.startswith("record replaced by another")


def test_a_split_budget_adds_up_and_gives_scales_of_its_own():
    table = declared("party*age + 1")
    split = {"party:age": 0.5, "party": 0.25, "age": 0.125, "1": 0.125}
    release = table.protect(dc.DiscreteGaussian(0.02, split=split))
    assert release.statement.privacy.rho == pytest.approx(0.02)
    block = table.design.block_of_cell()
    found = release.precision[np.searchsorted(block, range(4))]
    np.testing.assert_allclose(found, [2 * 0.02 * part for part in split.values()])


def test_several_records_of_a_person_count_squared():
    """One cell may change by 3, so squares grow by 9 while the sum grows by 3."""
    bounds = Bounds(person="pid", max_records=3)
    table = replace(declared(), data_set=DataSet("people", bounds=bounds))
    release = table.protect(dc.DiscreteGaussian(0.01))
    np.testing.assert_allclose(1 / release.precision, 6 * 9 / (2 * 0.01))
    assert release.statement.privacy.sensitivity == 18


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.9, 4.1, 20.0])
def test_the_variance_is_that_of_the_law(scale):
    share = GaussianShare(np.zeros(1, dtype=int), 1 / (2 * scale**2), 1)
    u, p = law(scale, 400)
    assert share.variance() == pytest.approx(p @ u**2, rel=1e-9)


def test_for_many_margins_it_is_less_noisy_than_laplace_noise_of_the_same_guarantee():
    names = [f"v{i}" for i in range(12)]
    design = dc.Design.product(dict.fromkeys(names, 3), dc.margins(names, 2))
    table = dc.Table(design, CellValues(np.full(design.n_published, 50)))
    epsilon = rho_to_epsilon(0.1, 1e-9)
    gaussian, laplace = (
        table.protect(m).standard_errors()[0]
        for m in (dc.DiscreteGaussian(0.1), dc.Laplace(epsilon))
    )
    assert gaussian < laplace / 1.7


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rho": 0}, "rho"),
        ({"rho": math.inf}, "rho"),
        ({"rho": 1, "epsilon": 1}, "epsilon"),
        ({"epsilon": 1}, "go together"),
        ({"rho": 1, "delta": 1e-6}, "go together"),
        ({"epsilon": 1, "delta": 2}, "between zero and one"),
        ({"epsilon": 1, "delta": 1e-6, "accept_delta": 1e-6}, "accept_delta"),
        ({}, "rho=, or epsilon="),
        ({"rho": 1, "cap": 5}, "cap"),
        ({"rho": 1, "margins": "adjusted"}, "adjusted"),
    ],
)
def test_wrong_options_are_refused(given, words):
    with pytest.raises(DiscreetError, match=words):
        registry.build("method", "discrete-gaussian", given)


def test_found_codes_are_refused_and_zeros_are_cut():
    with pytest.raises(ParameterError, match="discreet codes people.csv"):
        party().protect(dc.DiscreteGaussian(1.0))
    empty = square(np.zeros((20, 20), dtype=int))
    assert empty.protect(dc.DiscreteGaussian(0.5)).z.min() == 0
    assert empty.protect(dc.DiscreteGaussian(0.5, nonnegative=False)).z.min() < 0
