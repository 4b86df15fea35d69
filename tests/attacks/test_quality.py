"""Quality classes, to somebody who knows all other cells: what they add is what the statement says.

The intruder knows the matrix, the classes and the probability that a class is kept; the published
value and the class of the target; and nothing else that would tell one count from the next.
"""

from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from tests.attacks.victims import MOVES_ZEROS, PTABLE, country, flat_axes, keyed_table

METHOD = dc.CellKey(PTABLE)
LAW = PTABLE.probabilities(1_000)


def likelihood(quality, shown):
    """How likely a class is shown for each deviation."""
    own = np.searchsorted(quality.edges, np.abs(PTABLE.deviations))
    floor = (1 - quality.keep) / quality.n_classes
    return np.where(own == shown, quality.keep + floor, floor)


def posterior(quality, shown):
    """How likely each deviation is after a class was seen; large counts, flat prior."""
    seen = LAW * likelihood(quality, shown)
    return seen / seen.sum()


def large_table(seed=1):
    return country(seed=seed, smallest=60, mean=40.0, region=40, age=12, sex=2)


@pytest.mark.parametrize(
    "quality", [dc.protect.Quality(METHOD), dc.protect.Quality(METHOD, edges=(1,), keep=0.3)]
)
def test_a_class_adds_no_more_than_its_stated_odds(quality):
    table = large_table()
    release = table.protect(quality)
    found = dc.attack(table, release, ["quality-classes"])["quality-classes"]
    classes = range(quality.n_classes)
    expected = sum((LAW * likelihood(quality, c)).max() for c in classes)
    assert found.success == pytest.approx(expected, abs=0.05)
    assert found.success < found.guess + 0.1
    before = LAW / (1 - LAW)
    for c in classes:
        after = posterior(quality, c)
        change = (after / (1 - after))[LAW > 0] / before[LAW > 0]
        assert change.max() <= quality.odds * (1 + 1e-9)
        pairs = (after / LAW)[LAW > 0]
        assert pairs.max() / pairs.min() == pytest.approx(quality.odds)
    assert f"at most {quality.odds:.4g} times as often" in release.statement.text


def test_exact_classes_in_steps_of_one_would_say_much_more():
    """The control: the size of the deviation itself leaves a guess between two signs."""
    table = large_table()
    noise = table.protect(METHOD).z - table.z
    best = {size: max((size, -size), key=lambda u: LAW[u + 5]) for size in range(6)}
    found = np.array([best[size] for size in np.abs(noise).tolist()])
    assert np.mean(noise == 0) < 0.3
    assert np.mean(noise == found) > 0.5


def test_the_classes_of_other_cells_say_nothing_of_this_one():
    """Frequencies hold in expectation only, so knowing all other cells leaves nothing to count."""
    axes, quality = flat_axes(a=30, b=12), dc.protect.Quality(METHOD)
    counts = 60 + np.arange(360) % 50
    base = keyed_table(counts, axes, [("a", "b")]).protect(quality)
    changed = counts.copy()
    changed[1:] += 7
    others = keyed_table(changed, axes, [("a", "b")]).protect(quality)
    assert base.quality[0] == others.quality[0]
    assert base.z[0] == others.z[0]
    kept = [keyed_table(counts, axes, [("a", "b")], seed=k).protect(quality) for k in range(9)]
    numbers = {tuple(np.bincount(r.quality, minlength=3).tolist()) for r in kept}
    assert len(numbers) > 5


class OneKeyForZeros:
    """The planted fault: the class of a cell follows from the sum of its record keys."""

    def __init__(self, quality):
        self.quality, self.name, self.source = quality, quality.name, quality.source

    def __call__(self, table, *, draws):
        made = self.quality(table, draws=draws)
        u = table.secret.mix_keys(table.cell_keys, self.quality.name) / 2**32
        own = np.searchsorted(self.quality.edges, np.abs(made.z - table.z))
        shown = self.quality._perturb(own, u)
        return replace(made, quality=np.where(made.z > 0, shown, -1))


def classes_of_zeros(method, seeds):
    """For each of some secrets, how mixed the classes of cells are that have no records."""
    found = []
    for seed in seeds:
        secret = dc.Secret(f"a custodian of their own, the {seed:03d}th".encode())
        counts = np.random.default_rng(1).poisson(1.0, 600)
        table = keyed_table(counts, flat_axes(a=30, b=20), [("a", "b")], secret=secret)
        release = table.protect(method)
        empty = (table.z == 0) & (release.z == 3)
        found.append(len(np.unique(release.quality[empty])))
    return np.array(found)


def test_cells_without_records_have_classes_of_their_own():
    quality = dc.protect.Quality(dc.CellKey(MOVES_ZEROS))
    assert (classes_of_zeros(quality, range(6)) == 3).all()
    assert (classes_of_zeros(OneKeyForZeros(quality), range(6)) == 1).all()
