"""The audit of suppression patterns: known failures, laws, and what an outsider can do."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet import Design, Release, Table, audit
from discreet.assessment.audit import DisagreementError, equations
from discreet.assessment.audit.equations import by_decimals, by_leverage, by_programs
from discreet.errors import NotConvergedError, ParameterError
from discreet.randomness import stream
from discreet.rules.counts import Difference
from discreet.solve.linear.unknowns import unknowns
from discreet.suppress import PUBLISHED, Pattern
from discreet.tables import CellStatus, Statement

INNER = np.array([3, 11, 32, 30, 1, 9, 13, 8, 12, 22, 2, 2, 18, 19, 16, 3])
LABELS = {
    (1, 1): "p", (1, 2): "s", (2, 1): "p", (2, 2): "s", (2, 3): "s",
    (3, 3): "p", (3, 4): "p", (4, 1): "s", (4, 4): "p",
}  # fmt: skip
DESIGNS = [
    ({"a": 4, "b": 4}, "a*b"),
    ({"a": 3, "b": 3, "c": 2}, "a*b + b*c"),
    ({"a": 2, "b": 2, "c": 3}, "a*b*c"),
]


def paper_table():
    design = Design.product({"row": 4, "col": 4}, "row*col")
    return Table.from_inner(design, INNER)


def paper_pattern(labels=LABELS):
    return Pattern.from_labels(paper_table(), {(str(r), str(c)): s for (r, c), s in labels.items()})


def cells(found, positions):
    named = [found.subject.design.cell(int(k)) for k in positions]
    return {(int(cell["row"]), int(cell["col"])) for cell in named}


def random_pattern(seed):
    rng = np.random.default_rng(seed)
    variables, margins = DESIGNS[seed % len(DESIGNS)]
    table = Table.from_inner(
        Design.product(variables, margins),
        rng.integers(0, 4, Design.product(variables, margins).n_inner),
    )
    chance = rng.uniform(0.2, 0.7)
    letters = rng.choice(
        [".", "p", "s"], table.design.n_published, p=[1 - chance, chance / 2, chance / 2]
    )
    return Pattern.from_labels(table, "".join(letters))


def test_the_papers_pattern_is_clean():
    found = audit(paper_pattern(), intervals="all", lone="none")
    assert found.is_clean
    assert len(found.disclosed) == 0


@pytest.mark.parametrize(
    ("published", "disclosed"),
    [
        ((1, 2), {(1, 1), (2, 2)}),
        ((2, 2), {(1, 1), (1, 2)}),
        ((2, 3), {(3, 3), (3, 4), (4, 1), (4, 4)}),
        ((4, 1), {(2, 3), (3, 3), (3, 4), (4, 4)}),
    ],
)
def test_publishing_a_needed_cell_discloses_exactly_these(published, disclosed):
    row, col = published
    found = audit(paper_pattern().publishing({"row": row, "col": col}))
    assert cells(found, found.disclosed) == disclosed
    assert not found.is_clean


def test_sensitive_cells_alone_are_all_disclosed():
    primaries = {cell: letter for cell, letter in LABELS.items() if letter == "p"}
    found = audit(paper_pattern(primaries))
    assert cells(found, found.disclosed) == set(primaries)
    assert (found.low[found.by_equations] == found.subject.values[found.by_equations]).all()


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_the_three_ways_agree_with_the_rank_of_a_dense_matrix(seed):
    pattern = random_pattern(seed)
    X = pattern.design.matrix()
    shown, hidden = np.flatnonzero(~pattern.suppressed), np.flatnonzero(pattern.suppressed)
    system = unknowns(X[:, shown], pattern.z[shown].astype(float))
    targets = system.restrict(X[:, hidden].tocsc())
    dense = X.toarray().astype(float)
    projector = dense[:, shown] @ np.linalg.pinv(dense[:, shown])
    rest = np.linalg.norm(dense[:, hidden] - projector @ dense[:, hidden], axis=0)
    expected = rest < 1e-9
    np.testing.assert_array_equal(by_decimals(system, targets, stream(1, "x")), expected)
    np.testing.assert_array_equal(by_leverage(system, targets), expected)
    np.testing.assert_array_equal(by_programs(system, targets, stream(1, "x")), expected)


@pytest.mark.slow
@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_intervals_hold_the_truth_and_find_all_that_equations_find(seed):
    pattern = random_pattern(seed)
    found = audit(pattern, intervals="all", lone="signs", explain=100)
    assert (found.low <= found.subject.values + 1e-6).all()
    assert (found.high >= found.subject.values - 1e-6).all()
    assert (found.high - found.low)[found.by_equations].max(initial=0.0) < 1e-6
    assert set(found.disclosed) <= set(found.one_whole_number)
    for target, terms in found.sources.items():
        total = sum(term.coefficient * pattern.z[term.cell] for term in terms)
        assert total == pytest.approx(found.subject.values[target])
        assert not pattern.suppressed[[term.cell for term in terms]].any()
    assert set(found.sources) == set(np.flatnonzero(found.by_equations))


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_a_lone_contributor_finds_what_an_extra_published_cell_would_give(seed):
    pattern = random_pattern(seed)
    found = audit(pattern, intervals="none")
    dense = pattern.design.matrix().toarray().astype(float)
    shown = dense[:, ~pattern.suppressed]
    empty = dense[:, ~pattern.suppressed & (pattern.z == 0)].any(axis=1)
    expected = set()
    for i in np.flatnonzero(pattern.y == 1):
        # All inner cells of the published cells that he is alone in, besides his own.
        known = dense[:, (pattern.z == 1) & (dense[i] == 1)].any(axis=1)
        known[i] = True
        mine = np.column_stack([shown, np.eye(len(pattern.y))[:, known & ~empty]])
        for k in np.flatnonzero(pattern.primary):
            column = dense[:, k]
            if _rest(shown, column) > 1e-8 and _rest(mine, column) < 1e-8:
                unknown = column.astype(bool) & (_rest_of_cells(shown) > 1e-8)
                if (unknown & ~(known & ~empty)).any():
                    expected.add(int(k))
    assert set(found.told_to_lone.tolist()) == expected


def _rest(columns, target):
    return np.linalg.norm(target - columns @ (np.linalg.pinv(columns) @ target))


def _rest_of_cells(columns):
    n = columns.shape[0]
    return np.array([_rest(columns, np.eye(n)[i]) for i in range(n)])


def test_the_published_cells_that_disclose_one_are_named():
    found = audit(paper_pattern().publishing({"row": 1, "col": 2}))
    assert "(row=1, col=1) = (row=1) − (row=1, col=2)" in found.text
    assert "disclosed by equations alone: 2" in found.text
    assert "Audit of a suppression pattern" in found._repr_html_()
    frame = found.to_pandas()
    assert len(frame) == 8
    assert (frame["wrong"].str.contains("disclosed by equations")).sum() == 2


def test_a_cell_that_two_contributors_alone_know_is_told_to_each():
    design = Design.product({"a": 3}, "a")
    table = Table.from_inner(design, np.array([1, 1, 5]))
    found = audit(Pattern.from_labels(table, {("1",): "p", ("2",): "p"}))
    assert len(found.disclosed) == 0
    assert sorted(found.told_to_lone) == [0, 1]
    assert found.attackers == 2


def test_who_owns_several_cells_uses_all_of_them():
    design = Design.product({"a": 4}, "a")
    z = design.aggregate(np.array([10.0, 20, 30, 5]))
    parts = {"y": np.array([10.0, 20, 30, 5]), "lone": np.array([1, 1, 0, 0], dtype=bool)}
    labels = {("1",): "p", ("2",): "p", ("3",): "p"}
    alone = Pattern.from_labels(design, labels, z, **parts)
    together = Pattern.from_labels(design, labels, z, owner=np.array([7, 7, -1, -1]), **parts)
    assert len(audit(alone).told_to_lone) == 0
    assert audit(together).told_to_lone.tolist() == [2]
    assert audit(together).told[0].cells == (0, 1)


def test_signs_disclose_more_than_equations():
    design = Design.product({"a": 2, "b": 2}, "a*b")
    table = Table.from_inner(design, np.array([0, 5, 3, 0]))
    pattern = Pattern.from_labels(table, {(a, b): "p" for a in "12" for b in "12"})
    found = audit(pattern, intervals="all")
    assert len(found.disclosed) == 0
    assert len(found.disclosed_with_signs) == 0
    edge = Table.from_inner(design, np.array([0, 5, 0, 3]))
    empty = Pattern.from_labels(edge, {(a, b): "p" for a in "12" for b in "12"})
    assert len(audit(empty).disclosed_with_signs) == 4
    assert len(audit(empty).disclosed) == 0
    told = audit(empty).explain(design.position({"a": 1, "b": 1}))
    assert told == "0 ≤ (a=1, b=1) ≤ (b=1), and both are the same"
    assert len(audit(empty, non_negative=False).disclosed_with_signs) == 0


def test_needs_are_judged_below_and_above():
    design = Design.product({"a": 3}, "a")
    table = Table.from_inner(design, np.array([2, 4, 9]))
    none = np.zeros(4)
    pattern = Pattern.from_labels(
        table,
        {("1",): "p", ("2",): "s"},
        lower=none + [2, 0, 0, 0],
        upper=none + [5, 0, 0, 0],
    )
    found = audit(pattern, lone="none")
    assert found.too_near_below.tolist() == []
    assert found.too_near_above.tolist() == [0]
    assert "interval too short above: 1 (a=1)" in found.text


def test_public_bounds_make_intervals_shorter():
    design = Design.product({"a": 3}, "a")
    table = Table.from_inner(design, np.array([2, 4, 9]))
    pattern = Pattern.from_labels(table, {("1",): "p", ("2",): "s"})
    low, high = np.full(4, -np.inf), np.full(4, np.inf)
    low[1] = 4
    assert audit(pattern, lone="none").high[0] == 6
    assert audit(pattern, lone="none", bounds=(low, high)).high[0] == 2
    with pytest.raises(DisagreementError, match="exclude the truth"):
        audit(pattern, lone="none", bounds=(np.array([3.0, 0, 0, 0]), np.inf))
    with pytest.raises(ParameterError, match="above the upper"):
        audit(pattern, bounds=(3, 2))
    with pytest.raises(ParameterError, match="bounds are a pair"):
        audit(pattern, bounds=5)


def test_sensitive_differences_are_audited_too():
    design = Design.product({"a": 2, "b": 2}, "a*b")
    table = Table.from_inner(design, np.array([1, 5, 4, 8]))
    total, row = design.position({}), design.position({"a": 1})
    pattern = Pattern.from_labels(
        table, {}, differences=(Difference((total, row), (1, -1), "total less a=1"),)
    )
    found = audit(pattern)
    assert found.disclosed.tolist() == [design.n_published]
    assert "total less a=1" in found.text


def test_cells_that_everybody_knows_disclose():
    design = Design.product({"a": 3}, "a")
    y = np.array([0.0, 7, 9])
    labels = {("1",): "s", ("2",): "p"}
    z = design.aggregate(y)
    plain = Pattern.from_labels(design, labels, z, y=y)
    known = Pattern.from_labels(design, labels, z, y=y, known=np.array([True, False, False]))
    assert len(audit(plain).disclosed) == 0
    assert audit(known).disclosed.tolist() == [0, 1]
    assert "(a=2) = (the total) − (a=3)" in audit(known).text


def test_an_outsider_finds_what_the_custodian_finds():
    labels = dict(LABELS)
    del labels[1, 2]
    table, pattern = paper_table(), paper_pattern(labels)
    status = np.where(pattern.suppressed, CellStatus.suppressed, 0).astype(np.int8)
    shown = np.where(pattern.suppressed, 0, pattern.z)
    release = Release(pattern.design, shown, Statement(), status=status)
    outside, inside = audit(release), dc.audit(release, table)
    assert cells(outside, outside.disclosed) == {(1, 1), (2, 2)}
    np.testing.assert_array_equal(outside.low[outside.by_equations], [3, 9])
    np.testing.assert_array_equal(inside.disclosed, outside.disclosed)
    np.testing.assert_allclose(inside.low, outside.low)
    assert "value" in inside.to_arrow().column_names


def test_ways_that_disagree_are_an_error(monkeypatch):
    monkeypatch.setattr(equations, "by_leverage", lambda system, t: np.ones(t.shape[1], bool))
    with pytest.raises(DisagreementError, match="disagree"):
        audit(paper_pattern())


def test_what_cannot_be_audited_is_refused():
    table = paper_table()
    with pytest.raises(ParameterError, match="from_labels"):
        audit("pattern")
    with pytest.raises(ParameterError, match="hides no cells"):
        audit(Release(table.design, table.z, Statement()))
    with pytest.raises(ParameterError, match="holds its true values"):
        audit(paper_pattern(), table)


def test_permuting_the_variables_changes_nothing_but_positions():
    turned = Design.product({"col": 4, "row": 4}, "row*col")
    table = Table.from_inner(turned, INNER.reshape(4, 4).T.ravel())
    labels = {(str(c), str(r)): s for (r, c), s in LABELS.items() if (r, c) != (2, 3)}
    found = audit(Pattern.from_labels(table, labels))
    assert cells(found, found.disclosed) == {(3, 3), (3, 4), (4, 1), (4, 4)}


def test_a_pattern_without_suppressed_cells_is_clean():
    table = paper_table()
    state = np.full(table.design.n_published, PUBLISHED)
    assert audit(Pattern(table.design, table.z, state)).is_clean


def magnitudes():
    """Turnover of few firms, some of them alone in a cell."""
    import pandas as pd

    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "activity": rng.choice(list("abcd"), 60),
            "region": rng.choice(list("wxyz"), 60),
            "firm": rng.integers(0, 25, 60),
            "turnover": np.round(rng.lognormal(3, 1.8, 60), 2),
        }
    )
    table = dc.Table.from_contributions(
        frame, value="turnover", contributor="firm", margins="activity*region"
    )
    return table.with_secret(dc.Secret.demo())


def test_sums_of_a_value_are_audited_and_replaced_by_decimals():
    table = magnitudes()
    method = dc.Suppress(dc.rules.PPercent(10), decimals=dc.suppress.Decimals())
    pattern, release = method.pattern(table), table.protect(method)
    assert pattern.n_primary > 0
    inside, alone = audit(release, table), audit(pattern)
    assert len(alone.disclosed) == len(inside.disclosed) == 0
    np.testing.assert_array_equal(release.replaced, pattern.suppressed)
    np.testing.assert_allclose(release.design.aggregate(release.y), release.z, rtol=1e-9)
    np.testing.assert_allclose(inside.subject.values, pattern.z[pattern.suppressed])
    assert inside.attackers == alone.attackers > 0
    shown = release.exact_sum({"activity": "a"})
    assert shown == pytest.approx(pattern.z[pattern.position({"activity": "a"})])
    with pytest.raises(ParameterError, match="method.pattern"):
        audit(release, paper_table())


@pytest.mark.parametrize("margins", ["trade*region", "trade*region[side] + size"])
def test_a_release_of_sums_whose_cells_were_read_from_records_is_audited_beside_its_table(margins):
    frame = {"trade": list("aabbbccc") * 2, "region": list("xyxyzxyz") * 2}
    frame |= {"size": list("mmmmmmmn") * 2, "firm": list(range(16))}
    frame |= {"turnover": [90.0, 5, 8, 7, 60, 4, 3, 9] * 2}
    frame = {name: values[:-5] for name, values in frame.items()}
    sides = dc.Hierarchy(
        "Total",
        {"E": "Total", "W": "Total", "x": "E", "y": "E", "z": "W"},
        level_names=("all", "side", "region"),
    )
    table = dc.Table.from_contributions(
        frame,
        margins,
        value="turnover",
        contributor="firm",
        support="occurring",
        hierarchies={"region": sides},
    )
    method = dc.Suppress([dc.rules.FewContributors(3), dc.rules.PPercent(10)])
    release, pattern = table.protect(method), method.pattern(table)
    assert release.design.n_inner > table.design.n_inner
    inside, alone = audit(release, table), audit(pattern)
    assert release.hidden.sum() == pattern.suppressed.sum() > 0
    assert len(inside.disclosed) == len(alone.disclosed) == 0
    assert inside.attackers == alone.attackers > 0
    assert "all of them count as sensitive" in inside.text
    assert "all of them count as sensitive" not in alone.text
    np.testing.assert_allclose(inside.subject.values, table_sums_of(table, inside))


def test_explanations_are_left_out_where_programs_fail_and_have_no_rounding_errors(monkeypatch):
    design = Design.product({"r": 3, "c": 4}, "r*c")
    table = Table.from_inner(design, np.array([1, 3, 0, 21, 4, 6, 4, 6, 2, 11, 8, 13]))
    bare = dc.Suppress().primary(table)
    terms = [term.coefficient for told in audit(bare).sources.values() for term in told]
    assert terms
    assert all(one == np.rint(one) for one in terms)
    found = equations._as_fractions(np.array([0.999999, -1.0000004, 1 / 3 + 1e-7]))
    np.testing.assert_array_equal(found, [1.0, -1.0, 1 / 3])

    def stuck(*_args, **_options):
        raise NotConvergedError("a linear program was not solved: Unknown.")

    subject = audit(bare).subject
    monkeypatch.setattr(equations.Program, "minimise", stuck)
    found = equations.disclosing_cells(subject.X, subject.shown, subject.targets)
    assert found == [None] * len(subject.hidden)


def table_sums_of(table, found):
    """True sums of the hidden cells of an audit, looked up by their codes."""
    values = dict(
        zip(map(str, cells_of(table.design)), table.contributions.published.sum, strict=True)
    )
    return [values[str(found.subject.design.cell(int(k)))] for k in found.subject.hidden]


def cells_of(design):
    return [design.cell(k) for k in range(design.n_published)]


def test_two_lone_contributors_together_find_out_what_neither_does():
    design = Design.product({"c": 5}, "c")
    table = Table.from_inner(design, np.array([1, 1, 3, 10, 8]))
    state = np.zeros(design.n_published, dtype=np.int8)
    third = design.position({"c": "3"})
    state[[design.position({"c": c}) for c in "123"]] = 1
    pattern = Pattern(design, table.z, state, y=table.y, lone=table.y == 1)
    alone = audit(pattern, workers=1)
    assert len(alone.told_to_lone) == 0
    assert len(alone.told_to_coalitions) == 0
    found = audit(pattern, coalition=2, workers=1)
    assert found.told_to_coalitions.tolist() == [third]
    assert found.told[-1].members == 2
    assert third in found.at_risk
    assert "told to 2 of them together: 1" in found.text


def test_too_many_coalitions_are_refused():
    design = Design.product({"c": 400}, "c")
    table = Table.from_inner(design, np.ones(400, dtype=np.int64))
    state = (table.z == 1).astype(np.int8)
    pattern = Pattern(design, table.z, state, y=table.y, lone=table.y == 1)
    with pytest.raises(ParameterError, match="79,800 coalitions of 2"):
        audit(pattern, coalition=2, intervals="none")


@pytest.mark.parametrize("size", [5_000, 5_000_000, 500_000_000])
def test_needs_of_large_counts_are_judged_in_counts(size):
    table = dc.Table.from_counts(
        {"d": ["x", "x", "y", "y"], "s": ["e", "u", "e", "u"], "n": [0, size, 6, 100]}, "n", "d*s"
    )
    hidden = np.array([len(cell) == 2 for cell in map(table.design.cell, range(9))])
    state = np.where(hidden, 2, 0)
    place = table.design.position({"d": "x", "s": "u"})
    state[place] = 1
    need = np.where(np.arange(9) == place, 6.0, 0.0)
    pattern = Pattern(table.design, table.z, state.astype(np.int8), lower=need, upper=0 * need)
    assert audit(pattern, lone="none").is_clean
    short = replace(pattern, lower=need + 2 * (need > 0))
    assert audit(short, lone="none").too_near_below.tolist() == [place]


def test_tables_with_negative_amounts_are_audited_without_signs():
    frame = {"a": ["x", "x", "y", "y"], "b": ["u", "v", "u", "v"], "f": list("ABCD")}
    table = dc.Table.from_contributions(
        {**frame, "v": [100.0, -40.0, 30.0, 20.0]},
        "a*b",
        value="v",
        contributor="f",
        negative="absolute",
    )
    found = audit(dc.Suppress(dc.rules.PPercent(10), singletons=False).pattern(table), lone="none")
    assert not len(found.disclosed_with_signs)
