"""Rules look at public sizes and protected figures; every refusal offers what is allowed."""

from dataclasses import replace

import numpy as np
import pytest

from discreet.errors import ParameterError
from discreet.release import Cube, CubeAxis, CubeEntry
from discreet.serve import InnerSource, Policy, Query, Refusal
from discreet.serve.policy.policy import public_statement
from discreet.serve.policy.rules import JudgedTable, finest_cells, total_people
from discreet.tables import CellStatus, Statement
from tests.serve.sites import inner_table, once

PRESENTATION = (
    "Figures are left out to keep the table readable. They are protected like all others, "
    "and some can be worked out from totals."
)


def asked(address, **policy):
    return once(Policy(**policy)).answer(Query.parse(address))


def refused(address, **policy):
    with pytest.raises(Refusal) as caught:
        asked(address, **policy)
    return caught.value


def cube_of(values):
    """A cube of two variables with totals, from the cells that are no totals."""
    inner = np.array(values)
    full = np.zeros(np.add(inner.shape, 1), dtype=np.int64)
    full[1:, 1:] = inner
    full[0, 1:], full[1:, 0], full[0, 0] = inner.sum(0), inner.sum(1), inner.sum()
    axes = [
        CubeAxis(
            name,
            name,
            (CubeEntry("T", "T", 0, is_sum=True),)
            + tuple(CubeEntry(str(k), str(k), 1, is_sum=False) for k in range(n)),
        )
        for name, n in zip("ab", inner.shape, strict=True)
    ]
    return Cube(tuple(axes), full, np.zeros(full.shape, np.int8), "count", Statement())


class Plain:
    """A question for the whole of a cube."""

    query, details, in_public_order = Query(), ("a", "b"), ()


def judged(values, **policy):
    cube = cube_of(values)
    return Policy(**policy).judge(Plain(), cube, lambda details: cube)


def test_the_finest_cells_and_the_total_of_a_cube():
    values, possible = finest_cells(cube_of([[3, 4], [0, 5]]))
    np.testing.assert_array_equal(values, [[3, 4], [0, 5]])
    assert possible.all()
    assert total_people(cube_of([[3, 4], [0, 5]])) == 12


@pytest.mark.parametrize(
    ("address", "policy", "code"),
    [
        ("rows=region&columns=sex", {"max_variables": 1}, "too_many_variables"),
        ("rows=sex&where.age=0-14", {"max_variables": 1}, "too_many_variables"),
        ("rows=region&columns=age&layers=sex", {"max_cells": 100}, "too_many_cells"),
        ("rows=sex&columns=age", {"forbidden": (("age", "sex"),)}, "forbidden_combination"),
        ("rows=sex&where.age=0-14", {"forbidden": (("age", "sex"),)}, "forbidden_combination"),
        ("rows=age&group.age=A|0-14", {"groups": "none"}, "own_groups"),
        ("rows=age&group.age=A|0-14", {"groups": "fixed"}, "own_groups"),
        ("rows=sex", {"min_population": 1e6}, "small_population"),
        ("rows=region&columns=age", {"min_mean_cell": 1e5}, "small_cells"),
        ("rows=region&columns=age", {"k_anonymity": 1e5}, "k_anonymity"),
        ("rows=sex&columns=age", {"sensitive": ("age",), "l_diversity": 4}, "l_diversity"),
        ("rows=sex&columns=age", {"sensitive": ("age",), "t_closeness": 0.0}, "t_closeness"),
        ("rows=sex&where.age=0-14", {"min_difference": 1e6}, "small_difference"),
    ],
)
def test_each_rule_refuses_what_it_forbids(address, policy, code):
    found = refused(address, **policy)
    assert found.code == code
    assert found.allowed
    assert found.status == 400


@pytest.mark.parametrize(
    ("address", "policy"),
    [
        ("rows=region&columns=age&layers=sex", {"max_variables": 2}),
        ("rows=region&columns=age&layers=sex", {"max_cells": 100}),
        ("rows=region&columns=sex", {"max_cells": 30}),
        ("rows=sex&columns=age", {"forbidden": (("age", "sex"),)}),
        ("rows=age&group.age=A|0-14", {"groups": "none"}),
        ("rows=region&columns=age", {"min_mean_cell": 60}),
        ("rows=sex&where.age=0-14", {"min_difference": 600}),
    ],
)
def test_what_a_refusal_offers_is_answered(address, policy):
    found = refused(address, **policy)
    assert found.offers
    assert len(found.offers) <= 3
    for label, query in found.offers:
        assert label
        assert asked(query.address, **policy).cube.values.size


def test_the_limit_is_met_exactly():
    assert asked("rows=region&columns=age&layers=sex", max_cells=12 * 4 * 3)
    assert refused("rows=region&columns=age&layers=sex", max_cells=12 * 4 * 3 - 1)


def test_fixed_groups_are_allowed_as_they_are_fixed():
    fixed = {"groups": "fixed", "fixed_groups": {"age": {"Young": ["0-14"]}}}
    assert asked("rows=age&group.age=Young|0-14", **fixed)
    assert refused("rows=age&group.age=Young|0-14|15-64", **fixed).code == "own_groups"


@pytest.mark.parametrize("codes", [["N1-1", "N1-2"], ["N1", "nowhere"]])
def test_fixed_groups_of_codes_that_are_not_on_offer_are_refused(codes):
    """Nobody could choose them, and the policy would tell the public what they hold."""
    policy = Policy(groups="fixed", fixed_groups={"region": {"Towns": codes}})
    with pytest.raises(ParameterError, match="no level of 'region' on offer has all codes"):
        once(policy, source=InnerSource(inner_table(), ["region[county]", "age"]))


def test_k_anonymity_looks_at_cells_that_are_not_empty():
    assert judged([[3, 0], [5, 9]], k_anonymity=3)
    with pytest.raises(Refusal):
        judged([[2, 0], [5, 9]], k_anonymity=3)


def test_l_diversity_counts_the_categories_of_every_group():
    rule = {"sensitive": ("b",), "l_diversity": 2}
    assert judged([[3, 1], [0, 0], [5, 9]], **rule)
    with pytest.raises(Refusal):
        judged([[3, 1], [0, 2], [5, 9]], **rule)


def test_t_closeness_is_half_the_sum_of_differences():
    rows = [[3, 1], [1, 3]]  # each lies 1/4 from everybody's half and half
    assert judged(rows, sensitive=("b",), t_closeness=0.25)
    with pytest.raises(Refusal):
        judged(rows, sensitive=("b",), t_closeness=0.24)


def test_sparse_areas_are_hidden_and_counted():
    found = judged([[3, 0, 0], [5, 9, 1], [1, 2, 0]], area="a", max_sparsity=0.5)
    assert found.notes == (
        "2 of 3 areas available: the others have too few people for this detail.",
        PRESENTATION,
    )
    hidden = found.cube.status == CellStatus.below_threshold
    np.testing.assert_array_equal(hidden, [[False] * 4, [True] * 4, [False] * 4, [False] * 4])
    assert not found.cube.values[hidden].any()
    assert found.cube.values[0, 0] == 21


def test_when_no_area_is_left_the_table_is_refused():
    with pytest.raises(Refusal, match="In none of the 2 areas"):
        judged([[3, 0, 0], [0, 0, 1]], area="a", max_sparsity=0.5)


@pytest.mark.parametrize(
    "policy", [{"min_mean_cell": 30}, {"area": "region", "max_sparsity": 0.5, "sparse_below": 1e4}]
)
def test_a_refused_table_cannot_be_had_in_slices(policy):
    """What is refused of the crossing is refused of every filter and choice of categories."""
    address = "rows=region&columns=age&layers=sex"
    assert refused(address, **policy).code in ("small_cells", "sparse")
    for slices in ("where.sex=F", "where.sex=M", "where.age=15-64&where.sex=M"):
        variables = [v for v in ("age", "sex") if v not in slices]
        shown = "".join(f"&columns={v}" for v in variables)
        assert refused(f"rows=region{shown}&{slices}", **policy)
    picked = "pick.region=N&pick.age=15-64&pick.sex=M"
    assert refused(f"{address}&{picked}", **policy)


def test_sparse_areas_stay_hidden_whatever_part_is_asked_for():
    rule = {"area": "region", "max_sparsity": 0.3, "sparse_below": 20}
    whole = asked("rows=region&columns=age&layers=sex", **rule).cube
    hidden = {
        code
        for k, code in enumerate(whole.axis("region").codes)
        if (whole.status[k] == CellStatus.below_threshold).all()
    }
    assert 0 < len(hidden) < 11
    part = asked("rows=region&columns=age&where.sex=M", **rule).cube
    for k, code in enumerate(part.axis("region").codes):
        assert (part.status[k] == CellStatus.below_threshold).all() == (code in hidden)


def test_small_figures_are_not_shown():
    found = judged([[2, 0], [5, 9]], threshold=3)
    assert found.cube.status[1, 1] == CellStatus.below_threshold
    assert found.cube.values[1, 1] == 0
    assert found.cube.status[1, 2] == 0
    assert found.notes == ("Figures below 3 are not shown.", PRESENTATION)


def test_populations_must_differ_from_the_categories_around_them():
    """Everybody but one small place: the difference to the total is that place."""
    table = inner_table()
    sizes = dict(zip(table.axis("region").leaves, table.margin(["region"]), strict=True))
    small = min(sizes, key=sizes.get)
    others = "&".join(f"where.region={code}" for code in sizes if code != small)
    limit = float(sizes[small]) + 1
    assert refused(f"rows=sex&{others}", min_difference=limit).code == "small_difference"
    assert asked(f"rows=sex&{others}", min_difference=limit - 1)


def test_a_limit_that_is_not_public_is_not_named():
    secret = refused("rows=sex", min_population=12345, public_parameters=("max_cells",))
    assert "12,345" not in secret.allowed
    assert "12,345" in refused("rows=sex", min_population=12345).allowed
    told_of = Policy(min_population=12345, public_parameters=("max_cells",)).public()
    assert told_of == {"max_cells": 10_000}


def test_parameters_that_are_kept_back_leave_the_statement():
    statement = once().statement
    assert any(step.parameters for step in statement.steps)
    assert public_statement(statement, Policy()) == statement
    kept = public_statement(statement, Policy(public_parameters=("method",)))
    assert not any(step.parameters for step in kept.steps)
    assert not any(c.isdigit() for s in kept.sentences for c in s.text + s.plain)
    cube = once(Policy(public_parameters=("method",))).answer(Query.parse("rows=sex")).cube
    assert "min_count" not in str(cube.statement.to_json())


@pytest.mark.parametrize(
    "settings",
    [
        {"max_cells": 0},
        {"t_closeness": 1.5},
        {"max_sparsity": 0.5},
        {"l_diversity": 2},
        {"groups": "mine"},
        {"forbidden": ((),)},
        {"min_population": -1},
        {"threshold": -3},
    ],
)
def test_a_policy_that_cannot_be_meant_is_an_error(settings):
    with pytest.raises(ParameterError):
        Policy(**settings)


@pytest.mark.parametrize(
    ("policy", "rows", "columns"),
    [
        ({}, ("region[part]",), ("sex",)),
        ({"max_variables": 1}, ("region[part]",), ()),
        ({"forbidden": (("region", "sex"),)}, ("region[part]",), ("age",)),
        ({"forbidden": (("region",),)}, ("age",), ()),
    ],
)
def test_the_first_table_is_one_that_the_policy_allows(policy, rows, columns):
    dataset = once(Policy(**policy))
    assert (dataset.first.rows, dataset.first.columns) == (rows, columns)
    assert dataset.answer(dataset.first)


def test_a_policy_speaks_of_variables_on_offer():
    with pytest.raises(ParameterError, match="'height', which is not on offer"):
        once(Policy(forbidden=(("height", "sex"),)))


@pytest.mark.parametrize("groups", ["x", {"Young": "0-14"}, {"Young": []}, {"Young": [16]}])
def test_fixed_groups_are_labels_with_lists_of_codes(groups):
    with pytest.raises(ParameterError, match="fixed_groups of 'age' must be labels with lists"):
        once(Policy(groups="fixed", fixed_groups={"age": groups}))


def test_hiding_takes_the_value_away():
    cube = cube_of([[2, 3]])
    found = JudgedTable(replace(cube, values=cube.values * 1.5)).with_hidden(cube.values == 3)
    assert found.cube.values[1, 2] == 0.0
