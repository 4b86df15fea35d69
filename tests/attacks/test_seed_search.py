"""Trying every likely seed: the noise of a release is no function of a number anybody can guess."""

import numpy as np
import pytest

import discreet as dc
from discreet.protect.draws import SeededSecret
from discreet.randomness import stream
from tests.attacks.victims import MODULUS, country, exact_share, inner_cells

SEEDS = 3_000
METHODS = [dc.DropAdd(0.05), dc.Pram()]


def name_of(method):
    return method.name


class Inversion:
    """What a published table was, if its noise was looked up by the keys of a candidate seed.

    For each published value and each count it may come from, the interval of keys that leads from
    the one to the other. All of this follows from the release and the method's parameters.
    """

    def __init__(self, method, release):
        law, z = method.law, release.z
        self.design, reach = release.design, law.max_move
        self.counts = np.maximum(z[None, :] - np.arange(-reach, reach + 1)[:, None], 0)
        ends = {c: np.append(0, np.cumsum(law.probabilities(c))) for c in np.unique(self.counts)}
        place = z[None, :] - self.counts - law.deviations[0]
        outside = (place < 0) | (place >= len(law.deviations))
        place = np.where(outside, 0, place)
        flat = zip(self.counts.ravel().tolist(), place.ravel().tolist(), strict=True)
        low, high = np.array([(ends[c][k], ends[c][k + 1]) for c, k in flat]).T
        shape = self.counts.shape
        self.low, self.high = low.reshape(shape), high.reshape(shape)
        self.high = np.where(outside, self.low, self.high)

    def __call__(self, u):
        """The counts that fit these fractions of the key range; zero where none does."""
        fits = (self.low <= u) & (u < self.high)
        return np.where(fits.any(axis=0), self.counts[fits.argmax(axis=0), range(len(u))], 0)

    def score(self, guess):
        """How many cells of the margins are the sums of what is guessed for the inner ones."""
        inner = guess[inner_cells(self.design)]
        return np.count_nonzero(self.design.aggregate(inner) == guess)


def keys_of_experiment(seed, method, release):
    """Keys as `simulate` makes them for a table without empty cells."""
    inner = stream(seed, "simulate:keys").integers(MODULUS, size=release.design.n_inner)
    return SeededSecret(seed).mix_keys(release.design.aggregate(inner) % MODULUS, method.purpose)


def keys_of_stream(seed, method, release):
    """Keys as a bare stream of the seed and the method's name gives them."""
    return stream(seed, method.name).integers(MODULUS, size=len(release.z))


def attacked(method, release, keys_of, seeds):
    """The counts under the seed whose inverted noise adds up best."""
    invert = Inversion(method, release)
    guesses = (invert(keys_of(seed, method, release) / MODULUS) for seed in seeds)
    return max(guesses, key=invert.score)


@pytest.mark.parametrize("method", METHODS, ids=name_of)
def test_an_experiment_is_read_by_whoever_tries_its_seeds(method):
    table = country(smallest=3)
    trial = table.simulate(method, seed=1_234)
    guess = attacked(method, trial, keys_of_experiment, range(1_000, 1_500))
    assert exact_share(guess, table.z) > 0.95
    assert exact_share(trial.z, table.z) < 0.8


@pytest.mark.parametrize("keys_of", [keys_of_experiment, keys_of_stream])
@pytest.mark.parametrize("method", METHODS, ids=name_of)
def test_no_seed_reads_a_release(method, keys_of):
    table = country(smallest=3)
    release = table.protect(method)
    guess = attacked(method, release, keys_of, range(SEEDS))
    baseline = exact_share(release.z, table.z)
    chance = 4 * np.sqrt(baseline * (1 - baseline) / len(table.z))
    assert exact_share(guess, table.z) < baseline + chance < 0.9
