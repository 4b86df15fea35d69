"""Inference by users of a release: laws of estimates by simulation, tests at their level."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import discreet as dc
from discreet.errors import CodeError, DesignError, ParameterError
from discreet.noise import (
    TransitionMatrix,
    discrete_laplace,
    drop_add,
    linear_table,
    moment_estimate,
    perturbation_table,
    pram,
)
from discreet.randomness import stream
from discreet.release.inference.chi_square import goodness_of_fit_test, noise_variance
from discreet.tables import CellStatus, Statement
from discreet.testing import sample_table
from discreet_studies.three_approaches import printed
from tests.assess.helpers import weighted_table

MODULUS = 2**32
RARE = 0.1  # cells; moves that none of the draws may show


def released(values, names="a"):
    """A release of bare values by another office, whose statement says nothing."""
    z = np.asarray(values)
    design = dc.Design.product(dict(zip(names, z.shape, strict=True)), [tuple(names)])
    return dc.Release(design, z.ravel(), Statement())


def noisy(matrix, counts, rng):
    return counts + matrix.noise(counts, rng.integers(MODULUS, size=counts.size), MODULUS)


# How many cells truly have each count


def test_frequencies_come_back_through_the_matrix_that_the_paper_prints():
    # Shlomo, Krenzke & Li (2019), Table 2: expected frequencies t M, and back.
    lines = [line.split()[1:] for line in printed.SMALL.strip().splitlines()]
    P = np.array(lines, dtype=float)
    P /= P.sum(axis=1, keepdims=True)
    t = np.array([400, 300, 200, 100, 80, 60, 40]) * 100
    published = np.rint(t @ P).astype(np.int64)
    matrix = TransitionMatrix.from_targets("Table 2", P)
    found = dc.inference.count_frequencies(
        released(np.repeat(np.arange(7), published)), "a", matrix, largest=6
    )
    np.testing.assert_array_equal(found.observed, published)
    np.testing.assert_allclose(found.estimate, t, atol=5)
    np.testing.assert_allclose(found.estimate, moment_estimate(published, P), atol=5)
    assert found.remark == "The matrix can be inverted."
    assert found.cells == published.sum()


def draws_of(matrix, counts, used, draws=150, largest=8):
    rng = stream(1, f"frequencies {matrix.name}")
    return [
        dc.inference.count_frequencies(
            released(noisy(matrix, counts, rng)), "a", used, largest=largest
        )
        for _ in range(draws)
    ]


def is_unbiased(found, truth):
    estimates = np.array([f.estimate for f in found])
    error = estimates.std(axis=0, ddof=1) / np.sqrt(len(found))
    return bool((np.abs(estimates.mean(axis=0) - truth) < 4 * error + RARE).all())


SMALL_NOISE = [discrete_laplace(2.0, 7), pram(), drop_add(), perturbation_table(2, 1)]


@pytest.mark.parametrize("matrix", SMALL_NOISE, ids=str)
@pytest.mark.parametrize("spread", [20, 300], ids=["all counts", "cut"])
def test_the_moment_estimate_is_unbiased_with_the_standard_error_it_states(matrix, spread):
    rng = stream(2, "truth")
    counts = np.concatenate([rng.poisson(2.0, 300), rng.integers(0, spread, 300)])
    truth = np.bincount(counts)[:9]
    found = draws_of(matrix, counts, matrix)
    assert is_unbiased(found, truth)
    stated = np.mean([np.diag(f.covariance) for f in found], axis=0)
    seen = np.var([f.estimate for f in found], axis=0, ddof=1)
    np.testing.assert_allclose(stated, seen, rtol=0.6, atol=1.0)
    sums = np.array([f.between(1, 4) for f in found])
    assert sums[:, 0].mean() == pytest.approx(truth[1:5].sum(), abs=5 * sums[:, 0].std() / 12)
    assert np.sqrt((sums[:, 1] ** 2).mean()) == pytest.approx(sums[:, 0].std(), rel=0.3)


def test_what_comes_down_over_the_cut_is_taken_off():
    # Twenty-one cells at every count; a third of each moves down and a third up, zeros stay.
    expected = np.full(400, 21)
    expected[:2] = 28, 14
    release = released(np.repeat(np.arange(400), expected))
    found = dc.inference.count_frequencies(release, "a", drop_add(), largest=8)
    assert found.identified.all()
    np.testing.assert_allclose(found.estimate, 21)


def test_a_wrong_matrix_and_the_published_numbers_themselves_are_found_to_be_biased():
    counts = stream(3, "truth").poisson(2.0, 2000)
    truth = np.bincount(counts, minlength=9)[:9]
    right, wrong = discrete_laplace(1.0, 12), discrete_laplace(0.7, 12)
    assert is_unbiased(draws_of(right, counts, right, draws=60), truth)
    assert not is_unbiased(draws_of(right, counts, wrong, draws=60), truth)
    as_published = [
        replace(f, estimate=f.observed.astype(float))
        for f in draws_of(right, counts, right, draws=60)
    ]
    assert not is_unbiased(as_published, truth)


def test_blocked_values_make_the_matrix_nearly_singular_and_large_counts_make_it_singular():
    matrix, rng = perturbation_table(5, 3, 2), stream(4, "blocked")
    counts = rng.poisson(3.0, 500)
    near = dc.inference.count_frequencies(released(noisy(matrix, counts, rng)), "a", matrix)
    assert near.condition > 1000
    assert "nearly singular" in near.remark
    assert near.standard_error[1] > 100
    counts = np.concatenate([counts, rng.integers(200, 3000, 500)])
    cut = dc.inference.count_frequencies(released(noisy(matrix, counts, rng)), "a", matrix)
    assert cut.condition == np.inf
    assert not cut.identified[1:3].any()
    assert np.isinf(cut.standard_error[1:3]).all()
    assert cut.remark.startswith("The matrix is singular: the counts")
    assert np.isinf(cut.between(1, 2)[1])


def test_the_projection_has_no_negative_numbers_and_is_nearer_to_the_truth():
    matrix, rng = perturbation_table(2, 1), stream(5, "projection")
    counts = rng.poisson(3.0, 400)
    truth = np.bincount(counts, minlength=11)[:11]
    far, near = [], []
    for _ in range(30):
        release = released(noisy(matrix, counts, rng))
        plain = dc.inference.count_frequencies(release, "a", matrix)
        projected = dc.inference.count_frequencies(release, "a", matrix, nonnegative=True)
        assert (projected.estimate >= 0).all()
        far.append(np.abs(plain.estimate - truth).mean())
        near.append(np.abs(projected.estimate - truth).mean())
    assert np.mean(near) < np.mean(far) / 2


def test_an_estimate_without_negative_numbers_is_its_own_projection():
    counts = np.repeat(np.arange(8), 500)
    matrix = discrete_laplace(3.0, 5)
    release = released(noisy(matrix, counts, stream(6, "own")))
    plain = dc.inference.count_frequencies(release, "a", matrix, largest=7)
    projected = dc.inference.count_frequencies(release, "a", matrix, largest=7, nonnegative=True)
    np.testing.assert_allclose(projected.estimate, plain.estimate, rtol=0.05)


def test_frequencies_as_a_frame_and_what_is_refused():
    release = released([0, 1, 2, 3])
    found = dc.inference.count_frequencies(release, "a", drop_add(), largest=2)
    assert found.to_arrow().column_names == ["count", "observed", "estimate", "standard_error"]
    with pytest.raises(ParameterError, match="from 0 to 2"):
        found.between(1, 5)
    with pytest.raises(DesignError, match="does not say how it was protected"):
        dc.inference.count_frequencies(release, "a")
    with pytest.raises(DesignError, match="whole numbers"):
        dc.inference.count_frequencies(released([0.5, 1.0]), "a", drop_add())


def test_weighted_counts_are_taken_in_steps_of_the_grid():
    trial = weighted_table().simulate(dc.DropAdd(grid=10.0), seed=1)
    cells = trial.z[trial.design.slice_of(0)] / 10
    found = dc.inference.count_frequencies(trial, trial.design.terms[:1], largest=50)
    assert found.observed.sum() == (cells <= 50).sum()
    assert all(found.observed[int(c)] for c in cells if c <= 50)


# The law of the noise, from the statement

MATRICES = [
    perturbation_table(5, 3, 2),
    perturbation_table(4, 1.5, 0, pstay=0.3),
    perturbation_table(3, 2, 1, variant="ptable"),
    perturbation_table(5, 3, 2).modified(seed=1),
    linear_table(5, 3, 2),
    discrete_laplace(1.0, 10),
    drop_add(0.05, 4),
]


@pytest.mark.parametrize("matrix", MATRICES, ids=lambda m: f"{m.name} {dict(m.parameters)}")
def test_the_matrix_is_made_again_from_a_stored_statement(matrix, tmp_path):
    release = sample_table().with_secret(dc.Secret.demo()).protect(dc.CellKey(matrix))
    read = dc.facade.read_release(release.save(tmp_path / "release.parquet"))
    found = dc.inference.matrix_of(read)
    np.testing.assert_allclose(found.law, matrix.law, atol=1e-12)
    np.testing.assert_array_equal(found.starts, matrix.starts)


@pytest.mark.parametrize(
    "method", [dc.DropAdd(share=0.02), dc.Pram(epsilon=1.0)], ids=lambda m: m.name
)
def test_the_matrix_of_methods_with_a_fixed_law(method):
    assert dc.inference.matrix_of(sample_table().simulate(method, seed=1)) == method.law


def test_the_matrix_of_a_table_with_normal_tails_has_normal_tails():
    table = linear_table(5, 2.0, 2, tails="normal")
    assert table != linear_table(5, 2.0, 2)
    trial = sample_table().simulate(dc.CellKey(table), seed=1)
    assert dc.inference.matrix_of(trial) == table


@pytest.mark.parametrize("cap", [None, 60])
def test_the_matrix_of_private_counts_is_the_law_of_the_method(cap):
    table, method = sample_table(), dc.DiscreteLaplace(8.0, cap=cap, accept_delta=1.0)
    matrix = dc.inference.matrix_of(table.simulate(method, seed=1))
    for position in (0, 5, len(table.z) - 1):
        moves, law = method.cell_law(table, position)
        ours = dict(zip(matrix.deviations, matrix.probabilities(table.z[position]), strict=True))
        likely = law > 1e-9
        theirs = [ours[move] for move in moves[likely]]
        np.testing.assert_allclose(theirs, law[likely], rtol=1e-3)


def test_what_the_statement_does_not_tell_is_said():
    table = sample_table()
    invariant = table.simulate(dc.Pram(invariant=True), seed=1)
    with pytest.raises(DesignError, match="confidential"):
        dc.inference.matrix_of(invariant)
    by_hand = TransitionMatrix.from_law("by hand", [[0, 1, 0], [0.2, 0.6, 0.2]])
    with pytest.raises(DesignError, match="does not tell the matrix"):
        dc.inference.matrix_of(table.simulate(dc.CellKey(by_hand), seed=1))
    signed = table.simulate(dc.DiscreteLaplace(2.0, nonnegative=False), seed=1)
    with pytest.raises(DesignError, match="negative"):
        dc.inference.matrix_of(signed)
    fitted = table.simulate(dc.DropAdd(), seed=1).fit("least-squares")
    with pytest.raises(DesignError, match="fit:least-squares"):
        dc.inference.chi_square(fitted, "age*sex")
    with pytest.raises(DesignError, match="small-count-rounding"):
        dc.inference.matrix_of(table.simulate(dc.SmallCountRounding(), seed=1))


def test_a_quality_beside_the_values_changes_nothing():
    trial = sample_table().simulate(dc.protect.Quality(dc.DropAdd()), seed=1)
    assert dc.inference.matrix_of(trial) == drop_add()


# Tests of hypotheses


def rejections(method, test, draws=300, shape=(5, 4), mean=15):
    """Shares of independent tables that the adjusted and the naive test reject at 5 %."""
    rng = stream(7, f"level {method.name}")
    design = dc.Design.product(dict(zip("ab", shape, strict=True)), "a*b")
    p, q = rng.dirichlet(np.full(shape[0], 8.0)), rng.dirichlet(np.full(shape[1], 8.0))
    adjusted = naive = 0
    for seed in range(draws):
        counts = rng.poisson(np.outer(p, q).ravel() * mean * len(p) * len(q))
        trial = dc.Table.from_inner(design, counts).simulate(method, seed=seed)
        ours, plain = test(trial, p)
        adjusted += ours < 0.05
        naive += plain < 0.05
    return adjusted / draws, naive / draws


def independence(trial, p):
    shown = np.maximum(trial.z[trial.design.slice_of(0)].reshape(5, 4), 0)
    plain = stats.chi2_contingency(shown, correction=False).pvalue
    return dc.inference.chi_square(trial, "a*b").p_value, plain


def fit(trial, p):
    shown = trial.z[trial.design.slice_of(1)]
    plain = stats.chisquare(shown, shown.sum() * p).pvalue
    return dc.inference.goodness_of_fit(trial, "a", p).p_value, plain


def test_independence_keeps_its_level_under_a_perturbation_table():
    method = dc.CellKey(perturbation_table(5, 3.5, 2))
    adjusted, naive = rejections(method, independence, draws=200, mean=8)
    assert 0.02 < adjusted < 0.085
    assert naive > 0.25


def test_independence_keeps_its_level_by_the_public_precision_of_private_releases():
    method = dc.DiscreteGaussian(0.15, nonnegative=False)
    adjusted, naive = rejections(method, independence, draws=200, mean=25)
    assert 0.015 < adjusted < 0.095
    assert naive > 0.12


def test_private_counts_that_were_cut_at_zero_are_tested_by_their_matrix():
    adjusted, naive = rejections(dc.DiscreteLaplace(1.0), independence, draws=200)
    assert 0.02 < adjusted < 0.085  # by the variance before the cut: 0.018
    assert naive > 0.5


def test_the_fit_of_proportions_keeps_its_level():
    adjusted, naive = rejections(dc.DropAdd(share=1.0, cap=15), fit)
    assert 0.02 < adjusted < 0.085
    assert naive > 0.3


def test_noise_that_is_understated_breaks_the_level():
    true, small = perturbation_table(5, 3.5, 2), perturbation_table(3, 0.5)

    def understated(trial, p):
        wrong, right = (dc.inference.chi_square(trial, "a*b", m) for m in (small, true))
        return wrong.p_value, right.p_value

    wrong, right = rejections(dc.CellKey(true), understated, mean=8)
    assert wrong > 0.15 > 0.085 > right


def test_the_plain_test_of_fit_is_that_of_scipy():
    counts, p = np.array([20, 14, 31, 9]), np.array([0.2, 0.3, 0.4, 0.1])
    ours, theirs = goodness_of_fit_test(counts, p), stats.chisquare(counts, counts.sum() * p)
    assert ours.statistic == pytest.approx(theirs.statistic)
    assert (ours.freedom, ours.inflation) == (3, 1.0)
    assert ours.p_value == pytest.approx(theirs.pvalue)


def test_the_moments_of_the_test_of_fit_are_traces_of_dense_matrices():
    counts, p, matrix = np.array([20, 14, 31, 9]), np.array([0.2, 0.3, 0.4, 0.1]), drop_add()
    e = counts.sum() * p
    root = np.sqrt(p)
    A = (np.eye(4) - np.outer(root, root)) @ np.diag(1 + noise_variance(matrix, e) / e)
    mean, variance = np.trace(A), 2 * np.trace(A @ A)
    test = goodness_of_fit_test(counts, p, matrix)
    assert test.inflation == pytest.approx(mean / 3)
    scale = variance / (2 * mean)
    assert test.p_value == pytest.approx(stats.chi2.sf(test.statistic / scale, mean / scale))


def test_proportions_go_by_code_or_by_place():
    release = released([20, 10, 30])
    matrix = drop_add()
    codes = release.design.axes[0].leaves
    shares = dict(zip(codes, [0.25, 0.25, 0.5], strict=True))
    by_code = dc.inference.goodness_of_fit(release, "a", dict(reversed(shares.items())), matrix)
    assert by_code == dc.inference.goodness_of_fit(release, "a", [0.25, 0.25, 0.5], matrix)
    with pytest.raises(CodeError, match="proportions are needed for"):
        dc.inference.goodness_of_fit(release, "a", {"nobody": 1.0}, matrix)
    with pytest.raises(ParameterError, match="sum to 1"):
        dc.inference.goodness_of_fit(release, "a", [0.25, 0.25, 0.25], matrix)
    with pytest.raises(ParameterError, match="shape"):
        dc.inference.goodness_of_fit(release, "a", [0.5, 0.5], matrix)
    crossed = released([[20, 10], [5, 5]], "ab")
    with pytest.raises(ParameterError, match="as an array"):
        dc.inference.goodness_of_fit(crossed, "a*b", shares, matrix)


def test_weighted_counts_are_tested_on_the_scale_of_the_sample():
    rng, grid = stream(8, "weighted"), 30.0
    design = dc.Design.product({"a": 5, "b": 4}, "a*b")
    level, effect = 0, 0
    for seed in range(200):
        sample = rng.poisson(np.full(20, 30.0))
        z = design.aggregate(np.zeros(20, dtype=int)).astype(float)
        z[:20] = grid * noisy(drop_add(), sample, rng)
        released = dc.Table.from_inner(design, sample).simulate(dc.DropAdd(), seed=seed)
        step = replace(
            released.statement.steps[0], parameters={"share": 0.01, "cap": 7, "grid": grid}
        )
        weighted = replace(
            released, z=z, unit="weight", statement=replace(released.statement, steps=(step,))
        )
        level += dc.inference.chi_square(weighted, "a*b").p_value < 0.05
        effect += dc.inference.chi_square(weighted, "a*b", design_effect=2.0).p_value < 0.05
    assert 0.015 < level / 200 < 0.095
    assert effect <= level / 3


def test_tables_that_cannot_be_tested_are_refused():
    table = sample_table()
    trial = table.simulate(dc.DropAdd(), seed=1)
    with pytest.raises(ParameterError, match="stands for several tables"):
        dc.inference.chi_square(trial, "region*sex")
    with pytest.raises(DesignError, match="two variables"):
        dc.inference.chi_square(trial, "age")
    summed = table.simulate(dc.DropAdd(margins="summed"), seed=1)
    with pytest.raises(DesignError, match="sums of cells with noise"):
        dc.inference.chi_square(summed, "age*sex")
    hidden = table.simulate(dc.CellKey(perturbation_table(5, 3, 2), threshold=10), seed=1)
    with pytest.raises(DesignError, match="not shown"):
        dc.inference.count_frequencies(hidden, "region[leaves]*age*sex")
    design = dc.Design.product({"a": 3, "b": 3, "c": 2}, "a*b + c")
    other = dc.Release(design, np.ones(design.n_published, dtype=int), Statement())
    with pytest.raises(DesignError, match="a:c is not published"):
        dc.inference.chi_square(other, "a*c", drop_add())
    status = np.zeros(design.n_published, dtype=np.int8)
    status[0] = CellStatus.structural_zero
    with pytest.raises(DesignError, match="1 of 9 combinations cannot occur"):
        dc.inference.chi_square(replace(other, status=status), "a*b", drop_add())
    bare = dc.Release(dc.Design.from_matrix(np.eye(2)), np.ones(2), Statement())
    with pytest.raises(DesignError, match="made from a matrix"):
        dc.inference.chi_square(bare, "a*b", drop_add())
