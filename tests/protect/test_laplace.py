import numpy as np
import pytest
from scipy import stats

import discreet as dc
from discreet import registry
from discreet.errors import DiscreetError, ParameterError
from discreet.protect.private_methods import GRID
from discreet.testing import check_method
from tests.protect.tables import declared, square


@pytest.mark.parametrize(
    "method", [dc.Laplace(5.0), dc.Laplace(5.0, known=["1"])], ids=["all", "known total"]
)
def test_the_battery_finds_nothing_to_complain_of(method):
    check_method(method, draws=20_000)


@pytest.mark.parametrize(("tilt", "accepted"), [(1.0, True), (0.85, False), (1.15, False)])
@pytest.mark.parametrize("source", ["system", "simulated"])
def test_noise_follows_the_laplace_law_and_no_other(source, tilt, accepted):
    table, method = square(np.full((100, 200), 7)), dc.Laplace(0.5)
    z = table.protect(method).z if source == "system" else table.simulate(method, seed=5).z
    p = stats.kstest(z - 7, stats.laplace(scale=2.0 * tilt).cdf).pvalue
    assert (p > 1e-6) == accepted


def test_values_lie_on_the_grid():
    z = declared().protect(dc.Laplace(0.7)).z
    assert z.dtype == np.float64
    assert (z * GRID == np.rint(z * GRID)).all()
    assert len(np.unique(z - np.floor(z))) > 20


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_scale_is_margins_over_epsilon(k):
    """Langsrud (2019b): k margins that everybody counts in once get scale k/ε."""
    margins = dc.margins(["party", "age", "sex"], 2, lower=False)[:k]
    release = declared(margins).protect(dc.Laplace(0.25))
    assert release.statement.privacy.sensitivity == k
    assert f"by at most {k} in all" in release.statement.text
    np.testing.assert_allclose(release.precision, 1 / (2 * (k / 0.25) ** 2))


def test_known_margins_are_exact_and_weigh_heavily():
    release = declared().protect(dc.Laplace(0.5, known=["1"]))
    total = release.design.position({})
    assert release.z[total] == 56
    assert release.precision[total] == np.inf
    assert len(np.unique(release.precision)) == 2
    assert release.fit_weights()[total] == release.fit_weights().max() > 1e5


def test_a_split_gives_precision_by_margin():
    release = declared("sex").protect(dc.Laplace(1.0, split={"sex": 0.8, "1": 0.2}))
    np.testing.assert_allclose(release.precision, [0.8**2 / 2, 0.8**2 / 2, 0.2**2 / 2])


def test_the_variance_is_that_of_the_scale():
    table = square(np.full((100, 300), 3))
    trial = table.simulate(dc.Laplace(2.0), seed=1)
    np.testing.assert_allclose((trial.z - 3).var(), 0.5, rtol=0.05)
    np.testing.assert_allclose(trial.precision, 2.0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": 1, "weighting": "mean"}, "weighting"),
        ({"epsilon": 1, "sensitivity": 3}, "sensitivity"),
        ({"epsilon": 1, "margins": "summed"}, "margins"),
        ({"epsilon": 1, "split": {"1": 0.5}}, "sum to one"),
    ],
)
def test_wrong_options_are_refused(given, words):
    with pytest.raises(DiscreetError, match=words):
        registry.build("method", "laplace", given)


def test_a_seed_is_refused():
    with pytest.raises(ParameterError, match="seed"):
        declared().protect(dc.Laplace(1.0), seed=3)
