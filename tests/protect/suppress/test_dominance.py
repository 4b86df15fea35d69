"""Rules on contributions: definitions, levels, waivers, and agreement with other programs."""

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dc
from discreet.errors import DesignError, ParameterError
from discreet.rules import PQ, Dominance, FewContributors, PPercent
from discreet.suppress import Exempt
from discreet.tables.magnitude import CellContributions, Contributions

SHARED = Path(__file__).parents[4] / "shared"
REFERENCE = SHARED / "reference" / "suppression"
BUSINESS = SHARED / "data" / "business"
needs_reference = pytest.mark.skipif(not REFERENCE.exists(), reason="no reference files here")


def firms(*cells, **options):
    """A table with one variable, a cell for each list of contributions."""
    rows = [
        {"cell": f"c{i}", "firm": f"f{j}", "x": float(x)}
        for i, cell in enumerate(cells)
        for j, x in enumerate(cell)
    ]
    return dc.Table.from_contributions(
        pd.DataFrame(rows), [("cell",)], value="x", contributor="firm", **options
    )


def sensitive(rule, *cells, **options):
    return rule.primaries(firms(*cells, **options)).tolist()


def test_dominance_asks_whether_the_largest_have_more_than_a_share():
    assert sensitive(Dominance(1, 80), [81, 19], [80, 20], [50, 50]) == [True, False, False]
    assert sensitive(Dominance(2, 90), [50, 41, 9], [50, 40, 10]) == [True, False]


def test_the_p_percent_rule_asks_how_closely_the_second_knows_the_first():
    assert sensitive(PPercent(10), [100, 50, 9], [100, 50, 10], [100, 50]) == [True, False, True]


def test_the_pq_rule_with_q_100_is_the_p_percent_rule():
    cells = [[100, 50, 9], [100, 50, 10], [7], [9, 9, 9]]
    assert sensitive(PQ(10, 100), *cells) == sensitive(PPercent(10), *cells)
    assert sensitive(PQ(10, 50), [100, 50, 19], [100, 50, 20]) == [True, False]


def test_empty_cells_are_not_sensitive():
    for rule in (PPercent(10), Dominance(1, 80), FewContributors(3)):
        assert sensitive(rule, [0, 0], [5, 5, 5, 5, 5, 5, 5, 5, 5, 5]) == [False, False]


def test_few_contributors():
    rule = FewContributors(3, range=20)
    table = firms([5], [5, 5], [5, 5, 5], [5, 5, 0])
    assert rule.primaries(table).tolist() == [True, True, False, True]
    lower, upper = rule.needs(table)
    assert lower.tolist() == upper.tolist() == [1.0, 2.0, 0.0, 2.0]


def test_levels_of_the_rules():
    table = firms([100, 50, 4], [90, 10])
    assert np.allclose(PPercent(10).needs(table)[1], [6.0, 9.0])
    assert np.allclose(PQ(10, 50).needs(table)[1], [16.0, 18.0])
    assert np.allclose(Dominance(1, 80).needs(table)[1], [0.0, 12.5])


def test_no_level_reaches_below_zero():
    table = firms([9, 1])
    lower, upper = Dominance(1, 20).needs(table)
    assert lower.tolist() == [10.0]
    assert upper.tolist() == [35.0]


def test_a_cell_at_its_level_is_safe():
    """A total that is larger by the level, with the same largest contributors, is not sensitive."""
    for rule in (PPercent(10), PQ(10, 40), Dominance(2, 90)):
        before = firms([100, 50, 4])
        level = float(rule.needs(before)[1][0])
        assert not rule.primaries(firms([100, 50, 4, level])).any()
        assert rule.primaries(firms([100, 50, 4, level * 0.99])).all()


def test_holdings_are_judged_as_one():
    rows = pd.DataFrame(
        {"cell": "c", "firm": list("abcd"), "group": [1, 1, None, None], "x": [4.0, 4.0, 1.0, 1.0]}
    )
    alone = dc.Table.from_contributions(rows, [("cell",)], value="x", contributor="firm")
    joint = dc.Table.from_contributions(
        rows, [("cell",)], value="x", contributor="firm", holding="group"
    )
    assert not Dominance(1, 75).primaries(alone).any()
    assert Dominance(1, 75).primaries(joint).all()


def test_waivers_leave_the_others_protected():
    cells = [[100, 20, 1], [100, 2, 1], [100, 30, 30]]
    assert sensitive(PPercent(10, waivers=["f0"]), *cells) == [True, False, False]
    assert sensitive(PPercent(10), *cells) == [True, True, False]
    assert sensitive(PPercent(10, waivers=["f0", "f1", "f2"]), *cells) == [False] * 3


def test_dominance_is_waived_when_all_who_dominate_agree():
    cells = [[90, 9, 1]]
    assert sensitive(Dominance(2, 90, waivers="f0"), *cells) == [True]
    assert sensitive(Dominance(2, 90, waivers=("f0", "f1")), *cells) == [False]
    assert sensitive(Dominance(2, 90, waivers=("f0",)), [90]) == [False]


amounts = st.lists(st.integers(1, 200), min_size=1, max_size=7)


@given(amounts, st.integers(1, 99), st.sets(st.integers(0, 6)))
def test_waivers_are_judged_contributor_by_contributor(cell, p, agreed):
    """Slow and obvious: everybody who does not agree, estimated by everybody else."""
    total = sum(cell)
    risk = False
    for i, x in enumerate(cell):
        others = [y for j, y in enumerate(cell) if j != i] or [0]
        risk |= i not in agreed and 100 * (total - x - max(others)) < p * x
    waivers = [f"f{i}" for i in agreed]
    assert sensitive(PPercent(p, waivers=waivers), cell, largest=2) == [risk]


@given(amounts, st.integers(1, 3), st.integers(1, 100))
def test_dominance_by_the_definition(cell, n, k):
    top = sum(sorted(cell)[-n:])
    assert sensitive(Dominance(n, k), cell) == [100 * top > k * sum(cell)]


def test_negative_contributions_are_judged_by_their_size():
    rows = pd.DataFrame({"cell": "c", "firm": list("abc"), "x": [-100.0, 50.0, 45.0]})
    table = dc.Table.from_contributions(
        rows, [("cell",)], value="x", contributor="firm", negative="absolute"
    )
    assert not PPercent(10).primaries(table).any()
    assert Dominance(1, 50).primaries(table).all()
    assert Dominance(1, 50).needs(table)[0].tolist() == pytest.approx([5.0])


def signed_table(cell):
    """Nine cells, one of them with two contributions, the others safe."""
    rows = [("1", "1", f"first {k}", amount) for k, amount in enumerate(cell)]
    others = [(a, b) for a in "123" for b in "123" if (a, b) != ("1", "1")]
    rows += [(a, b, f"{a}{b}{k}", 10.0 + k) for a, b in others for k in range(4)]
    frame = pd.DataFrame(rows, columns=["a", "b", "firm", "x"])
    return dc.Table.from_contributions(
        frame, "a*b", value="x", contributor="firm", negative="absolute", largest=4
    )


def test_negative_contributions_count_though_all_their_sums_are_positive():
    # The sum of 20 and -19 is 1: to no value above zero is it an interval that reaches 2 below.
    table = signed_table([20.0, -19.0])
    pattern = dc.Suppress(PPercent(10)).pattern(table)
    assert (table.contributions.sum >= 0).all()
    assert pattern.is_signed
    assert pattern.lower.max() == pytest.approx(2.0)
    # To whoever has 20 in the cell it is not the case that its sum is 20 or more.
    assert dc.audit(pattern, lone="signs").is_clean


def test_signs_hold_where_negative_values_were_allowed_and_none_came():
    pattern = dc.Suppress(Dominance(1, 40)).pattern(signed_table([20.0, 1.0]))
    assert not pattern.is_signed
    assert (pattern.lower <= pattern.z).all()
    assert dc.audit(pattern, lone="signs").is_clean


def test_rules_say_why_and_refuse_what_makes_no_sense():
    assert Dominance(1, 80).why == "the largest contributor has more than 80 % of the total"
    assert PPercent(10).name == "p%(10)"
    for wrong in (
        lambda: Dominance(0, 80),
        lambda: Dominance(1, 0),
        lambda: PPercent(101),
        lambda: PQ(20, 10),
        lambda: FewContributors(1),
    ):
        with pytest.raises(ParameterError):
            wrong()


def test_a_rule_that_needs_more_places_says_so():
    with pytest.raises(ParameterError, match="Tabulate with largest=4"):
        Dominance(4, 80).primaries(firms([1, 2, 3, 4, 5]))
    one = Contributions("x", CellContributions.none(1, 1))
    with pytest.raises(ParameterError, match="largest=2"):
        PPercent(10).lack(one)


def test_counts_have_no_dominant_contributors():
    counts = dc.Table.from_counts(pd.DataFrame({"a": ["x"], "n": [3]}), "n", "a")
    with pytest.raises(DesignError, match="contributor='enterprise'"):
        PPercent(10).primaries(counts)


# What other programs find


def reference_frame(name):
    """The records of a reference, its call and its cells."""
    content = json.loads((REFERENCE / f"{name}.json").read_text())
    file = Path(content["input"]["csv"])
    if file.parts[0] == "inputs":
        with gzip.open(REFERENCE / f"{file}.gz") as stream:
            frame = pd.read_csv(stream, dtype=str)
    else:
        frame = pd.read_csv(BUSINESS / file.name, dtype=str)
    if "ID" in content["input"]["columns"]:
        frame["ID"] = np.arange(1, len(frame) + 1)
    return frame, content


def reference_table(name):
    frame, content = reference_frame(name)
    call = content["runs"][0]["call"]
    value, who = (re.search(rf'{k} = "(\w+)"', call)[1] for k in ("numVar", "contributorVar"))
    frame[value] = frame[value].astype(float)
    variables = list(content["cells"]["levels"])
    used = [c for c in re.findall(r"\w+", call.split("formula = ~")[1]) if c in frame.columns]
    trees = {}
    for v in variables:
        above = [
            c
            for c in dict.fromkeys(used)
            if c not in variables and frame.groupby(v)[c].nunique().max() == 1
        ]
        above.sort(key=lambda c: frame[c].nunique())
        trees[v] = dc.Hierarchy.from_columns(frame, [*above, v])
    table = dc.Table.from_contributions(
        frame,
        "*".join(variables),
        value=value,
        contributor=who,
        hierarchies=trees,
        support="occurring",
    )
    columns = [np.array(names)[index] for index, names in table.design.published_codes()]
    place = {cell: k for k, cell in enumerate(zip(*columns, strict=True))}
    cells = content["cells"]
    codes = [[cells["levels"][v][i] for i in cells["index"][v]] for v in variables]
    labels = zip(*codes, strict=True)
    return table, np.array([place[cell] for cell in labels]), content, value


def rules_of(run, name):
    if "pPercent" in run["call"] or "tau-ARGUS" in run["call"]:
        rules = [PPercent(10)]
    else:
        rules = [Dominance(1, 80), Dominance(2, 90)]
    missing = {"act": ("00", "Z00")} if "enterprise" in name else {}
    return [Exempt(rule, codes=missing) for rule in rules]


REFERENCES = [
    "mag_enterprise_act_product",
    "mag_enterprise_act_region",
    "mag_indiv_act_nuts",
    "mag_indiv_act_size",
    "mag_intervals_250",
    "mag_linked",
    "mag_singleton_500",
    "mag_skew_17000",
    "mag_skew_3000",
    "mag_skew_500",
]


@needs_reference
@pytest.mark.parametrize("name", REFERENCES)
def test_primaries_and_levels_are_those_of_other_programs(name):
    """But for totals exactly at the limit of a rule, which the peer decides by rounding errors."""
    table, place, content, value = reference_table(name)
    for run in content["runs"]:
        if "status" not in run:
            continue
        rules = rules_of(run, name)
        found = np.logical_or.reduce([rule.primaries(table) for rule in rules])[place]
        on_the_edge = np.logical_or.reduce(
            [rule.rule.lack(table.contributions) == 0 for rule in rules]
        )[place]
        expected = np.array(list(run["status"])) == "p"
        assert not ((found != expected) & ~on_the_edge).any()
        assert (found != expected).sum() <= 3
        _, level = np.max([rule.rule.needs(table) for rule in rules], axis=0)
        for key, sign in ((f"lomax_{value}", -1), (f"upmin_{value}", 1)):
            if key in run:
                cells = place[run[key]["cell"]]
                limits = table.contributions.sum[cells] + sign * level[cells]
                np.testing.assert_allclose(limits, run[key]["value"], rtol=1e-9, atol=1e-6)


AT_THE_LIMIT = {
    # What is left without the two largest is 10 % of the largest.
    ("mag_skew_17000", "p_percent_10_singleton_none"): [
        {"region": "r16", "trade": "t24"},
        {"region": "r12", "trade": "t09", "size": "s01"},
        {"region": "r12", "trade": "S03", "size": "s02"},
    ],
    # The two largest have 90 %.
    ("mag_skew_3000", "dominance_80_90"): [
        {"region": "r35", "trade": "t14"},
        {"region": "r36", "trade": "t30"},
    ],
}


@needs_reference
@pytest.mark.parametrize(("name", "label"), AT_THE_LIMIT)
def test_the_peer_calls_some_sums_exactly_at_the_limit_sensitive(name, label):
    """7,271 recorded primaries of the first table against 7,268 of ours are these cells."""
    table, place, content, _ = reference_table(name)
    run = next(each for each in content["runs"] if each["label"] == label)
    rules = rules_of(run, name)
    found = np.logical_or.reduce([rule.primaries(table) for rule in rules])[place]
    other = np.flatnonzero(found != (np.array(list(run["status"])) == "p"))
    cells = [table.design.cell(int(place[k])) for k in other]
    assert sorted(cells, key=str) == sorted(AT_THE_LIMIT[name, label], key=str)
    assert not found[other].any()
    lack = np.max([rule.rule.lack(table.contributions) for rule in rules], axis=0)
    assert (lack[place][other] == 0).all()


@needs_reference
@pytest.mark.parametrize(
    ("name", "expected"),
    [("mag_enterprise_act_product", 283), ("mag_enterprise_act_region", 339)],
)
def test_the_enterprise_file_has_the_sensitive_cells_of_tau_argus(name, expected):
    table, place, content, _ = reference_table(name)
    found = Exempt(PPercent(10), codes={"act": ("00", "Z00")}).primaries(table)[place]
    theirs = [run for run in content["runs"] if run["label"].startswith("tauargus")]
    assert theirs
    for run in theirs:
        assert (found == (np.array(list(run["status"])) == "p")).all()
    assert found.sum() == expected


def test_a_release_names_the_rule_but_not_its_percentages():
    method = dc.Suppress([Dominance(1, 77), PPercent(13), dc.rules.FewContributors(3)])
    said = method._statement()
    assert "77" not in said.text
    assert "13" not in said.text
    assert said.steps[0].parameters["rules"] == ["dominance", "p%", "few-contributors(3)"]


def test_rules_on_sums_are_refused_where_counts_are_published():
    frame = pd.DataFrame({"a": ["x", "x", "y"], "f": ["A", "B", "A"], "v": [9.0, 1.0, 5.0]})
    table = dc.Table.from_contributions(frame, "a", value="v", contributor="f")
    with pytest.raises(ParameterError, match="counts are published"):
        table.simulate(dc.Suppress(PPercent(10)), seed=1, unit="count")


@pytest.mark.parametrize("singletons", [True, False])
def test_a_release_speaks_of_intervals_only_as_far_as_they_are_proven(singletons):
    said = dc.Suppress(PPercent(10), singletons=singletons)._statement().text
    assert "Intervals hold for the public" in said
    assert ("public and for each contributor" in said) == singletons
