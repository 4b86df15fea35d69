import numpy as np
import pytest

import discreet as dc
from discreet.errors import ParameterError
from discreet.noise import large_table, perturbation_table, small_table
from discreet.testing import check_method
from discreet.testing.draws import sample_table
from tests.protect.tables import keyed_party, party, square

RNG = np.random.default_rng(11)
COUNTS = RNG.poisson(RNG.gamma(0.7, 12, (60, 60)))
SMALL = square(np.minimum(COUNTS[:8, :8], 30))


@pytest.mark.parametrize(
    ("method", "table", "draws"),
    [
        (dc.Pram(), sample_table(), 100_000),
        (dc.Pram(invariant=False), sample_table(), 100_000),
        (dc.Pram(realised=True), sample_table(), 5_000),
        (dc.Pram(margins="summed"), sample_table(), 5_000),
        (dc.Pram(matrix=perturbation_table(4, 1)), SMALL, 30_000),
        (dc.Pram(matrix=perturbation_table(5, 3, 2), invariant=False), SMALL, 100_000),
        (dc.Pram(matrix=perturbation_table(4, 1), realised=True), SMALL, 2_000),
    ],
    ids=["invariant", "plain", "realised", "summed", "designed", "designed plain", "designed kept"],
)
def test_the_battery_finds_nothing_to_complain_of(method, table, draws):
    check_method(method, table, draws=draws)


def test_the_plain_form_follows_the_printed_tables():
    """Shlomo, Krenzke & Li (2019), Tables 2 and 3: a residue m moves by m - v."""
    method = dc.Pram(invariant=False)
    moves, law = method.cell_law(square([[1]]), 0)
    np.testing.assert_allclose(law[moves == -1], [0.11920], atol=5e-6)
    np.testing.assert_allclose(law[(moves >= -1) & (moves <= 5)], small_table()[1], atol=1e-15)
    moves, law = method.cell_law(square([[30]]), 0)
    np.testing.assert_allclose(law[moves == -1], [0.22227], atol=5e-6)
    np.testing.assert_allclose(law[moves <= 0][::-1], large_table()[0, :8])
    assert not law[moves > 0].any()


def test_frequencies_are_kept_on_average_when_invariant_and_not_otherwise():
    table = square(COUNTS)
    before = np.bincount(table.z[table.z < 7], minlength=7)

    def mean_change(method):
        after = [
            np.bincount(z[(table.z < 7) & (z < 7)], minlength=7)
            for z in (table.protect(method, seed=s).z for s in range(60))
        ]
        return np.mean(after, axis=0) - before

    kept, drifting = mean_change(dc.Pram()), mean_change(dc.Pram(invariant=False))
    assert np.abs(kept).max() < 4
    assert np.abs(drifting).max() > 20


@pytest.mark.parametrize("matrix", [None, perturbation_table(4, 1)], ids=["folded", "designed"])
def test_frequencies_are_kept_exactly_when_realised(matrix):
    counts = np.minimum(COUNTS, 60) if matrix else COUNTS
    table = square(counts)
    after = table.protect(dc.Pram(realised=True, matrix=matrix), seed=1).z
    changed = np.mean(after != table.z)
    assert 0.1 < changed < 0.6
    small, large = table.z < 7, table.z >= 7
    if matrix is None:
        assert np.array_equal(np.bincount(after[small]), np.bincount(table.z[small]))
        assert np.array_equal(np.bincount(after[large] % 15), np.bincount(table.z[large] % 15))
    else:
        assert np.array_equal(np.bincount(after), np.bincount(table.z))
    assert not after[table.z == 0].any()


def test_alpha_is_the_strength():
    table = square(COUNTS)
    shares = [np.mean(table.protect(dc.Pram(alpha=a), seed=1).z != table.z) for a in (0.2, 0.5, 1)]
    assert shares[0] < shares[1] < shares[2]
    np.testing.assert_allclose(shares[0] / shares[2], 0.2, rtol=0.2)


def test_cells_that_are_the_same_move_together():
    table = sample_table()
    first = table.design.duplicates()
    again = first != np.arange(len(first))
    assert again.sum() == 15
    for method in (dc.Pram(), dc.Pram(realised=True), dc.DropAdd(source="seed", share=1.0)):
        moves = table.protect(method, seed=3).z - table.z
        np.testing.assert_array_equal(moves, moves[first])


def test_a_seed_is_needed_and_decides():
    table = party()
    with pytest.raises(ParameterError, match="give it a seed"):
        table.protect(dc.Pram())
    with pytest.raises(ParameterError, match="give it rng"):
        dc.Pram()(table)
    first, second, other = (table.protect(dc.Pram(), seed=s).z for s in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"alpha": 0}, "alpha"),
        ({"alpha": 1.2}, "alpha"),
        ({"epsilon": -1}, "epsilon"),
        ({"cap": 2}, "cap"),
        ({"cap": 7.5}, "cap"),
        ({"realised": True, "invariant": False}, "invariant=True"),
        ({"margins": "each"}, "margins"),
        ({"weighting": "log"}, "weighting"),
    ],
)
def test_wrong_options_are_refused(given, words):
    with pytest.raises(ParameterError, match=words):
        dc.Pram(**given)


def test_the_statement_tells_no_frequency():
    release = keyed_party().protect(dc.Pram(realised=True), seed=1)
    parameters = release.statement.steps[0].parameters
    assert parameters["alpha"] == 0.8
    assert set(parameters) == {
        "matrix", "epsilon", "cap", "invariant", "alpha", "realised", "margins"
    }  # fmt: skip
    assert "No count moves by more than 14." in release.statement.text
    assert "is kept;" in release.statement.text
