"""Decimals that give the noise away: with whole weights only one noise value fits."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet import Table
from discreet.attacks.extra_figures import WeightDecimals
from discreet.design import ProductDesign
from discreet.errors import ParameterError
from discreet.protect import by_cell, by_mean
from discreet.tables import Bounds, CellValues, DataSet
from tests.attacks.victims import MODULUS, PTABLE, SECRET, flat_axes

ACS = Path(__file__).parents[3] / "shared" / "data" / "acs_nist_national2019.csv.gz"
REACH = np.arange(-5, 6)
LAW = PTABLE.probabilities(1_000)  # how likely each noise value of a large count is: public
KEYED = {
    "cell-key": lambda grid: dc.CellKey(PTABLE, grid=grid),
    "drop-add": lambda grid: dc.DropAdd(0.05, grid=grid),
    "pram": lambda grid: dc.Pram(grid=grid),
}


def synthetic(decimals):
    """A survey of 9,000 people with weights of so many decimals."""
    rng = np.random.default_rng(4)
    codes = [rng.integers(n, size=9_000) for n in (14, 9, 2)]
    weight = np.round(20 + rng.gamma(4.0, 25.0, 9_000), decimals)
    return survey(np.ravel_multi_index(codes, (14, 9, 2)), weight, region=14, age=9, sex=2)


def survey(cell, weight, **sizes):
    axes, n = flat_axes(**sizes), int(np.prod(list(sizes.values())))
    count = np.bincount(cell, minlength=n)
    key = np.random.default_rng(6).integers(MODULUS, size=n) * (count > 0)
    sums = [np.bincount(cell, weights=w, minlength=n) for w in (weight, weight**2)]
    table = Table.from_inner(ProductDesign(axes, "*".join(sizes)), CellValues(count, *sums, key))
    data = DataSet("survey", bounds=Bounds(weight=500.0, mean_weight=100.0))
    return replace(table.with_secret(SECRET), data_set=data)


@pytest.fixture(scope="module")
def acs():
    if not ACS.exists():
        pytest.skip(f"{ACS} is not here")
    import pandas as pd

    people = pd.read_csv(ACS, usecols=["PUMA", "AGEP", "SEX", "PWGTP"])
    codes = [
        pd.factorize(people["PUMA"], sort=True)[0],
        np.minimum(people["AGEP"] // 10, 7),
        people["SEX"] - 1,
    ]
    weight = people["PWGTP"].to_numpy(dtype=float)
    return survey(np.ravel_multi_index(codes, (20, 8, 2)), weight, puma=20, age=8, sex=2)


SURVEYS = ["whole", "decimals", "acs"]


@pytest.fixture(params=SURVEYS)
def victim(request):
    if request.param == "acs":
        return request.getfixturevalue("acs"), 0
    decimals = 0 if request.param == "whole" else 2
    return synthetic(decimals), decimals


def to_the_last_digit(table, seed=0):
    """The planted fault: noise in multiples of the mean weight, W + p w̄, and no steps."""
    mean = table.published.weight.max() / table.z.max()
    noise = table.simulate(dc.CellKey(PTABLE), unit="count", seed=seed).z - table.z
    said = table.simulate(dc.CellKey(PTABLE, grid=mean), unit="weight", seed=seed).statement
    return dc.Trial(table.design, by_mean(table.published.weight, noise, mean), said, unit="weight")


def told(table, release, step, decimals):
    """The share of weighted counts that decimals tell to somebody who knows the step."""
    known = dc.Knowledge(extra={"mean_weight": step})
    claims = WeightDecimals(decimals)(release, known, rng=np.random.default_rng(0))
    return np.mean(np.round(table.published.weight, 6)[list(claims.targets)] == claims.values)


def test_the_mean_weight_gives_the_noise_away(victim):
    """The control: equation (4) with whole weights, or weights of two decimals."""
    table, decimals = victim
    mean = table.published.weight.max() / table.z.max()
    assert told(table, to_the_last_digit(table), mean, decimals) > 0.99


def test_the_mean_weight_of_the_cell_gives_the_noise_away(victim):
    """The control: equation (5), to somebody who knows how many people were asked in the cell."""
    table, decimals = victim
    mean = table.published.weight.max() / table.z.max()
    p = table.protect(dc.CellKey(PTABLE), unit="count").z - table.z
    shown = by_cell(table.published.weight, table.z, p, mean)
    some = (table.z > 10) & (shown > 0)
    n = table.z[:, None]
    left = shown[:, None] * n / np.maximum(n + REACH, 1) * 10.0**decimals
    fits = np.abs(left - np.rint(left)) < 1e-5
    found = REACH[np.where(fits, LAW, -1.0).argmax(axis=1)]
    single = fits.sum(axis=1) == 1
    assert np.mean(found[some] == p[some]) > 0.6
    assert np.mean(found[some & single] == p[some & single]) > 0.999


@pytest.mark.parametrize("kind", KEYED)
def test_a_grid_leaves_nothing_to_read_off(victim, kind):
    table, _ = victim
    for grid in (100.0, 150.0):
        release = table.protect(KEYED[kind](grid), unit="weight")
        assert (release.z % grid == 0).all()
        assert max(told(table, release, grid, decimals) for decimals in (0, 2)) < 0.1


def on_grid(table, release, grid):
    """True weighted counts in steps of the grid, and the noise of a release in such steps."""
    steps = np.floor(table.published.weight / grid + 0.5).astype(int)
    return steps, np.rint(release.z / grid).astype(int) - steps


@pytest.mark.parametrize("method", [dc.DiscreteLaplace(0.1), dc.DiscreteGaussian(0.01)])
def test_private_noise_on_the_weighted_scale_has_no_decimals_to_read(victim, method):
    table, _ = victim
    release = table.protect(method, unit="weight")
    assert (release.z == np.rint(release.z)).all()
    assert release.statement.privacy.sensitivity >= 501


def test_weights_without_a_word_on_them_are_refused(victim):
    table, _ = victim
    for method in (dc.CellKey(PTABLE), dc.DropAdd(), dc.Pram(), dc.Safe(), dc.DiscreteLaplace(1)):
        with pytest.raises(dc.DiscreetError, match="unit='count'.*unit='weight'"):
            table.protect(method)
    release = table.protect(dc.CellKey(PTABLE, grid=100.0), unit="weight")
    assert release.unit == "weight"
    assert "weight" in release.to_arrow().column_names
    assert "count" not in release.to_arrow().column_names


def by_two_grids(table, kind):
    """How often the noise is read off two grids: values differ by noise times the difference."""
    fine, coarse = 100.0, 500.0
    releases = [table.protect(KEYED[kind](g), unit="weight") for g in (fine, coarse)]
    some = table.published.weight > 60 * coarse
    noise = on_grid(table, releases[0], fine)[1]
    found = np.rint((releases[0].z - releases[1].z) / (fine - coarse))
    return np.mean(found[some] == noise[some])


@pytest.mark.parametrize("kind", KEYED)
def test_two_grids_do_not_give_the_noise_away(victim, kind):
    table, _ = victim
    assert by_two_grids(table, kind) < (0.65 if kind == "pram" else 0.4)
    release = table.protect(KEYED[kind](100.0), unit="weight")
    assert "in another unit tell more together" in release.statement.text


def test_the_same_noise_on_two_grids_gives_it_away(victim):
    """The control: without a secret the key itself looks the noise up on every grid."""
    table, _ = victim
    assert by_two_grids(table.with_secret(None), "cell-key") > 0.8


# Noise of sample counts in steps of the declared mean weight


@pytest.mark.parametrize("grid", ["mean-weight", "cell-weight"])
@pytest.mark.parametrize("kind", KEYED)
def test_steps_of_the_mean_weight_leave_nothing_to_read_off(victim, kind, grid):
    table, decimals = victim
    assert told(table, table.protect(KEYED[kind](grid)), 100.0, decimals) < 0.1


@pytest.mark.parametrize("kind", KEYED)
def test_counts_and_weighted_counts_share_no_noise(victim, kind):
    """With the same noise, steps less counts would be the same as without noise."""
    table, _ = victim
    weighted = table.protect(KEYED[kind]("mean-weight"))
    counts = table.protect(KEYED[kind](None), unit="count")
    some, steps = table.z > 10, np.floor(table.published.weight / 100 + 0.5)
    own = weighted.z / 100 - steps, counts.z - table.z
    assert abs(np.corrcoef(own[0][some], own[1][some])[0, 1]) < 5 / np.sqrt(some.sum())


# Grids below what a record stands for


def sampled_records(seed=4):
    """A survey of 700 people with a mean weight of 45."""
    rng = np.random.default_rng(seed)
    cell = np.ravel_multi_index([rng.integers(n, size=700) for n in (14, 9, 2)], (14, 9, 2))
    weight = np.round(20 + rng.gamma(4.0, 6.25, 700))
    table = survey(cell, weight, region=14, age=9, sex=2)
    bounds = Bounds(weight=110.0, mean_weight=45.0)
    return replace(table, data_set=DataSet("survey", bounds=bounds))


@pytest.mark.parametrize("grid", [5.0, 1.0, 0.01])
def test_a_grid_below_the_mean_weight_tells_records_and_is_refused(grid, record_property):
    """Numbers of sampled records are guessed as weighted count over mean weight, both public."""
    table, known = sampled_records(), dc.Knowledge(extra={"mean_weight": 45.0})
    found = {}
    for step in (grid, 45.0):
        release = table.simulate(dc.CellKey(PTABLE, grid=step), unit="weight", seed=1)
        found[step] = dc.attack(table, release, ["weighted-steps"], knowledge=known)[
            "weighted-steps"
        ]
    record_property(f"records guessed at {grid:g}, at 45", str(list(map(str, found.values()))))
    assert found[grid].success > 0.6
    assert found[45.0].success < found[45.0].blind + 0.03
    with pytest.raises(ParameterError, match=r"is below 45, the declared mean weight"):
        table.protect(dc.CellKey(PTABLE, grid=grid), unit="weight")
    table.protect(dc.CellKey(PTABLE, grid=50.0), unit="weight")


@pytest.mark.parametrize(
    ("bounds", "why"),
    [
        (Bounds(), r"judged by declared figures.*mean_weight=45"),
        (Bounds(weight=110.0), "is below 110, the declared bound of weights"),
        (Bounds(weight=1000.0, mean_weight=45.0), r"is below 200, .* over the largest move \(5"),
    ],
)
def test_the_bound_of_grids_follows_from_declared_figures(bounds, why):
    table = sampled_records()
    declared = replace(table, data_set=DataSet("survey", bounds=bounds))
    with pytest.raises(ParameterError, match=why):
        declared.protect(dc.CellKey(PTABLE, grid=70.0), unit="weight")


def test_the_refusal_of_a_grid_is_the_same_for_all_records():
    texts = set()
    for seed in range(4):
        with pytest.raises(ParameterError) as why:
            sampled_records(seed).protect(dc.CellKey(PTABLE, grid=30.0), unit="weight")
        texts.add(str(why.value))
    assert len(texts) == 1
