"""Invariant post-randomisation without small cells, on tables of any size."""

import numpy as np
import pytest

import discreet as dc
from discreet.errors import DataError, InfeasibleError, ParameterError
from discreet.noise import no_small_cells
from discreet.noise.invariant import RESIDUES, SINGLE, without_small_cells
from tests.noise.test_invariant import FREQUENCIES

METHOD = dc.Pram(invariant=True, small_cells=False, alpha=0.4)


def counts_of(frequencies):
    return np.repeat(np.arange(1, len(frequencies) + 1), frequencies)


def census(seed=1, cells=4_000):
    """Many small counts, and some beyond a thousand."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.gamma(0.3, 60.0, cells))
    counts[:40] = rng.integers(1_000, 2_000_000, 40)
    return dc.Table.from_inner(dc.Design.product({"a": cells}, [["a"]]), counts)


def test_below_a_hundred_it_is_the_matrix_of_the_paper():
    """`no_small_cells` is checked against Tables 2 and 3 of the paper, digit by digit."""
    padded = np.pad(FREQUENCIES, (0, SINGLE - 1 - len(FREQUENCIES)))
    own, papers = without_small_cells(counts_of(FREQUENCIES)), no_small_cells(padded)
    np.testing.assert_allclose(own.dense(12), papers.dense(12), atol=1e-12)
    flows = np.array([0, *FREQUENCIES[:5]])[:, None] * own.dense(6)
    np.testing.assert_allclose(flows[1, [0, 3]], [60.531974, 35.468026], atol=5e-6)
    np.testing.assert_allclose(flows[3, [0, 3]], [4.6240348, 12.0], atol=5e-6)


def test_expected_frequencies_are_kept_at_every_count_and_residue():
    counts = np.asarray(census().y)
    matrix = without_small_cells(counts)
    t = np.bincount(counts[counts < SINGLE], minlength=SINGLE)
    after = t @ matrix.dense(SINGLE)
    np.testing.assert_allclose(after[4:], t[4:], atol=1e-9)
    np.testing.assert_allclose(after[[1, 2]], 0)
    assert after[0] + after[3] == pytest.approx(t[:4].sum())
    assert 3 * after[3] == pytest.approx(t[:4] @ np.arange(4))
    residues = np.bincount((counts[counts >= SINGLE] - SINGLE) % RESIDUES, minlength=RESIDUES)
    R = matrix.dense(SINGLE + RESIDUES)[SINGLE:, SINGLE:]
    np.testing.assert_allclose(residues @ R, residues, atol=1e-9)
    # The test can fail: a matrix that is not invariant moves frequencies by whole cells.
    other = without_small_cells(np.append(counts, np.full(500, 7)))
    assert np.abs(t @ other.dense(SINGLE) - t)[4:].max() > 1


def test_a_census_table_is_protected_and_frequencies_stay():
    table = census()
    for realised in (False, True):
        method = dc.Pram(invariant=True, small_cells=False, alpha=0.4, realised=realised)
        release = table.simulate(method, seed=3)
        z, move = np.asarray(table.z), np.asarray(release.z) - table.z
        assert not np.isin(release.z, [1, 2]).any()
        assert not release.z[z == 0].any()
        assert np.abs(move).max() <= 3
        assert (move[z >= 1_000] != 0).any()
        assert 0.15 < (move[(z >= 4) & (z < SINGLE)] != 0).mean() < 0.25
        before, after = (np.bincount(v[v < SINGLE], minlength=SINGLE)[4:] for v in (z, release.z))
        # Independent draws are off by the root of the cells; realised ones by less than one.
        assert np.abs(after - before).max() <= (0 if realised else 40)
        found = dc.audit(release, table)
        assert (found.low <= z).all()
        assert (found.high >= z).all()


def test_what_it_says_and_what_it_refuses():
    release = census().simulate(METHOD, seed=1)
    assert release.statement.says("never-published")
    assert "from 4 to 99" in release.statement.text
    with pytest.raises(ParameterError, match="invariant=True"):
        dc.Pram(small_cells=False)
    with pytest.raises(ParameterError, match="margins"):
        dc.Pram(invariant=True, small_cells=False, margins="summed")
    with pytest.raises(InfeasibleError, match="threes"):
        without_small_cells([1, 1, 2, 4, 5])
    with pytest.raises(DataError, match="at least 0"):
        without_small_cells([-1, 3])
