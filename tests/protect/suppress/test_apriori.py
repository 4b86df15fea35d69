"""Cells of which something is known beforehand."""

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet import Suppress
from discreet.errors import DataError, UnknownNameError
from discreet.rules import PPercent
from discreet.suppress import Exempt, Listed, with_apriori
from discreet.suppress.argus import APriori

FIRMS = pd.DataFrame(
    {
        "trade": ["x"] * 4 + ["y"] * 4 + ["z"] * 4,
        "region": ["n", "n", "s", "s"] * 3,
        "firm": range(12),
        "x": [100.0, 1.0, 30.0, 30.0, 9.0, 8.0, 7.0, 6.0, 50.0, 40.0, 30.0, 20.0],
    }
)


@pytest.fixture
def table():
    return dc.Table.from_contributions(FIRMS, "trade*region", value="x", contributor="firm")


def at(table, **codes):
    return table.design.position(codes)


def test_listed_cells_are_sensitive_with_a_share_of_their_value_or_what_is_said(table):
    file = APriori.of_cells({("x", ""): "u", ("y", ""): "u", ("", "n"): "s"})
    rule = Listed(file, range=20)
    assert rule.primaries(table).sum() == 2
    lower, upper = rule.needs(table)
    assert upper[at(table, trade="x")] == pytest.approx(0.2 * 161)
    both = Listed(APriori((*file.entries, *APriori.of_cells({("x", ""): ("pl", 3, 4)}).entries)))
    lower, upper = both.needs(table)
    assert (lower[at(table, trade="x")], upper[at(table, trade="x")]) == (3.0, 4.0)


def test_exempt_cells_are_never_sensitive(table):
    rule = PPercent(10)
    assert rule.primaries(table)[at(table, trade="x", region="n")]
    free = Exempt(rule, codes={"trade": "x"})
    assert not free.primaries(table)[at(table, trade="x", region="n")]
    assert free.primaries(table)[at(table, trade="y", region="n")]
    assert free.needs(table)[0][at(table, trade="x", region="n")] == 0
    assert free.name == rule.name
    assert free.why == rule.why
    with pytest.raises(UnknownNameError, match="Did you mean 'trade'"):
        Exempt(rule, codes={"trde": "x"}).primaries(table)


def test_a_file_joins_rules_and_suppression(table, tmp_path):
    file = tmp_path / "cells.hst"
    file.write_text('x,"",u\ny,n,s\n"",n,p\nz,s,c,7\nx,n,pl,5,6\n')
    options = with_apriori(table, PPercent(10), file)
    pattern = Suppress(**options).pattern(table)
    assert pattern.primary[at(table, trade="x")]
    assert not pattern.primary[at(table, trade="y", region="n")]
    assert not pattern.suppressed[at(table, region="n")]
    assert pattern.upper[at(table, trade="x", region="n")] == 6.0
    assert pattern.lower[at(table, trade="x", region="n")] == 5.0
    assert options["priorities"] == [({"trade": "z", "region": "s"}, pytest.approx(7 / 50))]
    assert pattern.reasons[at(table, trade="x")] == "listed as sensitive"


def test_the_order_of_variables_is_that_of_the_table(tmp_path):
    table = dc.Table.from_contributions(FIRMS, "region*trade", value="x", contributor="firm")
    options = with_apriori(table, PPercent(10), APriori.of_cells({("n", "z"): "u"}))
    pattern = Suppress(**options).pattern(table)
    assert pattern.primary[at(table, trade="z", region="n")]


def test_codes_that_are_not_there_are_told_with_their_line(table, tmp_path):
    file = tmp_path / "cells.hst"
    file.write_text("x,n,u\n\nx,w,u\n")
    with pytest.raises(DataError, match="line 3: unknown code 'w' of variable 'region'"):
        with_apriori(table, PPercent(10), file)
    said = dc.argus.read_apriori(file).cells(table.design, ignore_unknown=True)
    assert said.unsafe.sum() == 1


def test_lines_hold_for_cells_with_the_same_content_when_asked():
    tree = dc.Hierarchy.from_dict({"Total": {"X": ["x"], "YZ": ["y", "z"]}})
    table = dc.Table.from_contributions(
        FIRMS, "trade", value="x", contributor="firm", hierarchies={"trade": tree}
    )
    file = APriori.of_cells({("X",): "u"})
    assert file.cells(table.design).unsafe.sum() == 1
    both = np.flatnonzero(file.cells(table.design, expand=True).unsafe)
    assert {table.design.cell(int(k))["trade"] for k in both} == {"X", "x"}


@pytest.mark.parametrize(("one", "two"), [("u", "s"), ("s", "u"), ("u", "p"), ("p", "u")])
def test_a_cell_that_is_unsafe_and_safe_is_refused(table, tmp_path, one, two):
    file = tmp_path / "cells.hst"
    file.write_text(f"x,n,{one}\ny,n,{one}\nx,n,{two}\n")
    with pytest.raises(DataError, match=f"line 3: cell 'x, n' has '{two}'.*opposite"):
        with_apriori(table, PPercent(10), file)
    file.write_text(f"x,n,{one}\nx,n,{one}\n")
    assert with_apriori(table, PPercent(10), file)["rules"]


def test_a_cost_of_nothing_is_refused(table, tmp_path):
    file = tmp_path / "cells.hst"
    file.write_text("x,n,c,0\n")
    with pytest.raises(DataError, match="a cost of 0"):
        with_apriori(table, PPercent(10), file)
