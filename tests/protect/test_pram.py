import numpy as np
import pytest

import discreet as dc
from discreet import Secret
from discreet.errors import KeysError, ParameterError
from discreet.noise import large_table, perturbation_table, small_table
from discreet.testing import check_method, retabulate, sample_table
from tests.protect.tables import party, secret_party, square

RNG = np.random.default_rng(11)
COUNTS = RNG.poisson(RNG.gamma(0.7, 12, (60, 60)))
SMALL = square(np.minimum(COUNTS[:8, :8], 30)).rekeyed(RNG)


@pytest.mark.parametrize(
    ("method", "table", "draws"),
    [
        (dc.Pram(invariant=True), sample_table(), 100_000),
        (dc.Pram(), sample_table(), 100_000),
        (dc.Pram(invariant=True, realised=True), sample_table(), 5_000),
        (dc.Pram(margins="summed"), sample_table(), 5_000),
        (dc.Pram(invariant=True, matrix=perturbation_table(4, 1)), SMALL, 30_000),
        (dc.Pram(matrix=perturbation_table(5, 3, 2)), SMALL, 100_000),
        (dc.Pram(invariant=True, matrix=perturbation_table(4, 1), realised=True), SMALL, 2_000),
    ],
    ids=["invariant", "plain", "realised", "summed", "designed", "designed plain", "designed kept"],
)
def test_the_battery_finds_nothing_to_complain_of(method, table, draws):
    check_method(method, table, draws=draws)


def test_the_plain_form_follows_the_printed_tables():
    """Shlomo, Krenzke & Li (2019), Tables 2 and 3: a residue m moves by m - v."""
    method = dc.Pram()
    moves, law = method.cell_law(square([[1]]), 0)
    np.testing.assert_allclose(law[moves == -1], [0.11920], atol=5e-6)
    np.testing.assert_allclose(law[(moves >= -1) & (moves <= 5)], small_table()[1], atol=1e-15)
    moves, law = method.cell_law(square([[30]]), 0)
    np.testing.assert_allclose(law[moves == -1], [0.22227], atol=5e-6)
    np.testing.assert_allclose(law[moves <= 0][::-1], large_table()[0, :8])
    assert not law[moves > 0].any()


def test_frequencies_are_kept_on_average_when_invariant_and_not_otherwise():
    table = square(COUNTS).rekeyed(RNG)
    before = np.bincount(table.z[table.z < 7], minlength=7)

    def mean_change(method):
        after = [
            np.bincount(z[(table.z < 7) & (z < 7)], minlength=7)
            for z in (table.simulate(method, seed=s).z for s in range(60))
        ]
        return np.mean(after, axis=0) - before

    kept, drifting = mean_change(dc.Pram(invariant=True)), mean_change(dc.Pram())
    assert np.abs(kept).max() < 4
    assert np.abs(drifting).max() > 20


@pytest.mark.parametrize("matrix", [None, perturbation_table(4, 1)], ids=["folded", "designed"])
def test_frequencies_are_kept_exactly_when_realised(matrix):
    counts = np.minimum(COUNTS, 60) if matrix else COUNTS
    table = square(counts)
    method = dc.Pram(invariant=True, realised=True, matrix=matrix)
    after = table.simulate(method, seed=1).z
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
    methods = (dc.Pram(invariant=True, alpha=a) for a in (0.2, 0.5, 1))
    shares = [np.mean(table.simulate(method, seed=1).z != table.z) for method in methods]
    assert shares[0] < shares[1] < shares[2]
    np.testing.assert_allclose(shares[0] / shares[2], 0.2, rtol=0.2)


def test_cells_that_are_the_same_move_together():
    table = sample_table()
    first = table.design.duplicates()
    again = first != np.arange(len(first))
    assert again.sum() == 15
    invariant = dc.Pram(invariant=True), dc.Pram(invariant=True, realised=True)
    for method in (dc.Pram(), *invariant, dc.DropAdd(share=1.0)):
        moves = table.simulate(method, seed=3).z - table.z
        np.testing.assert_array_equal(moves, moves[first])


def test_the_secret_decides_where_the_matrix_is_that_of_the_table():
    table, method = party("party*age*sex"), dc.Pram(invariant=True)
    with pytest.raises(KeysError, match="publication draws from a secret"):
        table.protect(method)
    secrets = [
        Secret(f"custodian number {k} has a secret of their own".encode()) for k in (1, 1, 2)
    ]
    first, second, other = (table.with_secret(s).protect(method).z for s in secrets)
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_with_the_fixed_matrix_the_same_cell_has_the_same_value_in_every_table():
    """Ten tables over one margin are no ten draws to average."""
    table = secret_party("party*age*sex")
    wide, narrow = (
        t.protect(dc.Pram()) for t in (table, retabulate(table, [("sex", "age"), ("age",)]))
    )
    for k in range(narrow.design.n_published):
        assert narrow.z[k] == wide.z[wide.design.position(narrow.design.cell(k))]


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
        ({"grid": 0}, "grid"),
    ],
)
def test_wrong_options_are_refused(given, words):
    with pytest.raises(ParameterError, match=words):
        dc.Pram(**given)


def test_the_statement_tells_no_frequency():
    method = dc.Pram(invariant=True, realised=True)
    release = secret_party().protect(method)
    parameters = release.statement.steps[-1].parameters
    assert parameters["alpha"] == 0.8
    assert set(parameters) == {
        "matrix", "epsilon", "cap", "invariant", "alpha", "realised", "margins"
    }  # fmt: skip
    assert "No count moved by more than 14." in release.statement.text
    assert "how often each value occurs is kept." in release.statement.text


def test_what_kept_zeros_show_is_said():
    table = secret_party()
    plain, invariant = (table.protect(dc.Pram(invariant=i)).statement for i in (False, True))
    assert "A value above zero proves that the cell has records" in plain.text
    assert "zeros stay zero and nothing else becomes zero" in invariant.text
