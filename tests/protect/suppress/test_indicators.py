"""Links between indicators: equations of the table that suppression and its audit know."""

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.errors import DataError, ParameterError
from discreet.records.indicators import read_link
from discreet.rules import PPercent

RNG = np.random.default_rng(6)
N = 90
FIRMS = pd.DataFrame(
    {
        "firm": [f"F{k}" for k in range(N)],
        "act": RNG.choice(list("ABC"), N),
        "region": RNG.choice(list("xyz"), N),
        "turnover_domestic": RNG.integers(5, 40, N).astype(float),
        "turnover_export": RNG.integers(5, 40, N) / 4,
    }
).assign(turnover=lambda f: f.turnover_domestic + f.turnover_export)
# Somebody's exports dominate a cell; its turnover and its domestic turnover do not.
WHERE = np.flatnonzero((FIRMS.act == "A") & (FIRMS.region == "x"))
FIRMS.loc[WHERE[0], ["turnover_export", "turnover_domestic"]] = [900.0, 5.0]
FIRMS["turnover"] = FIRMS.turnover_domestic + FIRMS.turnover_export


@pytest.fixture(scope="module")
def table():
    firms = dc.open(FIRMS, units="enterprises").with_parts("turnover")
    return firms.tabulate("indicator*act*region", value="turnover", contributor="firm")


def test_the_value_is_the_total_of_its_parts(table):
    for column in ("turnover_domestic", "turnover_export", "turnover"):
        cell = {"act": "A", "region": "x"} | ({} if column == "turnover" else {"indicator": column})
        inside = FIRMS[(FIRMS.act == "A") & (FIRMS.region == "x")]
        place = table.design.position(cell)
        assert table.contributions.sum[place] == pytest.approx(inside[column].sum())
        assert table.contributions.largest[place, 0] == inside[column].max()
    assert table.design.axes[0].total == "turnover"


def test_a_hidden_part_does_not_follow_from_the_others(table):
    method = dc.Suppress(PPercent(10))
    pattern = method.pattern(table)
    cell = table.design.position({"indicator": "turnover_export", "act": "A", "region": "x"})
    assert pattern.primary[cell]
    release = table.protect(method)
    found = dc.audit(release, table, workers=1)
    assert found.disclosed.size == found.disclosed_with_signs.size == 0
    # By itself each indicator seems safe, but the hidden export is turnover less domestic.
    state = np.zeros(len(pattern.z), dtype=np.int8)
    for name in ("turnover_export", "turnover_domestic", "turnover"):
        firms = dc.open(FIRMS[["firm", "act", "region", name]])
        alone = firms.tabulate("act*region", value=name, contributor="firm")
        each = method.pattern(alone)
        for k in np.flatnonzero(each.suppressed).tolist():
            part = {} if name == "turnover" else {"indicator": name}
            where = table.design.position({**part, **alone.design.cell(k)})
            state[where] = each.state[k]
    apart = pattern.with_state(state)
    assert cell in dc.audit(apart, workers=1).disclosed


def test_links_are_found_by_name_or_given_and_checked():
    firms = dc.open(FIRMS)
    given = firms.with_parts("turnover", ["turnover_export", "turnover_domestic"])
    one, two = (
        each.tabulate("indicator", value="turnover", contributor="firm").contributions.sum
        for each in (given, firms.with_parts("turnover"))
    )
    np.testing.assert_allclose(np.sort(one), np.sort(two))
    assert read_link("turnover = domestic + export") == ("turnover", ("domestic", "export"))
    assert read_link("turnover") == ("turnover", None)
    for text in ("", "turnover = ", "turnover = a + "):
        with pytest.raises(ParameterError, match="a link is written as"):
            read_link(text)
    wrong = FIRMS.assign(turnover=FIRMS.turnover + (FIRMS.index == 7))
    with pytest.raises(DataError, match="in 1 records"):
        dc.open(wrong).with_parts("turnover")
    with pytest.raises(ParameterError, match="Name them"):
        firms.with_parts("region")
    with pytest.raises(dc.DiscreetError, match="turnover_export"):
        firms.with_parts("turnover", ["turnover_exprt", "turnover_domestic"])
