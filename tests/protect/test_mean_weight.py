"""Steps of the declared mean weight: noise of sample counts on weighted counts, and its cost."""

import math
from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from discreet.errors import DesignError, ParameterError
from discreet.noise import laplace_law
from discreet.protect import by_cell, by_mean
from discreet.protect.options import RecordSteps
from discreet.release.inference import matrix_of
from discreet.tables import Bounds, CellValues, DataSet
from tests.protect.tables import SECRET, square

PTABLE = dc.perturbation_table(D=5, V=3, js=2)
METHODS = {
    "cell-key": lambda **options: dc.CellKey(PTABLE, **options),
    "pram": dc.Pram,
    "drop-add": lambda **options: dc.DropAdd(0.05, **options),
}
STEP = 30.0
BOUNDS = Bounds(weight=100.0, mean_weight=STEP, weight_variance=0.08)


def survey(bounds=BOUNDS, seed=7):
    """400 cells of 0 to 20 records with weights of 10 to 50."""
    rng = np.random.default_rng(seed)
    count = rng.integers(0, 21, 400)
    weight = np.array([rng.integers(10, 51, n).sum() for n in count], dtype=float)
    table = square(count.reshape(20, 20), weight.reshape(20, 20)).rekeyed(rng)
    return replace(table.with_secret(SECRET), data_set=DataSet("survey", bounds=bounds))


def test_frames_of_counts_and_weights_declare_the_mean_too():
    frame = {"a": ["x", "y"], "n": [3, 4], "w": [80.0, 140.0]}
    table = dc.Table.from_counts(frame, "n", "a", weight="w", mean_weight=STEP)
    assert table.data_set.bounds == Bounds(mean_weight=STEP)
    steps = table.simulate(dc.Pram(grid="mean-weight"), seed=1, unit="weight").z / STEP
    np.testing.assert_array_equal(steps, np.rint(steps))


def reference(table, release, noise, kind):
    """Equations (4) and (5) cell by cell, rounded to steps."""
    expected = []
    for n, w, v in zip(table.z, table.weights, noise, strict=True):
        if n + v <= 0:
            expected.append(0)
        elif kind == "mean-weight":
            expected.append(max(0, math.floor(w / STEP + 0.5) + v) * STEP)
        else:
            exact = (n + v) * w / n if n else v * STEP
            expected.append(math.floor(exact / STEP + 0.5) * STEP)
    np.testing.assert_array_equal(release.z, expected)


@pytest.mark.parametrize("grid", ["mean-weight", "cell-weight"])
@pytest.mark.parametrize("kind", METHODS)
def test_noise_is_looked_up_by_records_and_moves_weighted_counts(kind, grid):
    table, method = survey(), METHODS[kind](grid=grid)
    release = table.protect(method)
    resolved = replace(method, grid=RecordSteps(STEP, grid))
    keys = SECRET.mix_keys(table.cell_keys, resolved.purpose)
    noise = method.law.noise(table.z, keys, 2**32)
    assert (table.z + noise == 0).any()
    reference(table, release, noise, grid)
    step = release.statement.steps[1].parameters
    assert (step["grid"], step["steps"]) == (STEP, grid)
    assert release.statement.says("weights-vary-little")
    assert release.statement.says("moved-by-own-weights") == (grid == "cell-weight")


def test_equations_of_the_paper_are_what_steps_round():
    table = survey()
    release = table.protect(dc.CellKey(PTABLE, grid="mean-weight"))
    method = dc.CellKey(PTABLE, grid=RecordSteps(STEP, "mean-weight"))
    keys = SECRET.mix_keys(table.cell_keys, method.purpose)
    noise = PTABLE.noise(table.z, keys, 2**32)
    left = table.z + noise > 0
    exact = by_mean(table.weights, noise, STEP)
    assert np.abs(release.z - exact)[left].max() <= STEP / 2
    release = table.protect(dc.CellKey(PTABLE, grid="cell-weight"))
    method = dc.CellKey(PTABLE, grid=RecordSteps(STEP, "cell-weight"))
    noise = PTABLE.noise(table.z, SECRET.mix_keys(table.cell_keys, method.purpose), 2**32)
    exact = by_cell(table.weights, table.z, noise, STEP)
    assert np.abs(release.z - exact).max() <= STEP / 2


def test_small_numbers_of_records_are_protected_as_small_counts_are():
    """With js = 2 noise leaves no cell with one or two records; a threshold hides by records."""
    table = survey()
    method = dc.CellKey(PTABLE, grid="mean-weight", threshold=8)
    release, plain = table.protect(method), table.protect(replace(method, threshold=None))
    keys = SECRET.mix_keys(
        table.cell_keys,
        replace(method, grid=RecordSteps(STEP, "mean-weight")).purpose,
    )
    left = table.z + PTABLE.noise(table.z, keys, 2**32)
    assert not np.isin(left, [1, 2]).any()
    np.testing.assert_array_equal(release.hidden, left < 8)
    assert (release.z[left < 8] == 0).all()
    np.testing.assert_array_equal(release.z[left >= 8], plain.z[left >= 8])


def test_sums_add_up_and_trials_have_the_same_steps():
    table = survey()
    release = table.protect(dc.CellKey(PTABLE, grid="mean-weight", margins="summed"))
    np.testing.assert_allclose(release.design.aggregate(release.y), release.z)
    trial = table.simulate(dc.Pram(invariant=True, grid="mean-weight"), seed=1)
    assert (trial.z % STEP == 0).all()
    assert trial.unit == "weight"


@pytest.mark.parametrize(
    ("method", "spent", "stated"),
    [
        (dc.DiscreteLaplace(2.0, grid="mean-weight"), 2.0, 8.0),
        (dc.Laplace(2.0, grid="mean-weight"), 2.0, 8.0),
        (dc.DiscreteGaussian(0.1, grid="mean-weight"), 0.1, 1.6),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_stated_cost_is_that_of_the_published_figures(method, spent, stated, tmp_path):
    """A weight of 100 moves a sum by up to four steps of 30: four times ε, sixteen times ρ."""
    table = survey()
    release = table.protect(method, ledger=dc.Ledger(tmp_path / "ledger.db"))
    privacy = release.statement.privacy
    assert (privacy.epsilon if privacy.rho is None else privacy.rho) == pytest.approx(stated)
    counts = replace(table, data_set=DataSet("counts")).protect(
        replace(method, grid=None), unit="count"
    )
    np.testing.assert_allclose(release.precision * STEP**2, counts.precision)
    assert f"= {spent:g}: one step is 30" in release.statement.text
    book = dc.Ledger(tmp_path / "ledger.db").spent("survey")
    assert (book.epsilon if privacy.rho is None else book.rho) == pytest.approx(stated)


def test_without_a_bound_of_weights_no_cost_is_claimed():
    table = survey(Bounds(mean_weight=STEP))
    with pytest.raises(ParameterError, match="weight_bound=200"):
        table.protect(dc.DiscreteLaplace(2.0, grid="mean-weight"))
    release = table.protect(dc.CellKey(PTABLE, grid="mean-weight"))  # it claims none
    assert release.statement.privacy is None


def outcomes(count, steps, law, reach, zero_by_records):
    """The law of one published cell: private noise, zero where no record, or no step, is left."""
    found = {}
    for v in range(-reach, reach + 1):
        is_zero = count + v <= 0 if zero_by_records else steps + v <= 0
        shown = 0 if is_zero else max(0, steps + v)
        found[shown] = found.get(shown, 0.0) + law[v + reach]
    return found


@pytest.mark.parametrize("zero_by_records", [False, True])
def test_zeros_by_sample_count_would_undo_every_guarantee(zero_by_records):
    """Private figures are zero where no step is left, not where no record is.

    Ten steps of three records, and eight steps of two after one of weight two left: by records the
    first never shows 7, the second does.
    """
    reach, epsilon = 60, 0.5
    law = laplace_law(epsilon, reach)
    first = outcomes(3, 10, law, reach, zero_by_records)
    second = outcomes(2, 8, law, reach, zero_by_records)
    inside = range(0, 40)
    ratios = [
        math.inf if not second.get(k) or not first.get(k) else abs(math.log(first[k] / second[k]))
        for k in inside
        if first.get(k) or second.get(k)
    ]
    assert (max(ratios) <= 2 * epsilon + 1e-9) != zero_by_records


@pytest.mark.parametrize(
    ("bounds", "kind", "says"),
    [
        (Bounds(mean_weight=30), "weights-vary", "was not declared"),
        (Bounds(mean_weight=30, weight_variance=5.29), "weights-vary", "declared as 529%"),
        (Bounds(mean_weight=30, weight_variance=0.05), "weights-vary-little", "5.00% at most"),
        (Bounds(weight=32.0, mean_weight=30), "weights-vary-little", "6.67% at most"),
    ],
)
def test_how_far_weights_vary_is_judged_by_declared_figures(bounds, kind, says):
    texts = set()
    for seed in range(3):
        statement = survey(bounds, seed).protect(dc.CellKey(PTABLE, grid="mean-weight")).statement
        assert statement.says(kind)
        assert says in statement.text
        texts.add(statement.text)
    assert len(texts) == 1


def test_the_custodian_can_compute_what_is_to_be_declared():
    weight = np.array([10.0, 20.0, 30.0, 100.0])
    design = dc.Design.product({"a": 2}, "a")
    sums = [np.array([v[:2].sum(), v[2:].sum()]) for v in (weight, weight**2)]
    table = dc.Table.from_inner(design, CellValues(np.array([2, 2]), *sums))
    assert table.weight_variance == pytest.approx(weight.var() / weight.mean() ** 2)
    with pytest.raises(DesignError, match="squared weights"):
        _ = survey().weight_variance


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (lambda: dc.CellKey(PTABLE, grid="mean"), "grid must be a positive number, 'mean-weight'"),
        (lambda: dc.DiscreteLaplace(1.0, grid="cell-weight"), "no budget bounds"),
        (lambda: dc.CellKey(PTABLE, grid="mean-weight", margins="adjusted"), "'adjusted'"),
        (
            lambda: survey(Bounds()).protect(dc.DropAdd(grid="mean-weight")),
            "with_roles.mean_weight=50",
        ),
        (
            lambda: survey(Bounds(mean_weight=31.0)).protect(dc.DropAdd(grid="mean-weight")),
            "every other value of mean_weight= would draw anew",
        ),
        (
            lambda: survey(Bounds(weight=300.0, mean_weight=30.0)).protect(
                dc.CellKey(PTABLE, grid="mean-weight")
            ),
            "is below 60, the declared bound of weights over the largest move",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_the_remedy(run, why):
    with pytest.raises(ParameterError, match=why):
        run()


def test_estimates_of_readers_refuse_noise_by_records():
    release = survey().protect(dc.CellKey(PTABLE, grid="mean-weight"))
    with pytest.raises(DesignError, match="number of sampled records"):
        matrix_of(release)
    private = survey().protect(dc.DiscreteLaplace(0.5, grid="mean-weight"))
    low, high = private.intervals(0.99)
    inside = (low <= survey().weights) & (survey().weights <= high)
    assert inside.mean() > 0.97
