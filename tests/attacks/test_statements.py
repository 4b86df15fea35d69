"""What a statement says is true of the final values, and none of it was measured on the truth."""

import json
from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from discreet.tables import Statement, Step
from discreet.testing import Broken, ReleaseEvidence, check_sentences
from tests.attacks.victims import MOVES_ZEROS, PTABLE, country, keyed_table
from tests.protect.methods import FOR_COUNTS

METHODS = {
    "cell-key": dc.CellKey(PTABLE),
    "cell-key that hides": dc.CellKey(PTABLE, threshold=10),
    "cell-key summed": dc.CellKey(PTABLE, margins="summed"),
    "cell-key folded": dc.CellKey(PTABLE, folded=True),
    "cell-key moving zeros": dc.CellKey(MOVES_ZEROS),
    "drop-add": dc.DropAdd(0.05),
    "pram": dc.Pram(),
    "pram invariant": dc.Pram(invariant=True),
    "pram realised": dc.Pram(invariant=True, realised=True),
    "safe": dc.Safe(),
    "safe with bounds": dc.Safe(bounds={1: 3, 2: 6}),
    "small-count-rounding": dc.SmallCountRounding(),
    "controlled-rounding": dc.ControlledRounding(),
    "adjust": dc.Adjust(dc.CellKey(PTABLE)),
    "suppress": dc.Suppress(dc.rules.Threshold(2)),
    "suppress at least cost": dc.Suppress(dc.rules.Threshold(2), secondary="optimal"),
    "quality": dc.protect.Quality(dc.CellKey(PTABLE)),
    "discrete-laplace": dc.DiscreteLaplace(0.5),
    "laplace": dc.Laplace(0.5),
    "discrete-gaussian": dc.DiscreteGaussian(0.05),
}
FITTED = ["cell-key", "cell-key that hides", "drop-add", "pram", "adjust", "discrete-laplace"]


def test_every_registered_method_is_attacked():
    assert {method.name for method in METHODS.values()} >= set(FOR_COUNTS)


def public_texts(table, method):
    """Everything the public reads beside the values, or the public text of a refusal."""
    try:
        release = table.protect(method)
    except dc.DiscreetError as error:
        return error.public()
    return json.dumps(release.statement.to_json()) + release.statement.plain


def random_tables(n=6, **sizes):
    """Tables of one design that have nothing in common but that: sizes from dozens to millions."""
    rng = np.random.default_rng(11)
    model = country(**sizes)
    for k in range(n):
        counts = rng.poisson(rng.exponential(10.0**k / 30, model.design.n_inner))
        yield keyed_table(counts, model.design.axes, model.design.terms, seed=k)


@pytest.mark.parametrize("kind", METHODS)
def test_a_statement_is_a_function_of_method_and_design(kind):
    is_exact = kind == "suppress at least cost"  # a minute for the usual design
    sizes = {"region": 4, "age": 4, "sex": 2} if is_exact else {}
    texts = {public_texts(table, METHODS[kind]) for table in random_tables(**sizes)}
    assert len(texts) == 1


class Boasting:
    """The planted fault: a method that says what it has counted."""

    name, source = "boasting", "keys"

    def __call__(self, table, *, draws):
        made = dc.CellKey(PTABLE)(table, draws=draws)
        moved = np.count_nonzero(made.z != table.z)
        step = Step("protect:boasting", {"moved": f"{moved / len(made.z):.0%}"})
        return replace(made, statement=made.statement.then(step))


def test_a_statement_that_was_measured_is_found_out():
    assert len({public_texts(table, Boasting()) for table in random_tables()}) > 1


def evidence(finals, table):
    return ReleaseEvidence(table.z, finals, lambda: True)


@pytest.mark.parametrize("fitter", ["non-negative", "least-squares", "additive"])
@pytest.mark.parametrize("kind", FITTED)
def test_after_a_fit_no_sentence_is_stale(kind, fitter):
    table = country(mean=6.0)
    release = table.protect(METHODS[kind])
    fitted = release.fit(fitter)
    check_sentences(fitted.statement, evidence([fitted], table))
    gone = ["never-published", "zeros-stay", "need-not-add-up", "moves-at-most", "mean-zero"]
    gone += ["occupied-cells", "threshold", "same-everywhere", "variance", "multiples"]
    assert not [said for said in gone if fitted.statement.says(said)]
    assert "need not add up" not in fitted.statement.text
    assert fitted.statement.says("adds-up")


def test_the_stale_sentences_would_be_false():
    """The control: values below three and positive zeros are there, and a stale text is caught."""
    table = country(mean=6.0)
    release = table.protect(METHODS["cell-key"])
    fitted = release.fit("non-negative")
    small = (fitted.z > 1e-6) & (fitted.z < 3 - 1e-6)
    assert small.sum() > 5
    assert (fitted.z[table.z == 0] > 1e-6).any()
    for kind in ("never-published", "zeros-stay", "need-not-add-up", "occupied-cells"):
        (sentence,) = (s for s in release.statement.sentences if s.kind == kind)
        assert not sentence.holds(evidence([fitted], table)), sentence.text
        stale = Statement((Step("stale", {}, (sentence,)),))
        with pytest.raises(Broken):
            check_sentences(stale, evidence([fitted], table))


def test_after_adjusting_no_mean_of_zero_is_claimed():
    release = country(mean=6.0).protect(METHODS["adjust"])
    assert not release.statement.says("mean-zero")
    assert not release.statement.says("need-not-add-up")


def test_after_rounding_every_sentence_is_true():
    table = country(mean=6.0)
    rounded = table.protect(METHODS["cell-key"]).fit("non-negative").round(seed=1)
    check_sentences(rounded.statement, evidence([rounded], table))
    assert rounded.statement.says("whole-numbers")


# What zeros tell


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("pram", "A value above zero proves that the cell has records"),
        ("pram invariant", "Which cells are empty is not hidden"),
        ("pram realised", "Which cells are empty is not hidden"),
        ("drop-add", "A value above zero proves that the cell has records"),
        ("cell-key", "A value above zero proves that the cell has records"),
        ("safe", "A value above zero proves that the cell has records"),
    ],
)
def test_what_zeros_tell_is_said_and_true(kind, words):
    table = country(mean=2.0)
    release = table.protect(METHODS[kind])
    assert words in release.statement.text
    assert (table.z[release.z > 0] > 0).all()
    if "not hidden" in words:
        assert ((release.z == 0) == (table.z == 0)).all()
        assert (table.z == 0).sum() > 20


def test_groups_of_one_category_are_said_to_show():
    """With its zeros kept, a group that falls in one category survives: the statement says so."""
    table = country(mean=1.0, terms=[("region", "age", "sex")], region=40, age=8, sex=2)
    release = table.protect(dc.Pram(invariant=True))
    truth, shown = (z.reshape(40, 8, 2) > 0 for z in (table.z, release.z))
    alone = truth.sum(axis=2) == 1
    assert alone.sum() > 50
    assert (shown.sum(axis=2) == 1)[alone].all()
    assert "What a group has in common is not hidden" in release.statement.text


def test_where_zeros_move_nothing_is_said_of_them():
    release = country(mean=2.0).protect(METHODS["cell-key moving zeros"])
    assert not release.statement.says("zeros-stay")
    assert not release.statement.says("occupied-cells")
