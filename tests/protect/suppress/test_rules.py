import json
from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet import Design, Hierarchy, Table
from discreet.errors import ParameterError, UnknownNameError
from discreet.rules.counts import lines
from tests.protect.tables import party

SHARED = Path(__file__).parents[4] / "shared" / "reference"
GIVEN = "party:age:sex + age:sex"


def cells(table, marks):
    return [table.design.cell(int(k)) for k in np.flatnonzero(marks)]


def test_a_threshold_marks_small_counts_and_zeros_only_when_asked():
    table = party("party")
    assert dc.rules.Threshold(4).primaries(Table.from_inner(table.design, table.y)).sum() == 0
    design = Design.product({"a": 4}, "a")
    small = Table.from_inner(design, np.array([0, 1, 3, 4]))
    assert sorted(small.z[dc.rules.Threshold(3).primaries(small)]) == [1, 3]
    assert sorted(small.z[dc.rules.Threshold(3, zeros=True).primaries(small)]) == [0, 1, 3]


def test_small_counts_need_an_interval_of_width_two():
    small = Table.from_inner(Design.product({"a": 3}, "a"), np.array([0, 2, 9]))
    lower, upper = dc.rules.Threshold(3, zeros=True).needs(small)
    at = [small.design.position({"a": str(k)}) for k in (1, 2, 3)]
    assert lower[at].tolist() == [0, 1, 0]
    assert upper[at].tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    ("coalition", "groups"),
    [
        (0, {("young", "m")}),
        (1, {("young", "m"), ("young", "f"), ("old", "f")}),
    ],
)
def test_direct_disclosure_finds_the_groups_whose_party_the_table_tells(coalition, groups):
    table = party(GIVEN)
    marks = dc.rules.DirectDisclosure(coalition, variables=("party",)).primaries(table)
    assert {(c["age"], c["sex"]) for c in cells(table, marks)} == groups


def test_unknown_members_make_a_row_safe():
    design = Design.product({"g": ["x", "y"], "v": ["yes", "no", "unknown"]}, "g:v + g")
    table = Table.from_inner(design, np.array([9, 0, 1, 9, 1, 0]))
    rule = dc.rules.DirectDisclosure(1, variables=("v",))
    assert len(cells(table, rule.primaries(table))) == 2
    blurred = dc.rules.DirectDisclosure(1, variables=("v",), unknown={"v": "unknown"})
    assert cells(table, blurred.primaries(table)) == [{"g": "y", "v": "yes"}]


def test_direct_disclosure_marks_the_cells_another_program_marks():
    path = SHARED / "f_supp_mun_direct.json"
    if not path.exists():
        pytest.skip("the example data are not here")
    case = json.loads(path.read_text())
    columns = {name: [row[name] for row in case["input"]] for name in case["input"][0]}
    table = Table.from_counts(columns, "freq", "mun*inj")
    marks = dc.rules.DirectDisclosure(1).primaries(table)
    for row in case["output"]:
        codes = {v: row[v] for v in ("mun", "inj") if row[v] != "Total"}
        assert marks[table.design.position(codes)] == row["primary"]


def test_group_disclosure_marks_parts_that_hold_nearly_all():
    design = Design.product({"g": 2, "v": 3}, "g:v + g")
    table = Table.from_inner(design, np.array([19, 1, 0, 5, 3, 2]))
    rule = dc.rules.GroupDisclosure(0.95, variables="v")
    assert cells(table, rule.primaries(table)) == [{"g": "1", "v": "1"}]
    assert not dc.rules.GroupDisclosure(0.96, variables="v").primaries(table).any()
    assert not dc.rules.GroupDisclosure(0.95, min_size=21, variables="v").primaries(table).any()


def test_close_pairs_of_cells_are_differences_that_do_not_follow():
    tree = Hierarchy.from_dict({"Total": {"N": ["n1", "n2"], "S": ["s1", "s2"]}})
    rows = {"r": ["n1", "n2", "s1", "s2"] * 2, "v": ["a"] * 4 + ["b"] * 4}
    rows["n"] = [9, 1, 7, 8, 11, 12, 13, 14]
    table = Table.from_counts(rows, "n", "r*v", hierarchies={"r": tree})
    rule = dc.rules.KDisclosure(1)
    pairs = [tuple(table.design.cell(k) for k in d.cells) for d in rule.differences(table)]
    assert len(pairs) == 2
    assert ({"r": "N", "v": "a"}, {"r": "n1", "v": "a"}) in pairs
    assert ({"r": "n2"}, {"r": "n2", "v": "b"}) in pairs
    pattern = dc.Suppress(rule).pattern(table)
    X = table.design.matrix().toarray()
    shown = X[:, ~pattern.suppressed]
    column = pattern.difference_columns().toarray()
    rank = np.linalg.matrix_rank
    for each in column.T:
        assert rank(np.column_stack([shown, each])) == rank(shown) + 1


def test_lines_lead_from_a_cell_to_the_nearest_one_it_is_part_of():
    tree = Hierarchy.from_dict({"Total": {"N": ["n1", "n2"], "S": ["s1", "s2"]}})
    rows = {"r": ["n1", "n2", "s1", "s2"], "v": ["a", "b", "a", "b"], "n": [1, 2, 3, 4]}
    design = Table.from_counts(rows, "n", "r*v", hierarchies={"r": tree}).design
    X = design.matrix().toarray()
    found = [np.column_stack([line.child, line.parent]) for line in lines(design)]
    pairs = [(int(c), int(p)) for c, p in np.vstack(found)]
    assert len(set(pairs)) == len(pairs)
    for child, parent in pairs:
        inside = X[:, child] <= X[:, parent]
        assert inside.all()
        assert X[:, child].sum() < X[:, parent].sum()
    named = {(str(design.cell(c)), str(design.cell(p))) for c, p in pairs}
    assert ("{'r': 'n1'}", "{'r': 'N'}") in named
    assert ("{'r': 'n1'}", "{}") not in named
    assert ("{'r': 'N', 'v': 'a'}", "{'r': 'N'}") in named


def test_wrong_parameters_of_rules_are_named():
    with pytest.raises(ParameterError, match="max must be a whole number"):
        dc.rules.Threshold(0)
    with pytest.raises(ParameterError, match="share must be a share"):
        dc.rules.GroupDisclosure(0.4)
    with pytest.raises(ParameterError, match="coalition"):
        dc.rules.KDisclosure(-1)
    with pytest.raises(UnknownNameError, match="unknown variable 'partei'"):
        dc.rules.DirectDisclosure(1, variables="partei").primaries(party(GIVEN))


STATUS = [[14, 6, 9, 5], [0, 7, 0, 0], [1, 12, 0, 0], [22, 4, 17, 8], [30, 9, 41, 12]]


@pytest.mark.parametrize(
    ("rule", "fewer"),
    [
        (dc.rules.DirectDisclosure(1, "v"), [2, 1]),
        (dc.rules.GroupDisclosure(0.8, variables="v"), [2, 2]),
    ],
    ids=["direct", "group"],
)
def test_a_group_could_be_elsewhere_where_its_total_is_shown(rule, fewer):
    design = Design.product({"g": 5, "v": 4}, "g*v")
    table = Table.from_inner(design, np.ravel(STATUS))
    below, above = rule.needs(table)
    sensitive = [design.position({"g": g, "v": "2"}) for g in ("2", "3")]
    assert np.flatnonzero(rule.primaries(table)).tolist() == sensitive
    assert below[sensitive].tolist() == fewer
    assert not above.any()
    totals = [{"g": str(g)} for g in range(1, 6)]
    pattern = dc.Suppress(rule, frozen=totals).pattern(table)
    assert dc.audit(pattern, workers=1).is_clean
    for cell, need in zip(sensitive, fewer, strict=True):
        moves = design.matrix().tocsc()[:, [cell]].T @ pattern.proofs.changes
        assert moves.min() <= -need + 1e-6
