"""Passes against the table itself, the text in plain Python and as machine code."""

import itertools

import numba
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.design import ModelTable
from discreet.design.fused import passes
from discreet.design.fused.faces import Faces
from discreet.design.fused.links import LINKS, POSITIVE, CellFormula
from discreet.design.fused.source import PassSource
from discreet.design.inner import chosen_cells
from discreet.errors import DesignError, ParameterError
from tests.strategies import designs

TABLES = ("start", "variance")
STORED = {"nothing": (), "start": ("start",), "variance": ("variance",), "both": TABLES}


def interpreted(source):
    """The text of a pass, run by Python itself."""
    space = {}
    exec(source.text, space)
    return space["run"]


def tables(design, link, stored, seed=7):
    """A starting table and variances, some of them zero; an exponential has a start alone."""
    rng = np.random.default_rng(seed)
    variance = rng.gamma(2.0, size=design.n_inner) * (rng.random(design.n_inner) < 0.8)
    start = rng.gamma(1.0, size=design.n_inner) * (variance > 0)
    known = {"start": start, "variance": variance}
    return {name: known[name] for name in stored if (link, name) != ("exponential", "variance")}


def slow(link, t, start=None, variance=None):
    """Cells, their derivatives by the sum `t`, and the integrals of the cells over it."""
    if link == "exponential":
        y = np.exp(t) * (1.0 if start is None else start)
        return y, y, y
    s, q = (np.zeros_like(t) if start is None else start), np.ones_like(t)
    q = q if variance is None else variance
    y = s + q * t
    y = np.maximum(y, 0.0) if link == "positive" else y
    integral = np.divide(y**2, 2 * q, out=np.zeros_like(t), where=q > 0)
    return y, np.where((y > 0) | (link == "linear"), q, 0.0), integral


def check(design, link, nu, direction, given=None, **options):
    given = given or {}
    fused = design.fused(link, **given, **options)
    y, slope, potential = slow(link, design.adjoint(nu), **given)
    found = fused.table(nu)
    np.testing.assert_allclose(found.margins, design.aggregate(y), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.potential, potential.sum(), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(fused.slope(nu), design.aggregate(slope), rtol=1e-12, atol=1e-12)
    gradient = design.adjoint(direction)
    np.testing.assert_allclose(
        fused.change(nu, direction), design.aggregate(slope * gradient), rtol=1e-11, atol=1e-11
    )
    moving = np.where(y > 0, np.abs(gradient), gradient) if link != "linear" else np.abs(gradient)
    if link == "exponential":
        moving = np.where(y > 0, moving, 0.0)
    moving = np.where(given.get("variance", 1.0) == 0, 0.0, moving)
    top, place = fused.steepest_cell(nu, direction)
    assert top == pytest.approx(moving.max(initial=0.0), rel=1e-11, abs=1e-11)
    if top > 0:
        cell = design.inner_at(np.ravel_multi_index(place, design.shape) if place else 0)
        assert moving[cell] == pytest.approx(top, rel=1e-11)


@st.composite
def masked_designs(draw):
    """A design whose zeros are a product of masks, each over one to three variables."""
    full = draw(designs(kinds=("product",)))
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    possible, n = np.ones(full.shape, dtype=bool), len(full.axes)
    for _ in range(draw(st.integers(1, 3))):
        axes = rng.choice(n, size=min(n, int(rng.integers(1, 4))), replace=False)
        size = [full.shape[a] if a in axes else 1 for a in range(n)]
        possible &= rng.random(size) < 0.8
    possible[(0,) * n] = True
    return dc.Design.sparse(full.axes, [*full.terms], np.nonzero(possible))


@pytest.mark.parametrize("link", list(LINKS))
@settings(max_examples=60, deadline=None)
@given(
    design=designs(kinds=("product",)) | masked_designs(),
    seed=st.integers(0, 2**20),
    row=st.integers(1, 4),
    stored=st.sampled_from(sorted(STORED)),
)
def test_the_text_of_a_pass_gives_the_margins_of_the_table(link, design, seed, row, stored):
    assume(design.has_passes)
    rng = np.random.default_rng(seed)
    nu, direction = rng.standard_normal((2, design.n_published))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes, "compile_pass", interpreted)
        patch.setattr(passes, "SHORTEST_ROW", row)
        patch.setattr(passes, "LARGEST_ROWS", 0)
        patch.setattr(passes, "WORTH_A_THREAD", 4)
        check(design, link, nu, direction, tables(design, link, STORED[stored]), threads=1)


SIZES = {"age": 4, "status": 3, "region": 5, "branch": 6}
RULES = [{"age": 1, "status": [2, 3]}, {"region": 1, "branch": 6}, {"elsewhere": 1}]


def children_are_not_married(margins):
    """Children are not married, and nobody of the first region works in the last branch."""
    possible = np.ones(tuple(SIZES.values()), dtype=bool)
    possible[0, 1:] = False
    possible[:, :, 0, 5] = False
    return dc.Design.sparse(SIZES, margins, np.nonzero(possible))


@pytest.mark.parametrize("margins", ["age*region + status*branch", "age*status*region", [()]])
def test_declared_zeros_are_the_listed_cells(margins):
    """Published cells, sizes and sums follow from the masks as from the list of cells."""
    declared, listed = dc.Design.product(SIZES, margins, RULES), children_are_not_married(margins)
    assert declared.support == "declared"
    assert (declared.n_inner, declared.n_published) == (listed.n_inner, listed.n_published)
    np.testing.assert_array_equal(declared.column_sizes, listed.column_sizes)
    y = np.random.default_rng(1).integers(0, 9, declared.n_inner)
    np.testing.assert_array_equal(declared.aggregate(y), listed.aggregate(y))
    np.testing.assert_array_equal(declared.inner_codes(), listed.inner_codes())
    fewer = declared.with_margins("age*status")
    np.testing.assert_array_equal(
        fewer.aggregate(y), listed.with_margins("age*status").aggregate(y)
    )


def test_zeros_on_groups_of_a_hierarchy_are_counted_too():
    tree = dc.Hierarchy.from_dict({"All": {"north": ["n1", "n2"], "south": ["s1"]}})
    axes = [
        dc.design.Axis.from_hierarchies("place", [tree]),
        dc.design.Axis.flat("job", ["a", "b", "c"]),
    ]
    declared = dc.Design.product(axes, "place*job", [{"place": "north", "job": ["a"]}])
    assert declared.n_inner == 7
    assert declared.column_sizes.sum() == len(declared.blocks) * 7
    for cell in ({"place": "north", "job": "a"}, {"place": "n1", "job": "a"}):
        with pytest.raises(DesignError, match="not among the published"):
            declared.position(cell)


def test_a_crossing_too_large_to_list_has_masks_and_fits():
    """Half a billion cells: nothing of their number is stored."""
    sizes = {"age": 100, "status": 4, "place": 5_000, "job": 500}
    zeros = [{"age": list(range(1, 16)), "status": [2, 3, 4]}]
    design = dc.Design.product(sizes, "age*status + status*place", zeros)
    assert design.n_inner == (85 * 4 + 15) * 2_500_000
    assert design.n_published == 85 * 4 + 15 + 4 * 5_000 + 100 + 4 + 5_000 + 1
    with pytest.raises(DesignError, match="held in memory"):
        design.inner_codes()


def test_the_masks_of_declared_zeros_are_found():
    design = children_are_not_married("age*region + status*branch")
    assert {mask.axes for mask in design.masks} == {(0, 1), (2, 3)}
    assert int(design.masks[0].possible.sum()) == 10
    faces = Faces.of(design)
    assert len(faces.summed_sets) == 2
    assert len(faces.sets) == 4


def test_compiled_passes_leave_out_structural_zeros():
    design = children_are_not_married("age*region + status*branch")
    nu, direction = np.random.default_rng(3).standard_normal((2, design.n_published))
    check(design, "positive", nu, direction)


def test_cells_that_are_no_product_of_masks_have_no_passes():
    cells = np.ones((3, 3, 3, 3), dtype=bool)
    cells[1, 1, 1, 1] = False
    design = dc.Design.sparse(dict.fromkeys("abcd", 3), "a*b + c*d", np.nonzero(cells))
    assert not design.has_passes
    with pytest.raises(DesignError, match="product of small masks"):
        design.fused("positive")


def test_a_support_read_from_records_is_not_searched_for_masks():
    design = children_are_not_married("age*region")
    occurring = design.restricted(np.arange(design.n_inner), occurring=True).design
    assert not occurring.has_passes


def test_cells_of_a_model_leave_out_structural_zeros():
    design = children_are_not_married("age*region + status*branch")
    nu = np.random.default_rng(3).standard_normal(design.n_published)
    table = ModelTable(design, LINKS["exponential"], nu)
    y = np.exp(design.adjoint(nu))
    np.testing.assert_allclose(table[np.arange(design.n_inner)], y)
    children = chosen_cells(design, table, {"age": "1"})
    np.testing.assert_allclose(children, chosen_cells(design, y, {"age": "1"}))
    assert len(children) == 29


@pytest.mark.parametrize("stored", ["nothing", "both"])
@pytest.mark.parametrize("link", list(LINKS))
def test_compiled_passes_agree_with_the_table(link, stored):
    sizes = {"a": 3, "b": 7, "c": 5, "d": 4}
    design = dc.Design.product(sizes, margins=list(itertools.combinations(sizes, 2)))
    rng = np.random.default_rng(3)
    nu, direction = rng.standard_normal((2, design.n_published))
    check(design, link, nu, direction, tables(design, link, STORED[stored]))


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("link", list(LINKS))
def test_the_change_of_a_table_is_the_derivative_of_its_margins(monkeypatch, link, stored):
    """And its margins are that of the potential."""
    design = dc.Design.product({"a": 3, "b": 4, "c": 5}, "a*b + b*c")
    nu, by = np.random.default_rng(4).standard_normal((2, design.n_published))
    monkeypatch.setattr(passes, "compile_pass", interpreted)
    fused = design.fused(link, **tables(design, link, STORED[stored]))
    step = 1e-6
    below, above = fused.table(nu - step * by), fused.table(nu + step * by)
    slope = (above.potential - below.potential) / (2 * step)
    assert slope == pytest.approx(fused.table(nu).margins @ by, rel=1e-6)
    changed = (above.margins - below.margins) / (2 * step)
    np.testing.assert_allclose(fused.change(nu, by), changed, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("link", "stored"), [("positive", "nothing"), ("positive", "both"), ("exponential", "start")]
)
def test_the_number_of_threads_changes_no_bit(monkeypatch, link, stored):
    monkeypatch.setattr(passes, "WORTH_A_THREAD", 50)
    sizes = {"a": 3, "b": 7, "c": 5, "d": 40}
    design = dc.Design.product(sizes, margins=list(itertools.combinations(sizes, 2)))
    nu, by = np.random.default_rng(3).standard_normal((2, design.n_published))
    given = tables(design, link, STORED[stored])
    one, *others = (design.fused(link, threads=n, **given) for n in (1, 2, 3, 7))
    for many in others:
        assert np.array_equal(one.table(nu).margins, many.table(nu).margins)
        assert one.table(nu).potential == many.table(nu).potential
        assert np.array_equal(one.change(nu, by), many.change(nu, by))
        assert one.steepest_cell(nu, by) == many.steepest_cell(nu, by)


def test_threads_are_as_many_as_the_processors_of_the_process(monkeypatch):
    design = dc.Design.product({"a": 2}, "a")
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 5)
    assert design.fused("positive").threads == 5


def test_a_table_given_as_start_and_variance_is_laid_out_once():
    design = dc.Design.product({"a": 40, "b": 3}, "a + b")
    table = np.arange(120.0)
    fused = design.fused("positive", start=table, variance=table)
    assert fused._tables[0] is fused._tables[1]
    np.testing.assert_array_equal(fused._tables[0], table.reshape(40, 3).T.ravel())


def test_tables_that_a_link_has_no_use_for_are_refused():
    design = dc.Design.product({"a": 2}, "a")
    with pytest.raises(ParameterError, match="has no variance, only a start"):
        design.fused("exponential", variance=np.ones(2))
    with pytest.raises(ParameterError, match="variance zero cannot move"):
        design.fused("positive", start=np.ones(2), variance=np.array([0.0, 1.0]))


@settings(max_examples=60, deadline=None)
@given(design=designs(kinds=("product",)), seed=st.integers(0, 2**20))
def test_sums_over_faces_are_the_adjoint_of_spreading(design, seed):
    rng = np.random.default_rng(seed)
    faces = Faces.of(design)
    values, on_faces = rng.standard_normal(design.n_published), rng.standard_normal(faces.n)
    np.testing.assert_allclose(
        faces.spread(values) @ on_faces, values @ faces.to_published(on_faces), atol=1e-9
    )


def test_faces_are_the_largest_margins():
    design = dc.Design.product({"a": 2, "b": 3, "c": 4}, margins="a*b + b*c")
    faces = Faces.of(design)
    assert {tuple(design.axes[faces.order[p]].name for p in face) for face in faces.sets} == {
        ("a", "b"),
        ("b", "c"),
    }


def test_the_text_does_not_depend_on_sizes():
    designs = [
        dc.Design.product(sizes, margins="a*b + b*c")
        for sizes in ({"a": 2, "b": 3, "c": 4}, {"a": 5, "b": 6, "c": 70})
    ]
    formula = CellFormula(POSITIVE, "table")
    texts = {PassSource(3, Faces.of(design).sets, 2, formula).text for design in designs}
    assert len(texts) == 1


def test_an_unknown_link_is_refused():
    design = dc.Design.product({"a": 2}, margins="a")
    with pytest.raises(ParameterError, match="positive, exponential, linear"):
        design.fused("logit")
