"""Synthetic records: repeated releases, knowing the noise, records that are their own fit."""

import inspect
import re

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet import Synthetic
from discreet.errors import PUBLIC_TEXT
from discreet.synthesis import (
    SyntheticTrial,
    ipso,
    residual_correlation,
    result,
    romm,
    score_correlation,
)
from discreet.synthesis.result import Synthesized
from tests.attacks.victims import SECRET
from tests.synthesize.people import lonely, people

VICTIMS = people(60)
MODEL = "income + tax ~ age + region"
NEAR = {
    "residual-correlation": {"correlations": [0.4, 0.2]},
    "score-correlation": {"correlations": 0.4},
    "romm": {"lambda_": 0.1},
}


def Y_of(frame):
    return frame[["income", "tax"]].to_numpy(float)


@pytest.mark.parametrize("method", NEAR)
def test_repeated_releases_under_a_secret_are_identical(method):
    one, two = (
        Y_of(dc.synthesize(VICTIMS, MODEL, method, secret=SECRET, **NEAR[method]).frame)
        for _ in range(2)
    )
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("method", ["ipso", *NEAR])
def test_without_a_secret_the_statement_says_what_several_releases_do(method):
    drawn, kept = (
        dc.synthesize(VICTIMS, MODEL, method, secret=secret, **NEAR.get(method, {}))
        for secret in (None, SECRET)
    )
    assert "undo each other" in drawn.statement.text
    assert "undo each other" not in kept.statement.text
    assert drawn.statement.says("fresh-draws")
    assert kept.statement.says("repeatable")


def test_whoever_knows_the_noise_of_romm_solves_for_the_original():
    """With k = 1: T* is T + λh scaled, and T has length one."""
    rng = np.random.default_rng(1)
    X = np.column_stack([np.ones(40), rng.standard_normal(40)])
    Y = rng.standard_normal((40, 1))
    released = romm(Y, X, 0.5, rng=np.random.default_rng(7)).Y
    Q = np.linalg.qr(X)[0]
    off = lambda A: A - Q @ (Q.T @ A)  # noqa: E731
    residual = off(released)
    size = np.linalg.norm(residual)
    t, h = residual / size, 0.5 * off(np.random.default_rng(7).standard_normal((40, 1)))
    along = (t.T @ h).item()
    root = along + np.sqrt(along**2 - (h.T @ h).item() + 1)
    guess = (released - residual) + size * (root * t - h)
    np.testing.assert_allclose(guess, Y, atol=1e-10)


def test_a_seed_does_not_publish():
    with pytest.raises(dc.DiscreetError, match="simulate=True"):
        dc.synthesize(VICTIMS, MODEL, seed=1)
    with pytest.raises(dc.DiscreetError, match="needs a seed"):
        dc.synthesize(VICTIMS, MODEL, simulate=True)


@pytest.fixture(scope="module")
def trial():
    return dc.synthesize(VICTIMS, MODEL, simulate=True, seed=1)


def test_a_trial_has_no_way_out(trial, tmp_path):
    def methods(kind):
        return {name for name, _ in inspect.getmembers(kind, callable) if name[0] != "_"}

    assert isinstance(trial, SyntheticTrial)
    assert not isinstance(trial, Synthetic)
    assert methods(SyntheticTrial) == methods(Synthesized)
    assert methods(Synthetic) - methods(Synthesized) >= {"save", "to_arrow", "to_pandas"}
    assert not hasattr(trial, "_repr_html_")
    with pytest.raises(dc.DiscreetError, match="cannot be written"):
        result.save(trial, tmp_path / "trial.parquet")
    assert not list(tmp_path.iterdir())


def test_a_trial_shows_no_value(trial):
    assert repr(trial) == "SyntheticTrial (confidential): income, tax by ipso"


def test_an_experiment_touches_neither_ledger_nor_secret(tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger.db")
    options = {"simulate": True, "seed": 1, "name": "people", "ledger": ledger}
    one = dc.synthesize(VICTIMS, MODEL, secret=SECRET, **options)
    two = dc.synthesize(VICTIMS, MODEL, **options)
    np.testing.assert_array_equal(Y_of(one.frame), Y_of(two.frame))
    assert ledger.rows() == []


def dummies(frame):
    return pd.get_dummies(frame["region"]).to_numpy(float)


def test_one_of_two_in_a_cell_knows_the_other():
    """Planted: a cell of two gives its exact sum away; it is refused."""
    frame = lonely(size=2)
    Y = Y_of(frame)
    made = ipso(Y, dummies(frame), rng=np.random.default_rng(1)).Y
    np.testing.assert_allclose(made[:2].sum(axis=0) - Y[0], Y[1], rtol=1e-9)
    with pytest.raises(dc.DiscreetError, match="one of them could work out"):
        dc.synthesize(frame, "income + tax ~ region")


@pytest.mark.parametrize("run", [residual_correlation, score_correlation])
def test_two_candidates_for_the_original_are_refused(run):
    """Planted: with two residual degrees of freedom in all, d leaves two candidates for T."""
    rng = np.random.default_rng(3)
    Y, d = rng.standard_normal((3, 1)), 0.6
    method = run.__name__.replace("_", "-")
    made = run(Y, np.ones((3, 1)), d, rng=rng).Y
    residual = made - made.mean()
    size = np.linalg.norm(residual)
    across = np.cross(np.ones(3), residual.ravel())[:, None]
    across *= size / np.linalg.norm(across)
    candidates = [made.mean() + d * residual + s * np.sqrt(1 - d**2) * across for s in (-1, 1)]
    assert any(np.allclose(candidate, Y) for candidate in candidates)
    with pytest.raises(dc.DiscreetError, match="few candidates would be left"):
        dc.synthesize(pd.DataFrame({"y": Y.ravel()}), "y ~ 1", method, correlations=d)
    more = pd.DataFrame({"y": np.arange(1.0, 10.0)})
    dc.synthesize(more, "y ~ 1", method, correlations=d)


FAILING = {
    "a lone record": lambda f: dc.synthesize(lonely(), "income ~ region"),
    "a small cluster": lambda f: dc.synthesize(lonely(), "income ~ 1", "hybrid", clusters="region"),
    "missing": lambda f: dc.synthesize(f.assign(age=None), "income ~ age"),
    "text": lambda f: dc.synthesize(f, "region ~ age"),
    "no number": lambda f: dc.synthesize(f, "income ~ number(region)"),
    "no logarithm": lambda f: dc.synthesize(f.assign(age=-f["age"]), "income ~ log(age)"),
    "weights": lambda f: dc.synthesize(f.assign(w=-f["w"]), "income ~ weights(w)"),
    "no residual": lambda f: dc.synthesize(f.assign(tax=f["age"] * 2.0), "income + tax ~ age"),
    "no change": lambda f: dc.synthesize(f, "income ~ age", "romm", lambda_=0.0),
    "unknown": lambda f: dc.synthesize(f, "income ~ agge"),
}


@pytest.mark.parametrize("kind", FAILING)
def test_errors_quote_no_value_and_no_code(kind):
    with pytest.raises(dc.DiscreetError) as error:
        FAILING[kind](VICTIMS)
    said = str(error.value)
    codes = {*VICTIMS["region"], "island"}
    assert not codes & set(re.findall(r"\w+", said))
    numbers = {float(n) for n in re.findall(r"\d+\.?\d*", said)} - {1.0, 2.0}
    assert not numbers & set(VICTIMS[["income", "tax", "age", "w"]].to_numpy().ravel())
    assert error.value.public() == PUBLIC_TEXT
    assert error.value.__cause__ is None
