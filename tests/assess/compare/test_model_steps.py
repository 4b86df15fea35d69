"""Models built margin by margin: deviances against closed forms, choices against the truth."""

import math

import numpy as np
import pytest
from scipy.stats import chi2, chi2_contingency

import discreet as dc
from discreet.assessment import select_margins
from discreet.errors import DesignError, ParameterError

BY = ["likelihood-ratio", "aic", "bic"]


def table_of(counts, names="abc"):
    sizes = dict(zip(names, counts.shape, strict=False))
    return dc.Table.from_inner(dc.Design.product(sizes, "*".join(sizes)), counts.ravel())


def g2(counts, fitted):
    some = counts > 0
    return 2 * (counts[some] * np.log(counts[some] / fitted[some])).sum()


def drawn(seed=1, records=4000):
    """a and b belong together, b and c too; a and c do not, given b."""
    rng = np.random.default_rng(seed)
    b = rng.dirichlet(np.ones(3) * 5)
    a = rng.dirichlet(np.ones(4) * 2, 3)
    c = rng.dirichlet(np.ones(2) * 2, 3)
    p = np.einsum("b,ba,bc->abc", b, a, c)
    return rng.multinomial(records, p.ravel()).reshape(p.shape)


def test_two_variables_have_the_statistic_that_everybody_computes():
    counts = np.array([[12, 5, 9], [3, 14, 7]])
    path = select_margins(table_of(counts, "ab"), by="likelihood-ratio")
    known = chi2_contingency(counts, lambda_="log-likelihood")
    assert path.steps[0].deviance == pytest.approx(known.statistic, abs=1e-6)
    assert path.steps[1].p_value == pytest.approx(known.pvalue, rel=1e-5)
    assert path.steps[1].deviance == pytest.approx(0, abs=1e-6)
    assert path.best == (("a", "b"),)


@pytest.mark.parametrize("by", BY)
def test_every_step_has_the_closed_form_of_its_model(by):
    counts = drawn()
    n, sizes = counts.sum(), counts.shape
    path = select_margins(table_of(counts), by=by)
    ones = [counts.sum(axis=tuple({0, 1, 2} - {k})) / n for k in range(3)]
    first = n * np.einsum("a,b,c->abc", *ones)
    assert path.steps[0].deviance == pytest.approx(g2(counts, first), rel=1e-6)
    assert path.steps[0].parameters == sum(k - 1 for k in sizes)
    chain = np.einsum("ab,bc,b->abc", counts.sum(2), counts.sum(0), 1 / counts.sum((0, 2)))
    last = path.steps[2]
    assert set(last.margins) == {("a", "b"), ("b", "c")}
    assert last.deviance == pytest.approx(g2(counts, chain), rel=1e-6)
    free = 3 + 2 + 1 + 3 * 2 + 2 * 1
    assert last.parameters == free
    assert last.aic == pytest.approx(last.deviance + 2 * free)
    assert last.bic == pytest.approx(last.deviance + math.log(n) * free)
    before = path.steps[1]
    fall = before.deviance - last.deviance
    assert last.p_value == pytest.approx(chi2.sf(fall, free - before.parameters))


def test_the_true_model_is_found_and_a_wrong_criterion_is_not_taken_for_it():
    """BIC finds the model that drew the tables; one that counts no parameters takes everything."""
    found = [select_margins(table_of(drawn(seed)), by="bic") for seed in range(6)]
    right = [set(path.best) == {("a", "b"), ("b", "c")} for path in found]
    assert sum(right) >= 5
    saturated = [
        select_margins(table_of(drawn(s)), by="likelihood-ratio", alpha=0.999999) for s in (0, 1)
    ]
    assert all(path.best == (("a", "b", "c"),) for path in saturated)


def test_candidates_limit_what_comes_in_and_inner_margins_come_first():
    counts = drawn()
    path = select_margins(table_of(counts), ["a:b"], by="aic")
    assert {step.added for step in path.steps[1:]} <= {("a", "b")}
    path = select_margins(table_of(counts), ["c*b*a"], by="likelihood-ratio", alpha=0.9999)
    for step in path.steps[1:]:
        pairs = {s.added for s in path.steps if s.added and len(s.added) == 2}
        assert len(step.added) == 2 or len(pairs) == 3
    assert "confidential" in repr(path)
    assert path.frame.num_rows == len(path.steps)


def test_what_cannot_be_is_refused():
    table = table_of(drawn())
    with pytest.raises(ParameterError, match="by must be one of"):
        select_margins(table, by="cp")
    with pytest.raises(ParameterError, match="leave out epsilon="):
        select_margins(table, by="aic", epsilon=1.0)
    with pytest.raises(ParameterError, match="needs a table with true inner counts"):
        select_margins(table.design, by="aic")
    with pytest.raises(ParameterError, match="alpha must lie"):
        select_margins(table, by="likelihood-ratio", alpha=1.0)
    with pytest.raises(ParameterError, match="no records"):
        select_margins(table_of(np.zeros((2, 2), int), "ab"), by="bic")
    holes = dc.Table.from_counts(
        {"a": ["x", "y"], "b": ["u", "v"], "n": [1, 2]},
        count="n",
        margins="a*b",
        structural_zeros=[{"a": "x", "b": "v"}],
    )
    with pytest.raises(DesignError, match="complete tables"):
        select_margins(holes, by="aic")
