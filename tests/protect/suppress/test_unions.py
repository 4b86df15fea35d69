"""Sums of hidden cells: none tells too much of a contributor who is in several of them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.errors import InfeasibleError
from discreet.suppress import suppress as module
from discreet.suppress.unions import find_unions
from tests.protect.suppress.search import Case, union_faults

RULE = dc.rules.PPercent(10)


def table_of(rows, margins="act"):
    frame = pd.DataFrame(rows, columns=["firm", "act", "x"])
    return dc.Table.from_contributions(frame, margins, value="x", contributor="firm", largest=9)


def enterprise():
    """One enterprise has nearly all of three activities; two others are safe."""
    rows = [("big", act, x) for act, x in (("B05", 90.0), ("B06", 80.0), ("B07", 70.0))]
    rows += [(f"{act} {k}", act, 1.0) for act in ("B05", "B06", "B07") for k in range(4)]
    rows += [(f"{act} {k}", act, 20.0 + k) for act in ("B08", "B09") for k in range(5)]
    return table_of(rows)


def without_unions(monkeypatch, table, **options):
    """The pattern of a program that looks at single cells alone."""
    with monkeypatch.context() as planted:
        nothing = lambda pattern: find_unions(replace(pattern, closeness=()))  # noqa: E731
        planted.setattr(module, "find_unions", nothing)
        return dc.Suppress(RULE, **options).pattern(table)


def case_of(table):
    inner = table.contributions.require_inner()
    parts = np.zeros((len(table.contributions.owners), len(inner)))
    cells, places = np.nonzero(inner.owner >= 0)
    parts[inner.owner[cells, places], cells] = inner.largest[cells, places]
    return Case(table, parts, RULE)


def hidden(pattern):
    return sorted(cell["act"] for cell in pattern.cells())


@pytest.mark.parametrize("way", ["interval", "optimal", "gauss"])
def test_an_enterprise_in_three_hidden_cells_is_not_known_from_their_sum(way, monkeypatch):
    table = enterprise()
    alone = without_unions(monkeypatch, table, secondary=way)
    assert hidden(alone) == ["B05", "B06", "B07"]
    told = dc.audit(alone)
    assert not told.is_clean
    assert len(told.told_of_contributors) == 3
    (found,) = told.unions.sums
    # 252 of 240: the rest, 12, is 1 of the second largest and 11 of others, and 24 are asked for.
    assert found.need == pytest.approx(13.0)
    assert list(union_faults(case_of(table), alone, 0.1))
    pattern = dc.Suppress(RULE, way).pattern(table)
    assert len(hidden(pattern)) == 4
    assert pattern.unproved == ()
    assert dc.audit(pattern).is_clean
    assert not list(union_faults(case_of(table), pattern, 0.1))


def test_dominance_is_asked_of_sums_too(monkeypatch):
    table = enterprise()
    pattern = dc.Suppress(dc.rules.Dominance(1, 80)).pattern(table)
    assert len(hidden(pattern)) == 4
    waived = dc.rules.Dominance(1, 80, waivers=("big",))
    assert not dc.Suppress(waived).pattern(table).n_primary


def test_a_sum_that_must_be_shown_is_refused_and_named():
    frozen = [{"act": "B08"}, {"act": "B09"}, {}]
    with pytest.raises(InfeasibleError, match="one contributor has in cells act=B0"):
        dc.Suppress(RULE, frozen=frozen).pattern(enterprise())


@pytest.mark.parametrize("seed", range(8))
def test_the_program_finds_what_trying_all_sums_finds(seed, monkeypatch):
    rng = np.random.default_rng([77, seed])
    acts = [f"A{k}" for k in range(7)]
    rows = [(f"{act} {k}", act, float(rng.integers(1, 9))) for act in acts for k in range(3)]
    for firm in range(2):
        for act in rng.choice(acts, 3, replace=False):
            rows.append((f"big {firm}", str(act), float(rng.integers(30, 120))))
    table = table_of(rows)
    alone, case = without_unions(monkeypatch, table), case_of(table)
    tried = {who for who, _, _ in union_faults(case, alone, 0.1, most=7)}
    assert {each.owner for each in find_unions(alone).sums} == tried
    pattern = dc.Suppress(RULE).pattern(table)
    assert not list(union_faults(case, pattern, 0.1, most=7))
    assert not len(pattern.proofs.unproven(pattern))


def test_contributors_beyond_the_limit_are_listed(monkeypatch):
    from discreet.suppress import unions

    monkeypatch.setattr(unions, "_MOST_CELLS", 2)
    table = enterprise()
    pattern = dc.Suppress(RULE).pattern(table)
    assert [table.contributions.owners[k] for k in pattern.unproved] == ["big"]
