"""Large units in synthetic records: fits, squares, insiders of clusters, and second releases."""

import inspect
import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

import discreet as dc
from discreet.attacks import Claims, Knowledge
from discreet.attacks.insiders import ClusterInsider, candidates, whole_numbers
from discreet.attacks.leverage import FittedValues, LongestColumn, Near, Regression
from discreet.errors import LedgerError, ParameterError
from discreet.synthesis import UnsafeRowsError, ipso, romm
from discreet.synthesis.large import LEVERAGE
from discreet.synthesis.result import Synthesized
from discreet.tables import Statement
from discreet.tables.statement import step_of
from tests.attacks.victims import SECRET
from tests.synthesize.people import people


def firms(top, seed=1, n=200):
    """Firms of which the first is `top` times as large as the others, and off their trend."""
    rng = np.random.default_rng(seed)
    size = np.exp(rng.normal(3, 0.6, n))
    size[0] = top * size[1:].mean()
    sales = 10 * size * np.exp(rng.normal(0, 0.5, n))
    sales[0] = 16 * size[0]
    return pd.DataFrame({"sales": sales, "size": size})


def matrices(frame):
    X = np.column_stack([np.ones(len(frame)), frame["size"]])
    return frame[["sales"]].to_numpy(), X


def leverage(X):
    Q = np.linalg.qr(X)[0]
    return (Q * Q).sum(axis=1)


def released(frame, Y, model="sales ~ size"):
    """A file that a method made without any check, as everybody sees it."""
    statement = Statement((step_of("synthesize:ipso", {"missing": "refuse"}, []),))
    made = frame.assign(**dict(zip(["sales"], Y.T, strict=True)))
    return Synthesized(made, statement, ("sales",), model, "ipso")


def within_a_tenth(top, draws=30, seeds=6):
    """Leverage of the giant; how often its new value is near, and a draw from the others alone."""
    near, guessed, weights = [], [], []
    for seed in range(seeds):
        Y, X = matrices(firms(top, seed))
        h, rng = leverage(X)[0], np.random.default_rng(seed)
        B = np.linalg.lstsq(X[1:], Y[1:], rcond=None)[0]
        sigma = np.sqrt(((Y[1:] - X[1:] @ B) ** 2).sum() / (len(Y) - 3))
        guess = (X[0] @ B).item() + sigma / np.sqrt(1 - h) * rng.standard_normal(draws)
        made = np.array([ipso(Y, X, rng=rng).Y[0, 0] for _ in range(draws)])
        near.append(np.mean(np.abs(made / Y[0, 0] - 1) <= 0.1))
        guessed.append(np.mean(np.abs(guess / Y[0, 0] - 1) <= 0.1))
        weights.append(h)
    return np.mean(weights), np.mean(near), np.mean(guessed)


def test_the_baseline_of_a_giant_is_what_the_others_predict():
    Y, X = matrices(firms(15))
    found = Regression.of(released(firms(15), Y), firms(15))
    for row in (0, 7):
        rest = np.arange(len(Y)) != row
        B = np.linalg.lstsq(X[rest], Y[rest], rcond=None)[0]
        assert found.fits_without[row] == pytest.approx(X[row] @ B, rel=1e-9)


@pytest.mark.parametrize(("top", "least", "told"), [(15, 0.7, 0.5), (60, 0.97, 0.99)])
def test_a_giant_comes_out_near_its_own_value_and_is_refused(top, least, told):
    """Planted: without the check, in most or all draws; from the others alone in few."""
    weight, near, guessed = within_a_tenth(top)
    assert weight > least
    assert near > told
    assert guessed < 0.15
    with pytest.raises(UnsafeRowsError, match="leverage above 1/3") as error:
        dc.synthesize(firms(top), "sales ~ size")
    assert error.value.rows.tolist() == [0]


def test_what_passes_tells_no_more_than_the_bound_says():
    weight, near, guessed = within_a_tenth(6.5)
    assert 0.2 < weight <= LEVERAGE
    assert near <= guessed + accuracy_gained(LEVERAGE) + 0.05


def accuracy_gained(leverage):
    """How much a release adds at most to the probability that a fit is right to within a width."""
    r = 1 - leverage
    a = math.sqrt(2 * math.log(1 / r) / (1 / r - r))
    return float(2 * (ndtr(a / math.sqrt(r)) - ndtr(a * math.sqrt(r))))


@pytest.mark.parametrize("h", [0.1, 1 / 3, 0.73])
def test_the_gain_of_accuracy_is_that_of_draws(h):
    """By simulation: errors of the fit and of the prediction from others, at every width."""
    rng = np.random.default_rng(1)
    own = np.abs(rng.standard_normal(200_000)) * np.sqrt(1 - h)
    others = np.abs(rng.standard_normal(200_000)) / np.sqrt(1 - h)
    widths = np.linspace(0.01, 4, 400)
    gained = [(own <= width).mean() - (others <= width).mean() for width in widths]
    assert max(gained) == pytest.approx(accuracy_gained(h), abs=0.01)
    assert accuracy_gained(LEVERAGE) < 0.2


def giant(n=300, factor=3_000.0):
    """One giant whose published size is that of the others."""
    frame = firms(1.0, n=n)
    frame.loc[0, "sales"] = factor * frame["sales"].median()
    return frame


def test_a_sum_of_squares_gives_a_giant_away_and_is_refused():
    frame = giant()
    assert leverage(matrices(frame)[1])[0] < 0.05
    with pytest.raises(UnsafeRowsError, match="squares") as error:
        dc.synthesize(frame, "sales ~ size")
    assert error.value.rows.tolist() == [0]


def test_which_units_were_large_is_not_told():
    ordinary = firms(1.0, n=300)
    for large, frames in {"refuse": [ordinary], "top-code": [ordinary, giant(), firms(60)]}.items():
        texts = {
            dc.synthesize(f, "sales ~ size", large=large, secret=SECRET).statement.text
            for f in [ordinary, *frames]
        }
        assert len(texts) == 1
        assert "0" not in texts.pop().partition("a third in its own fit")[2].partition(")")[0]
    assert dc.synthesize(ordinary, "sales ~ size", secret=SECRET).statement.says("large-units")


def clustered(size, columns=1):
    frame = people(60)
    return frame.assign(cluster=np.arange(60) // size), ["income", "tax"][:columns]


@pytest.mark.parametrize(("size", "columns"), [(4, 1), (5, 2)])
def test_clusters_in_which_an_insider_has_few_candidates_are_refused_or_merged(size, columns):
    frame, names = clustered(size, columns)
    model = f"{' + '.join(names)} ~ 1"
    with pytest.raises(UnsafeRowsError, match="clusters with fewer than"):
        dc.synthesize(frame, model, "hybrid", clusters="cluster")
    merged = dc.synthesize(frame, model, "hybrid", clusters="cluster", merge="pool")
    assert merged.statement.says("merged-cells")
    frame, _ = clustered(size + 1, columns)
    made = dc.synthesize(frame, model, "hybrid", clusters="cluster")
    assert dc.assess(frame, made, ["cluster-insiders"], clusters="cluster").scores[0].value == 0.0


def test_means_alone_need_three():
    frame, _ = clustered(3)
    made = dc.synthesize(frame, "income ~ 1", "hybrid", clusters="cluster", residuals="zero")
    assert made.frame["income"].round(6).nunique() == 20


def test_whole_numbers_leave_few_candidates_for_three_unknown_and_many_for_four():
    """Three unknown: a handful, however fine the unit is. Four: more, the finer it is."""

    def count(n, top, seed):
        z = np.random.default_rng(seed).integers(0, top, n)
        return sum(1 for _ in whole_numbers(int(z.sum()), int((z**2).sum()), n))

    three = {top: [count(3, top, s) for s in range(30)] for top in (100, 400)}
    four = {top: [count(4, top, s) for s in range(6)] for top in (30, 120)}
    assert max(np.median(c) for c in three.values()) <= 2
    assert max(map(max, three.values())) <= 8
    assert np.median(four[120]) > 2 * np.median(four[30]) > 4
    assert (3.0, 4.0, 8.0) in candidates(15, 89, 3, is_whole=True)
    assert candidates(15.0, 89.0, 3) == []


def test_the_attacks_reach_assess():
    frame = firms(60)
    Y, X = matrices(frame)
    bad = released(frame, ipso(Y, X, rng=np.random.default_rng(1)).Y)
    good = dc.synthesize(frame, "sales ~ size", large="top-code", secret=SECRET)
    both = [dc.assess(frame, made, ["large-units"], most=1).scores[0].value for made in (bad, good)]
    assert both == [1.0, 0.0]
    reasons = [s.reason for s in dc.assess(frame, frame, ["large-units"]).skipped]
    assert reasons == ["the records must be those of one model, row by row."]


def test_claims_near_the_truth_are_right():
    assert Near((1.0,), 0.1) == 1.05
    assert Near((1.0,), 0.1) != 1.2
    assert Near((1.0, 2.0), 0.1) != 1.0
    assert len(Claims.ranked([1], [Near((1.0,), 0.1)], [1.0])) == 1


def off(A, X):
    return A - X @ np.linalg.lstsq(X, A, rcond=None)[0]


def test_two_values_of_lambda_never_share_a_draw():
    """Planted: one draw under two values gives the residuals up to one number."""
    frame = people(60)
    Y = frame[["income"]].to_numpy()
    X = np.column_stack([np.ones(60), frame["age"]])

    def told(one, two):
        # T + λH is a multiple of the new residual: for the right multiple their difference
        # has the direction of H, and λ₂(T + λ₁H) − λ₁(T + λ₂H) that of T.
        a, b = off(one, X).ravel(), off(two, X).ravel()
        e = off(Y, X).ravel()
        span = np.linalg.qr(np.column_stack([a, b]))[0]
        return np.linalg.norm(span.T @ e) / np.linalg.norm(e)

    same = [romm(Y, X, v, rng=np.random.default_rng(7)).Y for v in (0.5, 1.0)]
    assert told(*same) == pytest.approx(1.0)
    apart = [
        dc.synthesize(frame, "income ~ age", "romm", lambda_=v, secret=SECRET).frame[["income"]]
        for v in (0.5, 1.0)
    ]
    assert told(*(made.to_numpy() for made in apart)) < 0.9


MOVED = {
    "romm": {"lambda_": 0.1 + 1e-7},
    "residual-correlation": {"correlations": [0.4, 0.2 + 1e-7]},
    "score-correlation": {"correlations": 0.4 + 1e-7},
    "from-residuals": {"share": 0.5 + 1e-7},
}


@pytest.mark.parametrize("method", MOVED)
def test_a_parameter_that_is_moved_a_little_is_refused(method):
    with pytest.raises(ParameterError, match="of a release is one of"):
        dc.synthesize(people(60), "income + tax ~ age", method, secret=SECRET, **MOVED[method])
    made = dc.synthesize(
        people(60), "income + tax ~ age", method, simulate=True, seed=1, **MOVED[method]
    )
    assert made.confidential == ("income", "tax")


def test_a_rotation_of_a_release_has_a_name():
    request = {"method": "score-correlation", "correlations": 0.4, "secret": SECRET}
    with pytest.raises(ParameterError, match="varimax"):
        dc.synthesize(people(60), "income + tax ~ age", rotation=np.eye(2), **request)
    dc.synthesize(people(60), "income + tax ~ age", rotation="varimax", **request)


def test_options_that_change_nothing_draw_nothing_anew():
    request = {"formula": "income ~ age + region", "secret": SECRET}
    first = dc.synthesize(people(60), **request).frame
    more = [{"merge": "pool"}, {"large": "top-code"}, {"missing": "category"}, {"rules": "p%(5)"}]
    for options in more:
        pd.testing.assert_frame_equal(dc.synthesize(people(60), **request, **options).frame, first)


@pytest.mark.parametrize("method", ["score-correlation", "residual-correlation"])
def test_sixty_four_releases_that_are_drawn_anew_come_near_the_original(method):
    """What the statement says of second releases, measured: parameters are moved, nothing else."""
    frame = people(60)
    made = [
        dc.synthesize(
            frame, "income ~ age", method, correlations=0.4 + 1e-7 * k, simulate=True, seed=k
        )
        for k in range(64)
    ]
    known = Knowledge(earlier=tuple(made[1:]))
    alone, together = (
        dc.attack(frame, made[0], ["copies"], knowledge=k)["copies"] for k in (None, known)
    )
    assert alone.lift_interval()[0] <= 0
    assert together.lift > 0.5, f"{alone}\n{together}"


def test_a_plain_frame_says_what_a_second_release_costs_and_a_ledger_refuses_it(tmp_path):
    frame = people(60)
    request = {"secret": SECRET, "name": "people"}
    alone = dc.synthesize(frame, "income ~ age", "romm", lambda_=0.5, **request)
    assert alone.statement.says("second-release")
    book = tmp_path / "ledger.db"
    counted = dc.synthesize(frame, "income ~ age", "romm", lambda_=0.5, ledger=book, **request)
    assert not counted.statement.says("second-release")
    with pytest.raises(LedgerError, match="again=True"):
        dc.synthesize(frame, "income ~ age", "romm", lambda_=1.0, ledger=book, **request)


def test_attacks_see_no_truth():
    for attack in (FittedValues, LongestColumn, ClusterInsider):
        given = list(inspect.signature(attack.__call__).parameters)
        assert given == ["self", "release", "knowledge", "rng"]
