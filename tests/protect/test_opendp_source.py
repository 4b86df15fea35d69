import math

import numpy as np
import pytest

from discreet.accounting import rho_to_epsilon
from discreet.progress import listening
from discreet.protect import draws as opendp_source
from discreet.protect.draws import gaussian_noise, gaussian_scale_for
from discreet.testing import chi_square, chi_square_p


def gaussian_law(scale, reach):
    weights = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * scale**2))
    return weights / weights.sum()


@pytest.mark.parametrize("scale", [0.7, 4.0])
def test_draws_follow_the_discrete_gaussian_law_and_no_other(scale):
    drawn = gaussian_noise(40_000, scale)
    assert drawn.dtype == np.int64
    for tilt, accepted in ((1.0, True), (0.95, False), (1.05, False)):
        law = gaussian_law(scale * tilt, 60)
        p = chi_square_p(*chi_square(drawn, np.arange(-60, 61), law))
        assert (p > 1e-6) == accepted


def test_noise_is_drawn_in_parts_and_tells_of_its_progress(monkeypatch):
    monkeypatch.setattr(opendp_source, "_CHUNK", 100)
    seen = []
    with listening(lambda task, fraction: seen.append(fraction)):
        drawn = gaussian_noise(250, 50.0)
    assert seen == [0.0, pytest.approx(0.4), pytest.approx(0.8), 1.0]
    assert len(drawn) == 250
    assert np.abs(drawn[-50:]).max() > 0
    assert len(gaussian_noise(0, 1.0)) == 0


@pytest.mark.parametrize("rho", [1e-4, 0.1, 0.5, 1 / 3, 7.0])
@pytest.mark.parametrize("square", [1, 2, 3, 8, 12, 10**9 + 7])
def test_the_scale_is_the_smallest_that_open_dp_proves(rho, square):
    scale = gaussian_scale_for(rho, square)
    assert scale == pytest.approx(math.sqrt(square / (2 * rho)), rel=1e-14)
    distance = opendp_source._root_rounded_up(square)
    assert distance**2 >= square * (1 - 1e-15)
    assert opendp_source._gaussian(scale).map(distance) <= rho
    assert opendp_source._gaussian(math.nextafter(scale, 0)).map(distance) > rho


@pytest.mark.parametrize("rho", [0.05, 0.5, 2.0])
def test_the_epsilon_that_rho_implies_holds_for_the_noise(rho):
    scale, delta, reach = gaussian_scale_for(rho, 1), 1e-6, 400
    epsilon = rho_to_epsilon(rho, delta)
    law = gaussian_law(scale, reach)
    here, there = law[1:], law[:-1]  # a count, and the same count with one record more
    assert np.maximum(here - math.exp(epsilon) * there, 0).sum() <= delta
    assert np.maximum(here - math.exp(epsilon / 2) * there, 0).sum() > delta
