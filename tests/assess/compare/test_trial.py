import numpy as np
import pytest

import discreet as dc
from discreet.assess.compare.trial import Sampler, random_zero_keys
from discreet.design.base import Design
from discreet.errors import ConfidentialError, ParameterError
from tests.assess import party
from tests.assess.compare.methods import Secretive, Shift

PTABLE = dc.perturbation_table(D=5, V=3, js=2)
METHODS = {
    "keys": dc.CellKey(PTABLE),
    "seed": dc.Pram(),
    "system, whole": dc.DiscreteLaplace(epsilon=1.0),
    "system, real": dc.Laplace(epsilon=1.0),
    "keys that touch zeros": dc.DiscreteLaplace(epsilon=1.0, keyed=True),
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
def test_a_draw_cannot_be_released(method, tmp_path):
    trial = Sampler(party.table(), method, 1)(0)
    for leave in (
        lambda: trial.save(tmp_path / "x.parquet"),
        trial.to_arrow,
        trial.to_pandas,
        trial.to_polars,
        trial.inner_to_arrow,
    ):
        with pytest.raises(ConfidentialError, match="protect"):
            leave()
    assert list(tmp_path.iterdir()) == []
    assert str(int(trial.z.max())) not in repr(trial).replace("24 published", "")
    assert "confidential" in trial._repr_html_()


def test_a_fitted_draw_stays_a_draw():
    from tests.assess.compare.fitting import SlowChain

    fitted = Sampler(party.table(), METHODS["keys"], 1)(0).fit(SlowChain())
    with pytest.raises(ConfidentialError):
        fitted.save("x.parquet")


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
    real = np.array([method(table).z for _ in range(300)])
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
    assert np.array_equal(Sampler(table, method, 1)(0).precision, method(table).precision)


def test_a_method_of_the_system_must_be_able_to_simulate():
    with pytest.raises(ParameterError, match="simulate"):
        Sampler(party.table(), Secretive(), 1)(0)


def test_the_table_keeps_its_keys():
    table = party.table().rekeyed(np.random.default_rng(1))
    before = table.cell_keys.copy()
    Sampler(table, METHODS["keys"], 1)(0)
    assert np.array_equal(table.cell_keys, before)


def test_equal_cells_without_records_get_equal_keys():
    rule = random_zero_keys(np.random.default_rng(1), 2**32)
    keys = rule([{"a": "1", "b": "2"}, {"a": "2"}, {"b": "2", "a": "1"}])
    assert keys[0] == keys[2] != keys[1]


def test_a_table_on_confidential_support_is_drawn_on_the_public_one():
    frame = {"a": ["x", "y"], "b": ["u", "v"], "n": [4, 6]}
    table = dc.Table.from_counts(frame, count="n", margins="a*b", support="occurring")
    for method in (*METHODS.values(), Shift(1)):
        trial = Sampler(table, method, 1)(0)
        assert isinstance(trial.design, Design)
        assert trial.design.is_complete
        assert len(trial.z) == 9
