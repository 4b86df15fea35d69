"""Games against private methods: no stated ε is refuted, and wrong ones are."""

import numpy as np
import pytest

import discreet as dc
from discreet.attacks import Claims, play
from discreet.attacks.privacy_game import least_epsilon
from discreet.protect import LaplaceShare

METHODS = {
    "laplace": dc.Laplace(1.0),
    "discrete-laplace": dc.DiscreteLaplace(1.0),
    "capped": dc.DiscreteLaplace(1.0, cap=20, accept_delta=1.0),
    "discrete-gaussian": dc.DiscreteGaussian(epsilon=1.0, delta=1e-3),
}


class HalfSensitive(LaplaceShare):
    """A share that believes a record to change half of what it changes."""

    @property
    def sensitivity(self):
        return max(1, super().sensitivity // 2)


class TooSure(dc.DiscreteLaplace):
    share_kind = HalfSensitive


class TooSureGaussian(dc.DiscreteGaussian):
    def draw(self, share, draws):
        return draws.gaussian(len(share.cells), share.scale / 4)


@pytest.mark.parametrize("change", ["add-remove", "replace"])
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_no_game_refutes_what_a_method_states(method, change):
    found = play(method, change, games=8_000, seed=1, totals=change == "add-remove")
    assert not found.is_refuted
    assert found.finding.success > 0.5  # the intruder does learn something
    if method.name != "discrete-gaussian":
        assert found.at_least > 0.5 * found.epsilon  # and the bound is no empty one


@pytest.mark.parametrize(
    "method", [TooSure(1.0), TooSureGaussian(epsilon=1.0, delta=1e-3)], ids=["laplace", "gaussian"]
)
def test_a_planted_sensitivity_is_refuted(method):
    found = play(method, games=8_000, seed=1)
    assert found.is_refuted


def test_a_replacement_of_a_known_total_is_played_within_it():
    found = play(dc.DiscreteLaplace(0.5, known="game"), "replace", games=8_000, seed=2)
    assert found.epsilon == 1.0
    assert 0.5 < found.at_least <= 1.0


def test_the_bound_of_perfect_and_of_random_claims():
    coin = np.arange(4_000) % 2 == 0
    sure = Claims.ranked(range(4_000), coin.tolist(), np.ones(4_000))
    assert least_epsilon(sure, coin, 0.0) > 4
    rng = np.random.default_rng(1)
    guess = Claims.ranked(range(4_000), (rng.random(4_000) < 0.5).tolist(), rng.random(4_000))
    assert least_epsilon(guess, coin, 0.0) < 0.2
