"""Sums of hidden cells: none tells too much of a contributor who is in several of them."""

from dataclasses import replace
from math import comb

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.errors import InfeasibleError
from discreet.suppress import describe_pattern
from discreet.suppress import suppress as module
from discreet.suppress import unions as module_of_unions
from discreet.suppress.interval import IntervalSearch
from discreet.suppress.unions import find_unions
from tests.protect.suppress.search import Case, SumRule, random_case, union_faults

RULE = dc.rules.PPercent(10)


def table_of(rows, margins="act"):
    frame = pd.DataFrame(rows, columns=["firm", "act", "x"])
    return dc.Table.from_contributions(frame, margins, value="x", contributor="firm", largest=9)


def enterprise(others=("B08", "B09")):
    """One enterprise has nearly all of three activities; two others are safe."""
    rows = [("big", act, x) for act, x in (("B05", 90.0), ("B06", 80.0), ("B07", 70.0))]
    rows += [(f"{act} {k}", act, 1.0) for act in ("B05", "B06", "B07") for k in range(4)]
    rows += [(f"{act} {k}", act, 20.0 + k) for act in others for k in range(5)]
    return table_of(rows)


def without_unions(monkeypatch, table, rule=RULE, **options):
    """The pattern of a program that looks at single cells alone."""
    with monkeypatch.context() as planted:
        nothing = lambda pattern, *_: find_unions(replace(pattern, closeness=()))  # noqa: E731
        planted.setattr(module, "find_unions", nothing)
        return dc.Suppress(rule, **options).pattern(table)


def case_of(table):
    inner = table.contributions.require_inner()
    parts = np.zeros((len(table.contributions.owners), len(inner)))
    cells, places = np.nonzero(inner.owner >= 0)
    parts[inner.owner[cells, places], cells] = inner.largest[cells, places]
    return Case(table, parts, RULE)


def hidden(pattern):
    return sorted(cell["act"] for cell in pattern.cells())


@pytest.mark.parametrize("way", ["interval", "optimal"])
def test_an_enterprise_in_three_hidden_cells_is_not_known_from_their_sum(way, monkeypatch):
    table = enterprise()
    alone = without_unions(monkeypatch, table, secondary=way)
    assert hidden(alone) == ["B05", "B06", "B07"]
    told = dc.audit(alone)
    assert not told.is_clean
    assert len(told.told_of_contributors) == 3
    # 252 of 240: the rest, 12, is 1 of the second largest and 11 of others, and 24 are asked for.
    assert {round(each.need, 6) for each in told.unions.sums} == {13.0}
    assert list(union_faults(case_of(table), alone, SumRule(0.1)))
    pattern = dc.Suppress(RULE, way).pattern(table)
    assert len(hidden(pattern)) == 4
    assert pattern.unproved == ()
    assert dc.audit(pattern).is_clean
    assert not list(union_faults(case_of(table), pattern, SumRule(0.1)))
    (why,) = describe_pattern(pattern).costliest.values()
    assert "what one contributor has in cells" in why


def test_the_dominance_rule_asks_of_sums_what_it_asks_of_cells(monkeypatch):
    """Others have 22 % of what the largest has: he has 82 % of the sum, and the rule says 80."""
    sizes = {"B05": 90.0, "B06": 80.0, "B07": 70.0}
    rows = [("big", act, x) for act, x in sizes.items()]
    rows += [(f"{act} {k}", act, 0.055 * x) for act, x in sizes.items() for k in range(4)]
    rows += [(f"{act} {k}", act, 20.0 + k) for act in ("B08", "B09") for k in range(5)]
    table, rule = table_of(rows), dc.rules.Dominance(1, 80)
    alone = without_unions(monkeypatch, table, rule)
    assert hidden(alone) == ["B05", "B06", "B07"]
    assert len(dc.audit(alone).told_of_contributors) == 3
    assert len(hidden(dc.Suppress(rule).pattern(table))) == 4


def test_sums_are_protected_from_where_the_search_for_cells_ended(monkeypatch):
    """Later rounds hide more, and find the sums that a search for all would find."""
    seen, swaps = [], []

    def compared(pattern, earlier=None, known=None):
        found = find_unions(pattern, earlier, known)
        if earlier is not None:
            assert not (earlier.suppressed & ~pattern.suppressed).any()
            assert {each.cells for each in found.sums} == {
                each.cells for each in find_unions(pattern).sums
            }
        seen.append(len(found.sums))
        return found

    monkeypatch.setattr(module, "find_unions", compared)
    swap = IntervalSearch.swap
    monkeypatch.setattr(IntervalSearch, "swap", lambda self: swaps.append(swap(self)))
    for table in (enterprise(), *(random_case(number).table for number in (0, 2, 8))):
        seen.clear()
        swaps.clear()
        pattern = dc.Suppress(RULE).pattern(table)
        assert len(swaps) == 1
        assert seen[-1] == 0
        assert len(pattern.proofs.unproven(pattern)) == 0
        assert dc.audit(replace(pattern, proofs=None), lone="signs", workers=1).is_clean
        if len(seen) > 1:
            assert seen[0] > 0


def test_dominance_is_asked_of_sums_too(monkeypatch):
    table = enterprise()
    pattern = dc.Suppress(dc.rules.Dominance(1, 80)).pattern(table)
    assert len(hidden(pattern)) == 4
    waived = dc.rules.Dominance(1, 80, waivers=("big",))
    assert not dc.Suppress(waived).pattern(table).n_primary


@pytest.mark.parametrize("shown", [[{"act": "B08"}, {"act": "B09"}, {}], [{}]])
def test_a_sum_that_must_be_shown_is_refused_and_named(shown):
    table = enterprise() if len(shown) > 1 else enterprise(others=())
    options = {"frozen": shown} if len(shown) > 1 else {"forced": shown}
    with pytest.raises(InfeasibleError, match="one contributor has in cells act=B0") as said:
        dc.Suppress(RULE, **options).pattern(table)
    assert "cell the total, which must be shown, tells it" in str(said.value)


def test_sums_of_exempt_cells_alone_are_not_asked_for(monkeypatch):
    table = enterprise()
    some = dc.suppress.Exempt(RULE, codes={"act": ["B05"]})
    alone = without_unions(monkeypatch, table, some)
    (exempt,) = {each.exempt for each in alone.closeness}
    assert exempt == (table.design.position({"act": "B05"}),)
    asked = SumRule(0.1, exempt=exempt)
    tried = {sums for _, _, sums in union_faults(case_of(table), alone, asked, most=4)}
    found = find_unions(alone)
    assert {tuple(sorted(each.cells)) for each in found.sums} <= {tuple(sorted(s)) for s in tried}
    assert bool(found.sums) == bool(tried)
    pattern = dc.Suppress(some).pattern(table)
    assert not list(union_faults(case_of(table), pattern, asked, most=4))
    every = dc.suppress.Exempt(RULE, codes={"act": ["B05", "B06", "B07"]})
    assert not dc.Suppress(every).pattern(table).n_primary


def random_firms(seed, small=3):
    """Two firms that are large in three of seven activities each."""
    rng = np.random.default_rng([77, seed])
    acts = [f"A{k}" for k in range(7)]
    rows = [(f"{act} {k}", act, float(rng.integers(1, 9))) for act in acts for k in range(small)]
    for firm in range(2):
        for act in rng.choice(acts, 3, replace=False):
            rows.append((f"big {firm}", str(act), float(rng.integers(30, 120))))
    return table_of(rows)


def mixed_firms(seed, small=5):
    """Firms that are large in some activities, beside activities in which nobody is."""
    rng = np.random.default_rng([78, seed])
    acts = [f"A{k}" for k in range(7)]
    rows = [
        (f"{act} {k}", act, float(rng.integers(1, 4))) for act in acts[:4] for k in range(small)
    ]
    rows += [(f"{act} {k}", act, float(rng.integers(20, 30))) for act in acts[4:] for k in range(5)]
    for firm, n in (("big", 3), ("second", 2)):
        for act in rng.choice(acts[:4], n, replace=False):
            rows.append((firm, str(act), float(rng.integers(40, 90))))
    return table_of(rows)


RULES = {
    "coalition": (dc.rules.PPercent(10, n=2), SumRule(0.1, coalition=2)),
    "several": (dc.rules.Dominance(2, 80), SumRule(0.25, coalition=0, together=2)),
    "few": (dc.rules.FewContributors(3), SumRule(0.1, coalition=0, together=2, is_alone=True)),
}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("seed", [0, 5])
def test_rules_on_several_contributors_hold_of_sums(name, seed, monkeypatch):
    rule, asked = RULES[name]
    table = mixed_firms(seed, small=0 if name == "few" else 5)
    if name == "coalition" and seed == 0:
        table = enterprise()
    alone, case = without_unions(monkeypatch, table, rule), case_of(table)
    tried = {one for who, _, _ in union_faults(case, alone, asked, most=7) for one in who}
    found = find_unions(alone)
    assert not found.unproved
    assert {who for each in found.sums for who in each.owners} == tried
    assert tried
    pattern = dc.Suppress(rule).pattern(table)
    assert not pattern.unproved
    assert not list(union_faults(case, pattern, asked, most=7))
    assert not len(pattern.proofs.unproven(pattern))


@pytest.mark.parametrize("seed", range(8))
def test_the_program_finds_what_trying_all_sums_finds(seed, monkeypatch):
    table = random_firms(seed)
    alone, case = without_unions(monkeypatch, table), case_of(table)
    tried = {one for who, _, _ in union_faults(case, alone, SumRule(0.1), most=7) for one in who}
    assert {who for each in find_unions(alone).sums for who in each.owners} == tried
    pattern = dc.Suppress(RULE).pattern(table)
    assert not list(union_faults(case, pattern, SumRule(0.1), most=7))
    assert not len(pattern.proofs.unproven(pattern))


def test_contributors_beyond_the_limit_are_listed(monkeypatch):
    monkeypatch.setattr(module_of_unions, "_MOST_CELLS", 2)
    table = enterprise()
    pattern = dc.Suppress(RULE).pattern(table)
    assert [pattern.owners[k] for k in pattern.unproved] == ["big"]
    report = describe_pattern(pattern)
    assert report.summary["unproved_contributors"] == ["big"]
    assert "tells too much: 1\n  big" in str(report)
    release = table.protect(dc.Suppress(RULE))
    assert "not proven for all of them" in repr(release.statement)
    assert "big" not in repr(release.statement)


def test_somebody_in_another_cell_is_an_attacker_of_sums(monkeypatch):
    """Who is alone in a fourth hidden cell knows the sum of the three others."""
    rows = [("big", act, x) for act, x in (("B05", 90.0), ("B06", 80.0), ("B07", 70.0))]
    rows += [(f"{act} {k}", act, 1.0) for act in ("B05", "B06", "B07") for k in range(4)]
    rows += [("alone", "B08", 60.0)]
    rows += [(f"{act} {k}", act, 20.0 + k) for act in ("B09", "B10") for k in range(5)]
    table = table_of(rows)
    alone, case = without_unions(monkeypatch, table), case_of(table)
    number = table.contributions.owners.index("alone")
    tried = {by for _, by, _ in union_faults(case, alone, SumRule(0.1), most=4)}
    assert (number,) in tried
    assert (number,) in {each.against for each in find_unions(alone).sums}
    assert not list(union_faults(case, dc.Suppress(RULE).pattern(table), SumRule(0.1), most=5))


def test_one_change_convinces_many_coalitions(monkeypatch):
    asked = []
    search = module_of_unions._UnionSearch
    usual = search._worst_set
    count = lambda self, *given: asked.append(1) or usual(self, *given)  # noqa: E731
    monkeypatch.setattr(search, "_worst_set", count)
    table = mixed_firms(3)
    dc.Suppress(dc.rules.PPercent(10, n=2)).pattern(table)
    pairs = comb(len(table.contributions.owners), 2)
    assert 0 < len(asked) < pairs / 10


def test_a_table_without_sensitive_cells_has_no_sums_to_ask_for():
    rows = [(place, f"{place}{k}", 10.0 + k) for place in "ab" for k in range(9)]
    firms = dc.open(pd.DataFrame(rows, columns=["place", "firm", "sales"]))
    table = firms.tabulate("place", value="sales", contributor="firm")
    rules = [dc.rules.PPercent(10), dc.rules.FewContributors(3)]
    pattern = dc.Suppress(rules).pattern(table)
    assert not pattern.suppressed.any()
