import numpy as np
import pytest

import discreet as dc
from discreet import Design, Release, Trial
from discreet.assessment.compare.job import Sampler
from discreet.errors import ConfidentialError, ParameterError
from discreet.protect.draws import SecretDraws
from tests.assess import party
from tests.assess.compare.methods import Noisy, Shift, Sourceless

PTABLE = dc.perturbation_table(D=5, V=3, js=2)
METHODS = {
    "keys": dc.CellKey(PTABLE),
    "keys, another law": dc.Pram(),
    "table": dc.Pram(invariant=True),
    "system, whole": dc.DiscreteLaplace(epsilon=1.0),
    "system, real": dc.Laplace(epsilon=1.0),
    "system, Gaussian": dc.DiscreteGaussian(rho=0.1),
    "system, own": Noisy(),
    "keys that touch zeros": dc.CellKey(dc.noise.discrete_laplace(1, 5)),
}


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_draw_is_a_function_of_seed_and_number(method):
    draw = Sampler(party.table(), method, 1)
    again = Sampler(party.table(), method, 1)
    other = Sampler(party.table(), method, 2)
    assert np.array_equal(draw(3).z, again(3).z)
    assert not np.array_equal(draw(3).z, draw(4).z)
    assert not np.array_equal(draw(3).z, other(3).z)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_draw_cannot_be_released(method):
    trial = Sampler(party.table(), method, 1)(0)
    assert isinstance(trial, Trial)
    check_no_way_out(trial)
    with pytest.raises(ConfidentialError, match="protect"):
        Release.wrap(trial)
    assert repr(trial).startswith("Trial (confidential)")


def check_no_way_out(trial):
    """What a release has and a protected table has not is for handing out; both show themselves."""
    own = [kind for kind in Release.__mro__ if kind not in Trial.__mro__]
    leave = {name for kind in own for name in vars(kind)} - {"wrap", "__dataclass_params__"}
    named = {name for name in leave if not name.startswith("__")} - {
        "makes_whole",
        "_display",
    }  # both do
    assert named >= {"save", "to_arrow", "to_pandas", "to_polars", "inner_to_arrow", "tabulate"}
    assert not [name for name in named if hasattr(trial, name)]


def test_a_fitted_draw_stays_a_draw():
    from tests.assess.compare.fitting import SlowChain

    fitted = Sampler(party.table(), METHODS["keys"], 1)(0).fit(SlowChain())
    assert isinstance(fitted, Trial)
    check_no_way_out(fitted)
    check_no_way_out(fitted.round(seed=1))


def test_draws_have_the_law_of_releases():
    """With new keys, draws of unbiased noise have the truth as mean and the law's variance."""
    table = party.table()
    draw = Sampler(table, dc.CellKey(PTABLE), 1)
    z = np.array([draw(i).z for i in range(600)])
    assert np.abs(z.mean(axis=0) - table.z).max() < 5 * np.sqrt(3 / 600)
    assert np.allclose(z.var(axis=0)[table.z > 0], 3, atol=0.9)


def test_simulated_draws_have_the_law_of_the_system():
    table = party.table()
    method = dc.DiscreteLaplace(epsilon=2.0, nonnegative=False)
    simulated = np.array([Sampler(table, method, 1)(i).z for i in range(300)])
    real = np.array([method(table, draws=SecretDraws()).z for _ in range(300)])
    spread = np.sqrt(2) * 3
    assert abs(simulated.mean() - real.mean()) < 5 * spread / np.sqrt(600)
    assert abs(simulated.std() / real.std() - 1) < 0.1


def test_all_methods_by_key_see_the_same_keys():
    table = party.table()
    one = Sampler(table, dc.CellKey(PTABLE), 1)(5)
    two = Sampler(table, dc.CellKey(PTABLE, margins="own", threshold=None), 1)(5)
    assert np.array_equal(one.z, two.z)


def test_precision_of_simulated_draws_is_that_of_the_release():
    method = dc.Laplace(epsilon=1.0, split={"party:age": 0.4, "party:sex": 0.4, "party": 0.05,
                                            "age": 0.05, "sex": 0.05, "1": 0.05})  # fmt: skip
    table = party.table()
    real = method(table, draws=SecretDraws())
    assert np.array_equal(Sampler(table, method, 1)(0).precision, real.precision)


def test_a_method_must_say_where_its_noise_comes_from():
    with pytest.raises(ParameterError, match="'keys', 'table' or 'system'"):
        Sampler(party.table(), Sourceless(), 1)(0)


def test_the_table_keeps_its_keys():
    table = party.table().rekeyed(np.random.default_rng(1))
    before = table.cell_keys.copy()
    trial = Sampler(table, METHODS["keys"], 1)(0)
    assert np.array_equal(table.cell_keys, before)
    assert np.array_equal(trial.z, Sampler(party.table(), METHODS["keys"], 1)(0).z)


def test_the_custodians_secret_is_not_used():
    table = party.table()
    for method in (METHODS["keys"], METHODS["table"]):
        known, unknown = (
            Sampler(t, method, 1)(0) for t in (table.with_secret(dc.Secret.demo()), table)
        )
        assert np.array_equal(known.z, unknown.z)


def test_the_same_empty_cell_is_drawn_alike_in_every_table():
    """Cells without records take their noise from their definition."""
    frame = {"a": ["x", "y"], "b": ["u", "v"], "n": [4, 6]}
    one, two = (dc.Table.from_counts(frame, count="n", margins=m) for m in ("a*b", "b:a"))
    cell = {"a": "x", "b": "v"}
    moved = set()
    for i in range(20):
        shown = [
            int(t.z[t.design.position(cell)])
            for t in (Sampler(t, METHODS["keys that touch zeros"], 1)(i) for t in (one, two))
        ]
        assert shown[0] == shown[1]
        moved.add(shown[0])
    assert len(moved) > 1


def test_a_table_without_keys_is_drawn_by_keys():
    assert party.table().published.key is None
    assert (Sampler(party.table(), METHODS["keys"], 1)(0).z != party.table().z).any()


def test_a_table_on_confidential_support_is_drawn_on_the_public_one():
    frame = {"a": ["x", "y"], "b": ["u", "v"], "n": [4, 6]}
    table = dc.Table.from_counts(
        frame, count="n", margins="a*b", support="occurring", declared=True
    )
    for method in (*METHODS.values(), Shift(1)):
        trial = Sampler(table, method, 1)(0)
        assert isinstance(trial.design, Design)
        assert trial.design.is_complete
        assert len(trial.z) == 9
