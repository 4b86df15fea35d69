"""Guessing a sensitive variable: the printed tables of Langsrud & Lupp (2021), and loops."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.assessment import NotApplicableError
from discreet.assessment.cells import toy
from discreet.assessment.risk.disclosure import (
    DisclosureProbability,
    ExactDisclosure,
    NearCertainGuesses,
    TargetedAttribution,
    attribution,
)
from discreet.assessment.risk.diversity import LDiversity, TCloseness
from discreet.errors import ParameterError, UnknownNameError
from discreet.tables import CellStatus
from tests.assess import party
from tests.assess.helpers import TEST


@pytest.mark.parametrize("source", ["original", "ckm", "scr"])
@pytest.mark.parametrize(
    ("intruder", "printed"),
    [("outsider", party.TABLE_9), ("own", party.TABLE_10)],
    ids=["Table 9", "Table 10"],
)
def test_printed_probabilities_and_stars(intruder, printed, source):
    measure = DisclosureProbability(sensitive="party", intruder=intruder)
    score = measure(party.table(), party.RELEASES[source])
    rows = {(r["age"], r["sex"]): r for r in score.breakdown.to_pylist()}
    cells = list(itertools.product(["young", "middle", "old"], ["male", "female"]))
    for cell, entry in zip(cells, printed[source].split(), strict=True):
        assert rows[cell]["released"] == pytest.approx(float(entry.rstrip("*")), abs=6e-5)
        assert rows[cell]["same_guess"] == (not entry.endswith("*"))
    originals = [float(p) for p in printed["original"].split()]
    assert [rows[cell]["original"] for cell in cells] == pytest.approx(originals, abs=5e-5)


@pytest.mark.parametrize(
    ("intruder", "source", "abc", "risk"),
    [
        ("outsider", "scr", (1, 0, 0), 0.0),
        ("outsider", "ckm", (1, 2, 1), 0.5556),
        ("own", "scr", (3, 1, 1), 0.7143),
        ("own", "ckm", (3, 2, 2), 0.9091),
    ],
)
def test_printed_risks(intruder, source, abc, risk):
    measure = ExactDisclosure(sensitive="party", intruder=intruder)
    score = measure(party.table(), party.RELEASES[source])
    row = score.breakdown.to_pylist()[0]
    assert (row["a"], row["b"], row["c"]) == abc
    assert score.value == pytest.approx(risk, abs=5e-5)


def test_precision_and_recall_are_the_parts_of_f():
    case = party.table(), party.RELEASES["ckm"]
    assert ExactDisclosure(sensitive="party", figure="precision")(*case).value == 0.5
    assert ExactDisclosure(sensitive="party", figure="recall")(*case).value == 1.0
    balanced = ExactDisclosure(sensitive="party", beta=1.0)(*case).value
    assert balanced == pytest.approx(2 * 0.5 * 1 / (0.5 + 1))


def test_a_certain_guess_of_the_wrong_category_discloses_nothing():
    score = ExactDisclosure(sensitive="b")(*toy([[3, 0], [1, 1]], [[0, 3], [1, 1]]))
    assert score.breakdown.to_pydict()["c"] == [0]
    assert score.value == 0


def test_groups_without_records_are_left_out():
    score = ExactDisclosure(sensitive="b")(*toy([[3, 0], [0, 0]], [[3, 0], [2, 0]]))
    assert score.breakdown.to_pydict()["b"] == [1]


def test_quasi_identifiers_may_be_fewer_and_others_are_summed_over():
    table, release = party.table(), party.RELEASES["ckm"]
    rows = DisclosureProbability(sensitive="party", quasi=["age"])(table, release).breakdown
    by_age = np.array(party.TABLE_7).sum(axis=2)
    expected = by_age.max(axis=0) / by_age.sum(axis=0)
    assert rows["age"].to_pylist() == ["young", "middle", "old"]
    assert rows["released"].to_pylist() == pytest.approx(expected)
    alone = DisclosureProbability(sensitive="party", quasi=[])(table, release)
    assert alone.on == "party given nothing"
    assert alone.breakdown["original"].to_pylist() == pytest.approx([29 / 56])


def test_bad_variables_are_refused():
    case = party.table(), party.RELEASES["ckm"]
    with pytest.raises(UnknownNameError, match="sex"):
        ExactDisclosure(sensitive="party", quasi=["sexe"])(*case)
    with pytest.raises(ParameterError, match="quasi"):
        ExactDisclosure(sensitive="party", quasi=["party"])(*case)
    with pytest.raises(NotApplicableError, match="no records"):
        ExactDisclosure(sensitive="b")(*toy([[0, 0]], [[1, 0]]))


def test_published_inner_cells_serve_as_they_are():
    table, release = toy([[3, 1], [0, 2]], [[3, 0], [0, 2]])
    bare = dc.Release(release.design, release.z, TEST)
    assert ExactDisclosure(sensitive="b")(table, bare) == ExactDisclosure(sensitive="b")(
        table, release
    )


matrices = st.integers(0, 2**32 - 1).map(
    lambda seed: np.random.default_rng(seed).choice([0, 0, 1, 2, 5], (4, 3))
)


@given(matrices)
def test_removing_oneself_is_the_best_removal_there_is(y):
    """The rule of the paper: try every category, take at most one away, keep the best."""
    found = attribution(y.astype(float), own=True).max(axis=1)
    for row, p in zip(y, found, strict=True):
        tried = [0.0]
        for c in range(3):
            less = row.astype(float)
            less[c] -= min(1, row[c])
            if less.sum() > 0:
                tried.append(less.max() / less.sum())
        if row.sum() == 1:
            tried.append(1.0)  # nobody else is there: the probability stays 1
        assert p == pytest.approx(max(tried))


@given(matrices, matrices)
def test_the_rate_of_right_guesses_against_loops(f, y):
    if f.sum() == 0:
        return
    rates = []
    for true, shown in zip(f, y, strict=True):
        if true.sum() == 0:
            continue
        winners = [s for s in range(3) if shown[s] == shown.max() > 0]
        hits = [true[s] / true.sum() for s in winners]
        rates.append(sum(hits) / len(hits) if hits else 0.0)
    score = DisclosureProbability(sensitive="b")(*toy(f, y))
    assert score.value == pytest.approx(sum(rates) / len(rates))


large = st.integers(0, 2**32 - 1).map(
    lambda seed: np.random.default_rng(seed).choice([0, 0, 1, 2, 18, 40], (6, 3))
)


@given(large, large, st.booleans())
def test_near_certain_guesses_against_loops(f, y, own):
    if f.sum() == 0:
        return
    hits = []
    for true, shown in zip(f.astype(float), y.astype(float), strict=True):
        if true.sum() == 0:
            continue
        winners = [s for s in range(3) if shown[s] == shown.max() > 0]
        p, q = ([_holds(row, s, own) for s in winners] for row in (shown, true))
        hits.append(bool(winners) and max(p) >= 0.9 and sum(q) / len(q) >= 0.9)
    intruder = "own" if own else "outsider"
    score = NearCertainGuesses(sensitive="b", intruder=intruder)(*toy(f, y))
    assert score.value == pytest.approx(np.mean(hits))


def _holds(row, guess, own):
    """The probability that a guess is right; an insider stands in the largest other category."""
    others = [row[s] for s in range(3) if s != guess]
    total = row.sum() - (min(1, max(others)) if own else 0)
    return row[guess] / total if total > 0 and row[guess] else 0.0


def test_families_of_guesses_refuse_unknown_parameters():
    with pytest.raises(ParameterError, match="intruder"):
        DisclosureProbability(intruder="neighbour")
    with pytest.raises(ParameterError, match="figure"):
        ExactDisclosure(figure="f1")


@given(matrices, matrices)
def test_targeted_attribution_counts_records(f, y):
    if f.sum() == 0:
        return
    right = seen = 0.0
    for true, shown in zip(f, y, strict=True):
        if true.sum() and np.count_nonzero(shown) == 1:
            s = int(shown.argmax())
            seen += shown[s]
            right += shown[s] * true[s] / true.sum()
    expected = right / seen if seen else 0.0
    score = TargetedAttribution(sensitive="b")(*toy(f, y))
    assert score.value == pytest.approx(expected)


@given(matrices, matrices)
def test_diversity_and_closeness_against_loops(f, y):
    groups = [shown for true, shown in zip(f, y, strict=True) if true.sum() and shown.sum()]
    if not groups:
        return
    overall = y.sum(axis=0) / y.sum()
    case = toy(f, y)
    assert LDiversity(sensitive="b")(*case).value == min(np.count_nonzero(g) for g in groups)
    entropies = [np.prod([x**-x for x in g / g.sum() if x]) for g in groups]
    assert LDiversity(sensitive="b", entropy=True)(*case).value == pytest.approx(min(entropies))
    apart = [np.abs(g / g.sum() - overall).sum() / 2 for g in groups]
    assert TCloseness(sensitive="b")(*case).value == pytest.approx(max(apart))
    steps = [sum(abs((g / g.sum() - overall)[: s + 1].sum()) for s in range(2)) / 2 for g in groups]
    assert TCloseness(sensitive="b", ordered=True)(*case).value == pytest.approx(max(steps))


class Raking:
    """Iterative proportional fitting, the slow way, as a fitter."""

    name = "raking"

    def prepare(self, design):
        X = design.matrix().toarray().astype(bool)
        return lambda z, weights=None: SimpleNamespace(y=rake(X, z))


def rake(X, z, rounds=300):
    y = np.ones(len(X))
    for _ in range(rounds):
        for k in range(X.shape[1]):
            total = y[X[:, k]].sum()
            if total > 0:
                y[X[:, k]] *= z[k] / total
    return y


@pytest.mark.slow
def test_refitting_without_oneself_against_loops():
    table = party.table()
    z = party.aggregated(party.TABLE_4)
    X = table.design.matrix().toarray().astype(bool)
    release = party.release(z, rake(X, z).reshape(3, 3, 2))
    measure = DisclosureProbability(sensitive="party", intruder="refit", fitter=Raking())
    rows = {(r["age"], r["sex"]): r for r in measure(table, release).breakdown.to_pylist()}
    true, fitted = np.array(party.TABLE_1), release.y.reshape(3, 3, 2)
    for a, age in enumerate(["young", "middle", "old"]):
        for s, sex in enumerate(["male", "female"]):
            best = fitted[:, a, s].max() / fitted[:, a, s].sum()
            for c in np.flatnonzero(true[:, a, s]):
                less = np.maximum(z - X[np.ravel_multi_index((c, a, s), (3, 3, 2))], 0)
                y = rake(X, less).reshape(3, 3, 2)[:, a, s]
                best = max(best, y.max() / y.sum())
            assert rows[age, sex]["released"] == pytest.approx(best, abs=1e-9)
    assert (
        ExactDisclosure(sensitive="party", intruder="refit", fitter=Raking())(table, release).value
        <= 1
    )


@settings(max_examples=30)
@given(matrices)
def test_refitting_published_inner_cells_is_removing_oneself(y):
    if y.sum() == 0:
        return
    as_it_is = SimpleNamespace(prepare=lambda d: lambda z, weights: SimpleNamespace(y=z))
    case = toy(y, y)
    refit = DisclosureProbability(sensitive="b", intruder="refit", fitter=as_it_is)(*case)
    assert refit.breakdown["released"].to_pylist() == pytest.approx(
        DisclosureProbability(sensitive="b", intruder="own")(*case)
        .breakdown["released"]
        .to_pylist()
    )


def test_refits_leave_out_withheld_cells_and_weigh_the_others_as_every_fit_does():
    table = party.table()
    status = np.zeros(len(table.z), dtype=np.int8)
    status[0] = CellStatus.below_threshold
    precision = np.where(np.arange(len(table.z)) < 4, 2.0, np.inf)
    release = dc.Release(table.design, table.z, TEST, y=table.y, status=status, precision=precision)
    seen = []

    def fit(z, weights):
        seen.append(weights)
        return SimpleNamespace(y=table.y.astype(float))

    fitter = SimpleNamespace(prepare=lambda design: fit)
    DisclosureProbability(sensitive="party", intruder="refit", fitter=fitter)(table, release)
    assert len(seen) == np.count_nonzero(table.y)
    assert all(np.array_equal(weights, release.fit_weights()) for weights in seen)
    assert seen[0][0] == 0
    assert np.isfinite(seen[0]).all()


def test_too_many_insiders_are_refused():
    case = toy([[3, 1], [0, 2]], [[3, 1], [0, 2]])
    with pytest.raises(NotApplicableError, match="limit"):
        ExactDisclosure(sensitive="b", intruder="refit", fitter=Raking(), most=2)(*case)
    with pytest.raises(NotApplicableError, match="fitter"):
        ExactDisclosure(sensitive="b", intruder="refit")(*case)
