import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.design import Axis, ProductDesign, SparseDesign
from discreet.design.support import CombinationMask, possible_cells
from discreet.errors import CodeError, DesignError, ParameterError, UnknownNameError
from tests.references import design_matrix
from tests.strategies import designs

COUNTRIES = dc.Hierarchy.from_dict(
    {"Europe": {"North": ["NO", "SE"], "South": ["ES", "PT", "IT"], "CH": []}}
)
UNION = dc.Hierarchy.from_dict({"World": {"EU": ["SE", "ES", "PT", "IT"], "nonEU": ["NO", "CH"]}})
SEX = Axis.flat("sex", ["f", "m"])


def random_vectors(design, seed):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 9, design.n_inner), rng.integers(0, 9, design.n_published)


@given(designs(), st.integers(0, 2**32 - 1))
@settings(max_examples=200, deadline=None)
def test_adjoint_identity_and_definition(design, seed):
    y, z = random_vectors(design, seed)
    X = design_matrix(design)
    np.testing.assert_array_equal(design.matrix().toarray(), X)
    np.testing.assert_array_equal(design.aggregate(y), X.T @ y)
    np.testing.assert_array_equal(design.adjoint(z), X @ z)
    assert design.aggregate(y) @ z == y @ design.adjoint(z)
    np.testing.assert_allclose(design.aggregate(y / 7), X.T @ (y / 7))
    np.testing.assert_array_equal(design.column_sizes, X.sum(axis=0))
    assert design.sensitivity() == X.sum(axis=1).max()


@given(designs())
@settings(max_examples=100, deadline=None)
def test_duplicates_are_the_equal_columns(design):
    X = design_matrix(design)
    expected = [
        next(j for j in range(k + 1) if (X[:, j] == X[:, k]).all()) for k in range(X.shape[1])
    ]
    np.testing.assert_array_equal(design.duplicates(), expected)


@given(designs())
@settings(max_examples=60, deadline=None)
def test_labels_and_positions_are_inverse(design):
    for k in range(design.n_published):
        assert design.position(design.cell(k)) == k
    for i in range(design.n_inner):
        assert design.inner_position(design.inner_cell(i)) == i


@given(designs(kinds=("sparse",)), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_the_public_design_holds_the_sparse_one(design, seed):
    y, _ = random_vectors(design, seed)
    embedding = design.public()
    there = embedding.design.aggregate(embedding.to_public_support(y))
    np.testing.assert_array_equal(there, embedding.to_public_cells(design.aggregate(y)))


@given(designs(), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_a_restricted_design_sums_the_chosen_cells(design, seed):
    y, _ = random_vectors(design, seed)
    chosen = np.flatnonzero(np.random.default_rng(seed).random(design.n_inner) < 0.5)
    if not len(chosen):
        return
    part, published = design.restricted(chosen)
    only = np.zeros_like(y)
    only[chosen] = y[chosen]
    expected = design.aggregate(only)
    np.testing.assert_array_equal(part.aggregate(y[chosen]), expected[published])
    assert not np.delete(expected, published).any()
    np.testing.assert_array_equal(part.orders, design.orders[published])


def test_every_level_of_a_hierarchy_is_published_once():
    design = ProductDesign([Axis.from_hierarchies("geo", [COUNTRIES])], "geo")
    codes = [design.cell(k).get("geo", "total") for k in range(design.n_published)]
    assert sorted(codes) == sorted(["North", "South", "CH", "NO", "SE", "ES", "PT", "IT", "total"])
    z = design.aggregate(np.array([1, 2, 3, 4, 5, 6]))
    assert z[design.position({"geo": "South"})] == 3 + 4 + 5
    assert z[design.position({})] == z[design.position({"geo": "Europe"})] == 21


def test_overlapping_hierarchies_stand_beside_each_other():
    axis = Axis.from_hierarchies("geo", [COUNTRIES, UNION])
    design = ProductDesign([axis, SEX], "geo*sex")
    y = np.arange(12)
    z = design.aggregate(y)
    eu_women = sum(
        int(y[design.inner_position({"geo": c, "sex": "f"})]) for c in ("SE", "ES", "PT", "IT")
    )
    assert z[design.position({"geo": "EU", "sex": "f"})] == eu_women
    assert design.position({"geo": "World"}) == design.position({"geo": "Europe"})
    assert len([k for k in range(design.n_published) if design.cell(k) == {"geo": "NO"}]) == 1


def test_a_partial_second_hierarchy_adds_its_root_as_a_group():
    nordic = dc.Hierarchy.from_dict({"Nordic": ["NO", "SE"]})
    axis = Axis.from_hierarchies("geo", [COUNTRIES, nordic])
    design = ProductDesign([axis], "geo")
    z = design.aggregate(np.array([1, 2, 3, 4, 5, 6]))
    assert z[design.position({"geo": "Nordic"})] == 3
    duplicate = design.duplicates()
    assert (
        duplicate[design.position({"geo": "North"})]
        == duplicate[design.position({"geo": "Nordic"})]
    )


def test_hierarchies_of_one_variable_must_agree():
    with pytest.raises(CodeError, match="'DK'"):
        Axis.from_hierarchies("geo", [COUNTRIES, dc.Hierarchy.from_dict({"N": ["NO", "DK"]})])
    clash = dc.Hierarchy.from_dict({"W": {"North": ["ES"], "rest": ["PT"]}})
    with pytest.raises(CodeError, match="'North'.*different"):
        Axis.from_hierarchies("geo", [COUNTRIES, clash])


def test_a_term_may_name_a_level():
    named = dc.Hierarchy(
        root="All", parents={"A": "All", "A1": "A", "A2": "A", "B": "All", "B1": "B"},
        level_names=("country", "county", "town"),
    )  # fmt: skip
    axes = [Axis.from_hierarchies("region", [named]), SEX]
    by_level = ProductDesign(axes, "county:sex")
    assert by_level.n_published == 4
    same = ProductDesign(axes, [("region[county]", "sex")])
    np.testing.assert_array_equal(by_level.matrix().toarray(), same.matrix().toarray())
    leaves = ProductDesign(axes, [("region[leaves]",)])
    assert [leaves.cell(k)["region"] for k in range(3)] == ["A1", "A2", "B1"]
    with pytest.raises(UnknownNameError, match="'town'"):
        ProductDesign(axes, "region[towm]")
    with pytest.raises(ParameterError, match="twice"):
        ProductDesign(axes, [("region", "county")])


def test_unnamed_levels_go_by_their_depth():
    tree = dc.Hierarchy.from_dict({"All": {"A": ["A1", "A2"], "B": ["B1"]}})
    axis = Axis.from_hierarchies("geo", [tree])
    assert axis.level("1").codes == ("A", "B")
    assert axis.level("2") is axis.level("leaves") is axis.finest


def test_leaves_of_unequal_depth_can_be_published_alone():
    design = ProductDesign([Axis.from_hierarchies("geo", [COUNTRIES])], [("geo[leaves]",)])
    np.testing.assert_array_equal(design.aggregate(np.arange(6)), np.arange(6))
    assert design.position({"geo": "CH"}) == 5


def test_the_sensitivity_of_linked_margins():
    design = dc.Design.product({"party": 3, "age": 3, "sex": 2}, margins="party*age + party*sex")
    assert design.sensitivity() == 6
    without_total = np.flatnonzero([bool(design.cell(k)) for k in range(design.n_published)])
    assert design.sensitivity(without_total) == 5
    assert dc.Design.product({"a": 2, "b": 2, "c": 2}, "a*b*c - 1").sensitivity() == 7


def test_a_general_matrix_is_a_design():
    X = np.array([[1, 0, 1], [1, 1, 1], [0, 1, 0]])
    design = dc.Design.from_matrix(X)
    y, z = np.array([1, 2, 3]), np.array([4, 5, 6])
    np.testing.assert_array_equal(design.aggregate(y), X.T @ y)
    np.testing.assert_array_equal(design.adjoint(z), X @ z)
    np.testing.assert_array_equal(design.duplicates(), [0, 1, 0])
    assert design.aggregate(np.array([0.5, 0, 0])).dtype == np.float64
    with pytest.raises(DesignError, match="only 0 and 1, found 2"):
        dc.Design.from_matrix([[2]])


@pytest.mark.parametrize("wrong", [np.ones(3), np.ones((2, 2)), np.ones(5)])
def test_arrays_of_the_wrong_shape_are_refused(wrong):
    design = dc.Design.product({"a": 2, "b": 2}, "a*b")
    with pytest.raises(DesignError, match="4 inner cells"):
        design.aggregate(wrong)


def test_codes_and_names_that_do_not_exist():
    design = dc.Design.product({"age": ["young", "old"], "sex": ["f", "m"]}, "age*sex")
    with pytest.raises(CodeError, match="young"):
        design.position({"age": "yuong"})
    with pytest.raises(UnknownNameError, match="sex"):
        design.position({"sexx": "f"})
    with pytest.raises(DesignError, match="not among"):
        dc.Design.product({"a": 2, "b": 2}, "a + b").position({"a": 1, "b": 1})
    with pytest.raises(UnknownNameError, match="age"):
        dc.Design.product({"age": 2}, "aeg")


def test_sparse_designs_refuse_repeated_and_unknown_cells():
    with pytest.raises(DesignError, match="twice"):
        dc.Design.sparse({"a": 2, "b": 2}, "a*b", [[0, 0], [1, 1]])
    with pytest.raises(DesignError, match="0..1"):
        dc.Design.sparse({"a": 2}, "a", [[2]])


def test_a_virtual_crossing_is_described_but_not_held():
    variables = {f"v{i}": 100 for i in range(8)}
    design = dc.Design.product(variables, dc.margins(list(variables), 1))
    assert design.n_inner == 100**8
    assert design.sensitivity() == 9
    assert design.column_sizes.max() == 100**8
    with pytest.raises(DesignError, match="support='occurring'"):
        design.adjoint(np.zeros(design.n_published))


def test_the_total_alone_is_a_design():
    design = ProductDesign([], [()])
    assert (design.n_inner, design.n_published, design.cell(0)) == (1, 1, {})
    assert design.position({}) == 0
    assert design.published_codes() == []


def test_whole_numbers_stay_exact_beyond_floating_point():
    design = dc.Design.sparse({"a": 2, "b": 2}, "a", [[0, 0, 1], [0, 1, 0]])
    y = np.array([2**60 + 1, 2, 3])
    assert design.aggregate(y)[design.position({})] == 2**60 + 6
    assert isinstance(design, SparseDesign)


def test_permuting_categories_permutes_the_result():
    rng = np.random.default_rng(5)
    y = rng.integers(0, 9, (3, 4))
    order = [2, 0, 1]
    plain = dc.Design.product({"a": "xyz", "b": 4}, "a*b")
    moved = dc.Design.product({"a": ["z", "x", "y"], "b": 4}, "a*b")
    z, z_moved = plain.aggregate(y.ravel()), moved.aggregate(y[order].ravel())
    for k in range(plain.n_published):
        assert z[k] == z_moved[moved.position(plain.cell(k))]


@pytest.mark.parametrize("seed", range(40))
def test_possible_cells_are_those_of_the_whole_crossing(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 5, rng.integers(0, 5)).tolist())
    axes = range(len(shape))
    sizes, masks = [rng.integers(1, 4, n) for n in shape], []
    crossing = np.ones(shape)
    for a in axes:
        crossing = crossing * sizes[a].reshape([-1 if a == b else 1 for b in axes])
    for _ in range(rng.integers(0, 4)):
        chosen = tuple(a for a in axes if rng.random() < 0.4)
        possible = np.asarray(rng.random([shape[a] for a in chosen]) < 0.6)
        masks.append(CombinationMask(chosen, possible))
        crossing = crossing * possible.reshape([shape[a] if a in chosen else 1 for a in axes])
    kept = tuple(rng.permutation(len(shape))[: rng.integers(0, len(shape) + 1)].tolist())
    found = possible_cells(sizes, masks, kept)
    np.testing.assert_array_equal(found, np.einsum(crossing, [*axes], list(kept)))


def test_a_sparse_cell_may_lie_outside_every_group_of_two_partial_hierarchies():
    axes = []
    for name in "ab":
        codes = [f"{name}{i}" for i in range(3)]
        whole = dc.Hierarchy.from_dict({"All": codes})
        partial = dc.Hierarchy.from_dict({f"{name}-any": {f"{name}-low": codes[:1]}})
        axes.append(Axis.from_hierarchies(name, [whole, partial]))
    design = SparseDesign(axes, "a:b", [[2], [2]])
    np.testing.assert_array_equal(design.matrix().toarray(), design_matrix(design))


def test_a_hierarchy_is_a_variable():
    tree = dc.Hierarchy.from_dict({"All": {"north": ["n1", "n2"], "south": ["s1"]}})
    design = dc.Design.product({"area": tree, "sex": 2}, "area*sex")
    axes = [dc.design.Axis.from_hierarchies("area", [tree]), dc.design.Axis.flat("sex", ["1", "2"])]
    same = dc.Design.product(axes, "area*sex")
    np.testing.assert_array_equal(design.matrix().toarray(), same.matrix().toarray())
    assert design.aggregate(np.arange(6))[design.position({"area": "north"})] == 6


@pytest.mark.parametrize("given", [2.5, True, None])
def test_what_is_no_variable_is_named(given):
    with pytest.raises(DesignError, match=r"'area' needs the number of its categories, .* got"):
        dc.Design.product({"area": given}, "area")
