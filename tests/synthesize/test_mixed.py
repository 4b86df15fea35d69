"""Codes and amounts synthetic together."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import discreet as dc
from discreet.errors import ConfidentialError, ParameterError, UnknownNameError
from discreet.synthesis import UnsafeRowsError
from discreet.synthesis.mixed import CELLS_KEPT, MODEL_KEPT, MixedEvidence, mixed, mixed_within
from tests.synthesize.people import SECRET, lonely, people

PEOPLE = people(400)
NAMED = {"secret": SECRET, "name": "people", "edition": "1"}
PTABLE = dc.perturbation_table(D=5, V=3, js=2)
ROUNDED = dc.ControlledRounding(base=5)


def regression(Y, X):
    B = np.linalg.lstsq(X, Y, rcond=None)[0]
    E = Y - X @ B
    return X @ B, E.T @ E / (len(X) - np.linalg.matrix_rank(X))


def matrices(frame):
    regions = sorted(PEOPLE["region"].unique())
    marks = [frame["region"] == r for r in regions] + [frame["sex"] == "f"]
    return frame[["income", "tax"]].to_numpy(float), np.column_stack(marks).astype(float)


@pytest.mark.parametrize("n_new", [30, 90, 300])
def test_coefficients_and_covariances_are_those_of_the_original(n_new):
    rng = np.random.default_rng(1)
    X = np.column_stack([np.ones(90), rng.integers(0, 2, (90, 2))]).astype(float)
    Y = rng.lognormal(size=(90, 3)) * [1e6, 1, 1e-3]
    X_new = X[rng.integers(0, 90, n_new)]
    made = mixed(Y, X, X_new, rng=rng).Y
    B = np.linalg.lstsq(X, Y, rcond=None)[0]
    size = np.abs(Y).max(axis=0)
    np.testing.assert_allclose(
        np.linalg.lstsq(X_new, made, rcond=None)[0] / size, B / size, atol=1e-10
    )
    np.testing.assert_allclose(
        regression(made, X_new)[1] / np.outer(size, size),
        regression(Y, X)[1] / np.outer(size, size),
        atol=1e-10,
    )


def test_values_that_no_record_tells_of_are_refused():
    X = np.array([[1.0, 0, 0]] * 5 + [[1, 1, 0]] * 5)
    Y = np.random.default_rng(1).normal(size=(10, 1))
    with pytest.raises(ConfidentialError, match="interactions"):
        mixed(Y, X, np.array([[1.0, 1, 1]] * 4), rng=np.random.default_rng(1))
    with pytest.raises(ConfidentialError):
        mixed_within(Y, np.arange(10) // 5, np.array([0, 7]), rng=np.random.default_rng(1))


def test_within_cells_means_and_covariances_are_kept():
    rng = np.random.default_rng(2)
    cells, new = np.repeat([0, 1, 2], 20), np.repeat([0, 1, 2], [30, 12, 2])
    Y = rng.normal(size=(60, 3)) * (1 + cells[:, None])
    made = mixed_within(Y, cells, new, rng=rng).Y
    for cell in (0, 1):
        a, b = Y[cells == cell], made[new == cell]
        np.testing.assert_allclose(b.mean(axis=0), a.mean(axis=0), atol=1e-12)
        np.testing.assert_allclose(np.cov(b.T), np.cov(a.T), atol=1e-12)


def test_draws_in_small_cells_have_the_moments_of_the_cell():
    rng = np.random.default_rng(3)
    Y = rng.normal(size=(20, 3)) @ rng.normal(size=(3, 3)) + 5
    cell = np.zeros(20, dtype=np.int64)
    drawn = [mixed_within(Y, cell, cell[:2], rng=rng).Y for _ in range(6_000)]
    both = np.concatenate(drawn)
    np.testing.assert_allclose(both.mean(axis=0), Y.mean(axis=0), atol=0.15)
    np.testing.assert_allclose(np.cov(both.T), np.cov(Y.T), rtol=0.12, atol=0.12)


def test_new_records_have_protected_counts_and_the_original_regression():
    made = dc.synthesize(PEOPLE, "income + tax ~ region + sex", "mixed", counts=ROUNDED, **NAMED)
    frame = made.to_pandas()
    assert list(frame.columns) == ["income", "tax", "region", "sex"]
    opened = dc.open(PEOPLE[["region", "sex"]], secret=SECRET, name="people", edition="1")
    released = opened.tabulate("region*sex").protect(ROUNDED).fit().round("total", seed=1)
    counts = released.to_microdata().to_pandas()
    assert frame.groupby(["region", "sex"]).size().to_dict() == {
        key: size for key, size in counts.groupby(["region", "sex"]).size().items() if size
    }
    assert (frame.groupby(["region", "sex"]).size() % 5 == 0).all()
    (Y, X), (new, X_new) = matrices(PEOPLE), matrices(frame)
    before = np.linalg.lstsq(X, Y, rcond=None)[0]
    np.testing.assert_allclose(np.linalg.lstsq(X_new, new, rcond=None)[0], before, rtol=1e-9)
    np.testing.assert_allclose(regression(new, X_new)[1], regression(Y, X)[1], rtol=1e-9)


def test_the_same_request_has_the_same_records_and_another_edition_others():
    ask = ("income ~ region", "mixed")
    a = dc.synthesize(PEOPLE, *ask, counts=ROUNDED, **NAMED).to_arrow()
    shuffled = PEOPLE.sample(frac=1, random_state=1)
    assert dc.synthesize(shuffled, *ask, counts=ROUNDED, **NAMED).to_arrow().equals(a)
    other = dc.synthesize(PEOPLE, *ask, counts=ROUNDED, **{**NAMED, "edition": "2"}).to_arrow()
    assert not other.equals(a)


@pytest.mark.parametrize("counts", ["safe", dc.CellKey(PTABLE), "drop-add", "controlled-rounding"])
def test_any_method_protects_the_counts(counts):
    made = dc.synthesize(
        PEOPLE, "income ~ region + sex", "mixed", counts=counts, simulate=True, seed=1
    )
    assert isinstance(made, dc.synthesis.SyntheticTrial)
    assert abs(len(made.frame) - len(PEOPLE)) < 60


def test_cells_of_their_own_keep_their_means():
    made = dc.synthesize(
        PEOPLE, "income ~ region*sex", "mixed", counts=ROUNDED, within="cells", **NAMED
    )
    keys = ["region", "sex"]
    before, after = (f.groupby(keys)["income"].mean() for f in (PEOPLE, made.to_pandas()))
    np.testing.assert_allclose(after, before, rtol=1e-10)


def test_small_cells_are_refused_or_merged():
    frame = lonely(60, size=2)
    ask = ("income ~ region", "mixed")
    for within in ("model", "cells"):
        with pytest.raises(UnsafeRowsError) as refused:
            dc.synthesize(frame, *ask, counts=ROUNDED, within=within, **NAMED)
        assert frame["region"].iloc[refused.value.rows].tolist() == ["island", "island"]
    made = dc.synthesize(frame, *ask, counts=ROUNDED, merge="pool", within="cells", **NAMED)
    assert made.statement.says("mixed-merged")
    means = made.to_pandas().groupby("region")["income"].mean()
    assert not np.isclose(means.get("island", 0), frame.query("region == 'island'").income.mean())


def test_the_ledger_knows_one_release_and_refuses_another(tmp_path):
    ask = {**NAMED, "ledger": tmp_path / "ledger.db"}
    dc.synthesize(PEOPLE, "income ~ region", "mixed", counts="safe", **ask)
    dc.synthesize(PEOPLE, "income ~ region", "mixed", counts="safe", **ask)
    with pytest.raises(dc.DiscreetError, match="again"):
        dc.synthesize(PEOPLE, "income ~ sex", "mixed", counts="safe", **ask)
    dc.synthesize(PEOPLE, "income ~ sex", "mixed", counts="safe", again=True, **ask)


def declared(**options):
    """The records, with categories that are said to be public: private counts need that."""
    frame = PEOPLE.assign(region=pd.Categorical(PEOPLE["region"]))
    return dc.open(frame, declared=["region"], **options)


def test_guarantees_of_the_counts_are_not_those_of_the_amounts():
    private = dc.DiscreteLaplace(epsilon=2)
    made = dc.synthesize(declared(**NAMED), "income ~ region", "mixed", counts=private)
    assert made.statement.privacy is None
    assert "no differential privacy" in made.statement.text


def test_frames_come_back_in_their_library_and_missing_codes_are_a_category():
    frame = PEOPLE.copy()
    frame.loc[:20, "region"] = None
    made = dc.synthesize(
        pl.from_pandas(frame), "tax ~ region", "mixed", counts=ROUNDED, missing="category", **NAMED
    )
    assert isinstance(made.frame, pl.DataFrame)
    assert "(missing)" in made.frame["region"].to_list()


def test_requests_that_do_not_go_together_are_refused():
    def ask(formula="income ~ region", **options):
        return dc.synthesize(PEOPLE, formula, "mixed", **{"counts": ROUNDED, **options})

    with pytest.raises(ParameterError, match="holds numbers"):
        ask("income ~ age")
    with pytest.raises(ParameterError, match="clusters="):
        ask(clusters=5)
    with pytest.raises(ParameterError, match="within"):
        ask(within="cell")
    with pytest.raises(UnknownNameError, match="countss"):
        ask(countss=ROUNDED)
    with pytest.raises(ParameterError, match="counts="):
        dc.synthesize(PEOPLE, "income ~ region", "mixed")
    with pytest.raises(dc.DiscreetError, match="secret"):
        ask(counts=dc.Safe())


def test_the_statement_says_where_randomness_comes_from():
    private = {"counts": dc.DiscreteLaplace(epsilon=2)}
    fresh = dc.synthesize(declared(), "income ~ region", "mixed", **private)
    assert "operating system and not from a secret" in fresh.statement.text
    noisy = dc.synthesize(declared(**NAMED), "income ~ region", "mixed", **private)
    assert not noisy.statement.says("repeatable")
    kept = dc.synthesize(declared(**NAMED), "income ~ region", "mixed", counts=ROUNDED)
    assert kept.statement.says("repeatable")


@pytest.mark.parametrize(("sentence", "within"), [(MODEL_KEPT, False), (CELLS_KEPT, True)])
def test_a_true_sentence_holds_and_a_false_one_is_caught(sentence, within):
    rng = np.random.default_rng(1)
    cells, new = rng.integers(0, 3, 90), rng.integers(0, 3, 70)
    Y = rng.lognormal(size=(90, 2)) * [1e5, 1]
    X, X_new = np.eye(3)[cells], np.eye(3)[new]
    made = mixed_within(Y, cells, new, rng=rng).Y if within else mixed(Y, X, X_new, rng=rng).Y
    assert sentence.holds(MixedEvidence(Y, X, cells, made, X_new, new))
    for wrong in (made * 1.0001, made + rng.normal(size=made.shape) * made.std(axis=0) * 1e-3):
        assert not sentence.holds(MixedEvidence(Y, X, cells, wrong, X_new, new))
