"""The audit against sums written out, the papers' figures, and its own words."""

import math

import numpy as np
import pytest

from discreet.errors import ParameterError
from discreet.noise import TransitionMatrix, discrete_laplace, drop_add, perturbation_table, pram


def slow_delta(table, a, b, epsilon):
    """Sum over targets of max(0, P(j|a) - e^eps P(j|b)), written out."""
    P = table.dense(max(a, b) + 2 * table.max_move + 2)
    return sum(max(0.0, p - math.exp(epsilon) * q) for p, q in zip(P[a], P[b], strict=True))


@pytest.mark.parametrize(
    "table",
    [perturbation_table(5, 3, 2), pram(), drop_add(0.1, 3), discrete_laplace(1, 4)],
    ids=lambda t: t.name,
)
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_delta_is_the_largest_over_all_neighbours(table, epsilon):
    """The audit looks at selected pairs only; here every pair up to 80 is tried."""
    every = [
        slow_delta(table, a, b, epsilon) for i in range(80) for a, b in ((i, i + 1), (i + 1, i))
    ]
    assert table.audit(epsilon).delta == pytest.approx(max(every), rel=1e-12)


@pytest.mark.parametrize("table", [perturbation_table(5, 3, 2), pram(), drop_add(0.1, 3)])
def test_default_epsilon_and_delta_hold_together(table):
    audit = table.audit()
    for i in range(60):
        for a, b in ((i, i + 1), (i + 1, i)):
            assert slow_delta(table, a, b, audit.epsilon + 1e-9) <= audit.delta + 1e-12
    assert slow_delta(table, audit.worst.first, audit.worst.second, 50.0) == pytest.approx(
        audit.delta
    )


def test_figures_for_post_randomisation():
    """δ = 0.8808 between 0 and 1; the log-ratio between 1 and 2 is 2.145, above the 2 claimed."""
    pairs = {(p.first, p.second): p for p in pram().audit().neighbours}
    assert pairs[1, 0].delta == pytest.approx(0.8808, abs=5e-5)
    assert max(pairs[1, 2].epsilon, pairs[2, 1].epsilon) == pytest.approx(2.145, abs=5e-4)
    assert pram().audit().worst.first == 1


def test_moments_are_those_of_the_rows():
    table = TransitionMatrix.from_law("test", [[0, 1, 0], [0.2, 0.5, 0.3]])
    audit = table.audit()
    np.testing.assert_allclose(audit.mean, [0, 0.1])
    np.testing.assert_allclose(audit.variance, [0, 0.49])
    np.testing.assert_allclose(audit.stay, [1, 0.5])
    entropy = -sum(p * math.log2(p) for p in (0.2, 0.5, 0.3))
    np.testing.assert_allclose(audit.entropy, [0, entropy])
    assert audit.to_frame().column_names == ["count", "mean", "variance", "stay", "entropy"]


def test_the_order_of_keys_does_not_change_the_audit():
    table = perturbation_table(5, 3, 2)
    np.testing.assert_allclose(table.modified(seed=1).audit().variance, table.audit().variance)


def test_words_for_a_designed_table():
    text = str(perturbation_table(5, 3, 2).audit())
    for phrase in (
        "by more than 5",
        "mean is zero at every count",
        "variance is 3 at every count above zero",
        "always published as zero",
        "Values of 1 to 2 are never published",
        "Zeros are not hidden",
        "too large to speak of differential privacy",
    ):
        assert phrase in text
    assert "-0.0000" not in text


def test_words_for_a_biased_table_with_perturbed_zeros():
    text = str(discrete_laplace(2, 7).audit(epsilon=2))
    assert "biased: its mean reaches +0.1379 at count 0" in text
    assert "published as zero with probability 0.8808 only" in text
    assert "ε = 2 and δ = 6.33e-07" in text
    assert "Zeros are not hidden" not in text
    assert "too large" not in text
    assert "variance lies between" in text


def test_long_tables_are_shortened_in_print():
    law = np.tile([0.0, 1.0, 0.0], (60, 1))
    text = str(TransitionMatrix.from_law("long", law).audit())
    assert "(30 rows)" in text


def test_bad_epsilon_is_refused():
    for bad in (-1, math.nan, math.inf):
        with pytest.raises(ParameterError, match="epsilon"):
            pram().audit(bad)


def test_a_bias_is_no_promise():
    audit = discrete_laplace(2, 7).audit()
    assert not any("bias" in sentence for sentence in audit.guaranteed())
    assert any("biased: its mean reaches" in sentence for sentence in audit.not_guaranteed())


def test_a_bias_of_printed_probabilities_is_told_from_none_and_from_a_real_one():
    law = perturbation_table(5, 1.5).law
    printed = np.round(law, 8)
    printed[:, 5] += 1 - printed.sum(axis=1)
    tilted = printed.copy()
    tilted[3:, [4, 6]] += [-1e-5, 1e-5]
    said = [
        " ".join(TransitionMatrix.from_law("test", p).audit().guaranteed())
        for p in (law, printed, tilted)
    ]
    assert "mean is zero at every count" in said[0]
    assert "unbiased up to the rounding of its probabilities" in said[1]
    assert "mean" not in said[2]
