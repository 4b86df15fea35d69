"""Records drawn from released tables."""

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.errors import ConfidentialError, DesignError, ParameterError
from discreet.synthesis.mixed import METHOD
from tests.synthesize.people import SECRET

COUNTS = {
    "age": ["young"] * 3 + ["old"] * 3,
    "party": ["A", "B", "C"] * 2,
    "n": [4, 9, 7, 12, 5, 23],
}


@pytest.fixture(scope="module")
def release():
    """Whole margins and inner cells with decimals."""
    table = dc.Table.from_counts(COUNTS, count="n", margins="age + party").with_secret(SECRET)
    return table.protect(dc.SmallCountRounding(base=3)).fit("least-squares")


def counted(made, names=("age", "party")):
    return pd.DataFrame(made.to_pandas()).groupby(list(names), observed=False).size()


@pytest.mark.parametrize("draw", ["unbiased", "total", "margins", "cube"])
def test_each_inner_cell_is_rounded_down_or_up(release, draw):
    made = dc.synthesis.records_from(release, draw, seed=1)
    y = release.inner_to_arrow().to_pandas().set_index(["age", "party"])["count"]
    assert (np.abs(counted(made).reindex(y.index) - y) < 1).all()
    assert made.method == METHOD
    assert made.confidential == ("age", "party")


def test_totals_and_margins_are_kept(release):
    y = release.inner_to_arrow().to_pandas()
    for draw in ("total", "margins"):
        assert len(dc.synthesis.records_from(release, draw, seed=2).to_arrow()) == round(
            y["count"].sum()
        )
    made = dc.synthesis.records_from(release, "margins", seed=2)
    for name in ("age", "party"):
        sums = y.groupby(name, observed=False)["count"].sum()
        assert (np.abs(counted(made, [name]).reindex(sums.index) - sums) < 1 + 1e-9).all()


def test_multinomial_records_have_the_shares_of_the_release(release):
    y = release.inner_to_arrow().to_pandas().set_index(["age", "party"])["count"]
    n = 60_000
    made = dc.synthesis.records_from(release, "multinomial", seed=3, n=n)
    expected = n * y / y.sum()
    found = counted(made).reindex(y.index)
    square = float(((found - expected) ** 2 / expected).sum())
    assert found.sum() == n
    assert square < 25  # five degrees of freedom
    other = dc.synthesis.records_from(release, "multinomial", seed=4)
    assert len(other.to_arrow()) == round(y.sum())


def test_the_statement_goes_on_where_that_of_the_release_ended(release):
    text = dc.synthesis.records_from(release, "multinomial", seed=1).statement.text
    assert "drawn from released counts" in text
    assert "Fitted" in text or "fit" in text
    assert "not people" in dc.synthesis.records_from(release, seed=1).statement.plain


def test_the_same_seed_draws_the_same(release):
    a, b, c = (
        dc.synthesis.records_from(release, "multinomial", seed=s).to_arrow() for s in (1, 1, 2)
    )
    assert a.equals(b)
    assert not a.equals(c)


def test_what_cannot_be_drawn_is_said(release):
    table = dc.Table.from_counts(COUNTS, count="n", margins="age + party")
    with pytest.raises(ConfidentialError):
        dc.synthesis.records_from(table.simulate("safe", seed=1), seed=1)
    with pytest.raises(ParameterError, match="multinomial"):
        dc.synthesis.records_from(release, "bootstrap", seed=1)
    with pytest.raises(ParameterError, match="n="):
        dc.synthesis.records_from(release, "total", seed=1, n=5)
    unfitted = table.with_secret(SECRET).protect(dc.SmallCountRounding(base=3)).with_parts(y=None)
    with pytest.raises(DesignError, match="fit them first"):
        dc.synthesis.records_from(unfitted, "multinomial", seed=1)
