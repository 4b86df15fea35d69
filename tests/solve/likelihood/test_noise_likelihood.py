"""The most likely table: against every table there is, and bounds that are computed again."""

import itertools
import math

import numpy as np
import pytest

import discreet as dc
from discreet.errors import DesignError, ParameterError
from discreet.release.uncertainty import likelihoods_of
from discreet.solve import NoiseLikelihood
from discreet.solve.likelihood.noise_likelihood import CellLikelihoods
from discreet.tables import CellValues

PTABLE = dc.perturbation_table(D=3, V=1, js=1)
DESIGN = dc.Design.product({"a": 2, "b": 2}, "a*b")
METHODS = {
    "cell-key": dc.CellKey(PTABLE),
    "threshold": dc.CellKey(PTABLE, threshold=3),
    "drop-add": dc.DropAdd(0.5),
    "pram": dc.Pram(),
    "discrete-laplace": dc.DiscreteLaplace(8.0),
    "capped": dc.DiscreteLaplace(8.0, cap=9, accept_delta=1.0),
    "negative": dc.DiscreteLaplace(8.0, nonnegative=False),
    "discrete-gaussian": dc.DiscreteGaussian(4.0),
    "laplace": dc.Laplace(8.0),
}
ALL = np.array(list(itertools.product(range(8), repeat=4)))


def table_of(y, design=DESIGN, seed=1):
    return dc.Table.from_inner(design, np.asarray(y)).rekeyed(np.random.default_rng(seed))


def log_probability(method, trial, k, count):
    """The logarithm of what was published of a cell, from the method's own law alone."""
    z, scale = float(trial.z[k]), 4 / 8.0
    if method.name in ("cell-key", "drop-add", "pram"):
        law, deviations = method.law.probabilities(count), method.law.deviations
        if trial.hidden[k]:
            chance = law[count + deviations < method.threshold].sum()
        else:
            chance = law[deviations == z - count].sum()
        return math.log(chance) if chance else -math.inf
    if method.name == "discrete-gaussian":
        u = np.arange(-60, 61)
        law = np.exp(-(u**2) / (2 * 4 / (2 * 4.0)))
        chance = (law[u <= -count] if z == 0 else law[u == z - count]).sum() / law.sum()
        return math.log(chance)
    if getattr(method, "cap", None):
        u = np.arange(-9, 10)
        law = np.exp(-np.abs(u) / scale)
        chance = (law[u <= -count] if z == 0 else law[u == z - count]).sum() / law.sum()
        return math.log(chance) if chance else -math.inf
    return -abs(z - count) / scale


def costs_of_all(method, trial):
    """The cost of every table with inner cells below eight, cell by cell."""
    sums = np.array([DESIGN.aggregate(y) for y in ALL])
    cost = np.zeros(len(ALL))
    for k in range(DESIGN.n_published):
        counts, where = np.unique(sums[:, k], return_inverse=True)
        each = np.array([-log_probability(method, trial, k, int(i)) for i in counts])
        cost += each[where]
    return cost


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", METHODS)
def test_no_other_table_is_more_likely(name, seed):
    method = METHODS[name]
    trial = table_of([0, 1, 3, 4], seed=seed).simulate(method, seed=seed)
    fit = trial.fit("noise-likelihood").fit_result.require()
    cost = costs_of_all(method, trial)
    at = int(np.flatnonzero((fit.y == ALL).all(axis=1))[0])
    assert cost[at] == pytest.approx(cost.min(), abs=1e-6)
    assert fit.y.dtype.kind == "i"
    np.testing.assert_array_equal(fit.z, DESIGN.aggregate(fit.y))


def bound_by_multipliers(design, given, multipliers):
    """What no table's cost is below, or nothing where the multipliers prove nothing."""
    if (design.adjoint(multipliers) < -1e-9).any():
        return None
    least = [
        (cost - v * counts).min()
        for (counts, cost), v in zip(given.rows, multipliers, strict=True)
        if len(counts)
    ]
    return sum(least)


@pytest.mark.parametrize("name", METHODS)
def test_the_bound_can_be_computed_again_and_no_table_is_below_it(name):
    trial = table_of([0, 1, 3, 4]).simulate(METHODS[name], seed=4)
    given = likelihoods_of(trial)
    fit = NoiseLikelihood(given)(trial.design, trial.z).require()
    bound = bound_by_multipliers(DESIGN, given, fit.notes["multipliers"])
    costs = [-given.log_likelihood(DESIGN.aggregate(y)) for y in ALL]
    assert bound <= min(costs) + 1e-9
    if fit.notes["proof"] == "multipliers":
        assert -fit.notes["log_likelihood"] - bound <= 1e-6 * max(1, abs(bound))
    # multipliers that are not feasible are noticed, or would claim too much
    wrong = fit.notes["multipliers"] - 0.5
    assert bound_by_multipliers(DESIGN, given, wrong) is None


@pytest.mark.parametrize("name", ["cell-key", "pram", "discrete-laplace"])
def test_the_fit_is_at_least_as_likely_as_the_truth(name):
    design = dc.Design.product({"a": 3, "b": 3, "c": 2}, "a*b + a*c + b*c")
    rng = np.random.default_rng(5)
    for seed in range(3):
        table = table_of(rng.poisson(4, 18), design, seed)
        trial = table.simulate(METHODS[name], seed=seed)
        fit = trial.fit("noise-likelihood").fit_result.require()
        assert fit.notes["log_likelihood"] >= likelihoods_of(trial).log_likelihood(table.z) - 1e-9


def test_rounded_sums_of_weights_are_fitted_in_steps():
    rng = np.random.default_rng(6)
    design = dc.Design.product({"a": 3, "b": 2}, "a*b")
    weight = rng.integers(20, 400, 6).astype(float)
    table = dc.Table.from_inner(design, CellValues(np.full(6, 9), weight)).rekeyed(rng)
    trial = table.simulate(dc.CellKey(PTABLE, grid=30), seed=1, unit="weight")
    given = likelihoods_of(trial)
    fit = trial.fit("noise-likelihood").fit_result.require()
    assert (given.step, given.rounded) == (30.0, True)
    true = given.log_likelihood(table.weights / 30)
    assert np.isfinite(true)
    assert fit.notes["log_likelihood"] >= true - 1e-6
    assert fit.y.dtype.kind == "f"


def test_known_margins_are_met_and_others_are_refused():
    table = table_of([2, 1, 3, 4])
    trial = table.simulate(dc.DiscreteLaplace(2.0, known="1"), seed=1)
    assert trial.fit("noise-likelihood").z[-1] == table.z[-1]
    with pytest.raises(DesignError, match="adds up already"):
        table.simulate(dc.CellKey(PTABLE, margins="summed"), seed=1).fit("noise-likelihood")
    with pytest.raises(DesignError, match="made from the table itself"):
        table.simulate(dc.Pram(invariant=True), seed=1).fit("noise-likelihood")
    with pytest.raises(DesignError, match="come from the step"):
        trial.fit().fit("noise-likelihood")
    with pytest.raises(ParameterError, match="which cells may be zero"):
        trial.fit("noise-likelihood", zeros="margins")


def test_without_a_law_or_with_too_many_cells_it_says_so():
    with pytest.raises(ParameterError, match="law of the noise is needed"):
        NoiseLikelihood()(DESIGN, np.zeros(9))
    few = CellLikelihoods.of([(np.arange(3), np.zeros(3))])
    with pytest.raises(ParameterError, match="are for 1 published cells"):
        NoiseLikelihood(few)(DESIGN, np.zeros(9))
    large = dc.Design.product({"a": 200, "b": 101}, [("a",)])
    many = CellLikelihoods.of([(np.arange(3), np.zeros(3))] * 200)
    with pytest.raises(ParameterError, match="at most 20,000 are tried"):
        NoiseLikelihood(many)(large, np.zeros(200))


def test_values_that_no_table_explains_are_infeasible():
    rows = [(np.array([1]), np.zeros(1))] * 8 + [(np.array([9]), np.zeros(1))]
    fit = NoiseLikelihood(CellLikelihoods.of(rows))(DESIGN, np.ones(9))
    assert fit.status.name == "infeasible"
    assert not fit.certificate.holds


def test_the_program_writes_nothing(capfd):
    """SciPy's HiGHS wrote a line about its own steps for this table, past every option."""
    design = dc.Design.product({"a": 4, "b": 3, "c": 2}, "a*b + b*c")
    table = dc.Table.from_inner(design, np.random.default_rng(3).poisson(3, design.n_inner))
    table.simulate(dc.DiscreteLaplace(0.5), seed=3).fit("noise-likelihood").fit_result.require()
    assert capfd.readouterr() == ("", "")
