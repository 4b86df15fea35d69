"""Log-linear fits against plain proportional fitting, laws, and the papers' and peers' figures."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import discreet as dc
from discreet import registry
from discreet.design import Incidence
from discreet.errors import DataError, DesignError, NotConvergedError, ParameterError
from discreet.solve import Status
from discreet.solve.likelihood import log_linear
from discreet.solve.likelihood.log_linear import fit_stored
from discreet.solve.likelihood.stored import StoredPass
from tests.solve.slow import HARD, counts, dense, has_table, naive_ipf, some_weights
from tests.strategies import designs

ROOT = Path(__file__).parents[3]
OWN_TABLES = json.loads((ROOT / "tests" / "golden" / "ipf_own_tables.json").read_text())
CELL_KEY_FITS = ROOT.parent / "shared" / "reference" / "d_cellkeyfits_my_km2.json"
PARTY = {"party": ["A", "B", "C"], "age": ["young", "middle", "old"], "sex": ["male", "female"]}
SQUARE = {"row": 3, "col": 3}
EXAMPLE = np.array([3, 6, 2, 1, 4, 7, 5, 8, 27])


def outer(rows, columns):
    return np.outer(rows, columns).ravel() / np.sum(rows)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", HARD)
def test_consistent_margins_give_the_table_of_the_plain_iteration(name, seed):
    design = HARD[name]()
    z = design.aggregate(counts(design, seed))
    fit = dc.LogLinear()(design, z).require()
    np.testing.assert_allclose(fit.z, z, atol=1e-6)
    np.testing.assert_allclose(fit.y, naive_ipf(dense(design), z), atol=2e-3)


@pytest.mark.parametrize("name", HARD)
def test_cells_of_weight_zero_are_left_out(name):
    design = HARD[name]()
    used = some_weights(design, 5) > 0
    z = np.where(used, design.aggregate(counts(design, 5, mean=4)), np.nan)
    fit = dc.LogLinear(tolerance=1e-8)(design, z, weights=used).require()
    np.testing.assert_allclose(fit.y, naive_ipf(dense(design), z, used=used), atol=2e-3)


@pytest.mark.parametrize("name", HARD)
def test_raking_starts_from_unequal_weights_and_keeps_structural_zeros(name):
    design = HARD[name]()
    start = np.random.default_rng(3).gamma(1.0, size=design.n_inner)
    y = counts(design, 3, mean=4)
    start[y == 0] = 0
    fit = dc.LogLinear(tolerance=1e-8, start=start)(design, design.aggregate(y)).require()
    assert not fit.y[start == 0].any()
    expected = naive_ipf(dense(design), design.aggregate(y), start)
    np.testing.assert_allclose(fit.y, expected, atol=2e-3)


@given(designs(kinds=("product",)), st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=80)
def test_inconsistent_margins_are_found_and_the_rest_converges(design, seed, weighted):
    rng = np.random.default_rng(seed)
    y = rng.poisson(2, design.n_inner)
    z = np.maximum(design.aggregate(y) + rng.integers(-1, 2, design.n_published), 0)
    used = some_weights(design, seed % 1000) > 0 if weighted else np.ones(len(z), dtype=bool)
    fit = dc.LogLinear()(design, z, weights=used)
    assert np.isfinite(fit.y).all()
    assert (fit.y >= 0).all()
    feasible = has_table(dense(design), z, used)
    assert fit.status is (Status.converged if feasible else Status.inconsistent)
    if not feasible:
        u = fit.notes["conflict"]
        assert z @ np.where(used, u, 0) > 1e-9
        assert not u[~used].any()
        allowed = 1e-6 * np.abs(u).max()
        assert (dense(design) @ u).max() <= allowed


@pytest.mark.parametrize(
    ("z", "used"),
    [
        ([2, 5, 3, 8, 6, 3, 2], [1, 1, 1, 1, 1, 0, 1]),
        ([8, 0, 2, 7, 7, 0, 2], [1, 1, 0, 1, 1, 1, 0]),
    ],
    ids=["sums contradict", "only negative cells would do"],
)
@pytest.mark.parametrize("start", [None, [1, 1, 1, 1, 1, 0, 1, 1, 1]])
def test_margins_that_contradict_each_other_are_refuted_by_least_squares(z, used, start):
    design = dc.Design.product({"a": 3, "b": 3}, "a + b")
    fit = dc.LogLinear(start=start)(design, z, weights=used)
    assert fit.status is Status.inconsistent
    u = fit.notes["conflict"]
    assert np.array(z) @ u > 0
    possible = np.ones(9, bool) if start is None else np.array(start) > 0
    assert (design.adjoint(u)[possible] <= 1e-9).all()
    assert not u[np.array(used) == 0].any()


@pytest.fixture
def by_newton(monkeypatch):
    monkeypatch.setattr(log_linear, "NEVER_STORED", 0)
    monkeypatch.setattr(log_linear, "MOST_PUBLISHED", np.inf)


NEWTON = [name for name in HARD if HARD[name]().__class__.__name__ == "ProductDesign"]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", NEWTON)
def test_newton_on_fused_passes_gives_the_table_of_the_plain_iteration(by_newton, name, seed):
    design = HARD[name]()
    z = design.aggregate(counts(design, seed))
    fit = dc.LogLinear()(design, z).require()
    assert fit.notes.get("solver") == "Newton on the dual"
    np.testing.assert_allclose(fit.z, z, atol=1e-6)
    np.testing.assert_allclose(fit.y, naive_ipf(dense(design), z), atol=2e-3)
    assert not fit.y[design.adjoint((z == 0).astype(float)) > 0].any()
    model = np.exp(design.adjoint(fit.notes["multipliers"]))
    np.testing.assert_allclose(fit.y, model, rtol=1e-9)


@pytest.mark.parametrize("total", [1.0, 1e3, 6.7e7, 1.4e9])
def test_newton_resolves_margins_as_far_as_double_precision_does(by_newton, total):
    rng = np.random.default_rng(1)
    design = dc.Design.product({"a": 5, "b": 6, "c": 7}, dc.margins(["a", "b", "c"], 2))
    y = rng.gamma(0.7, size=design.n_inner)
    z = design.aggregate(total * y / y.sum())
    fit = dc.LogLinear()(design, z).require()
    assert fit.notes["solver"] == "Newton on the dual"
    assert np.abs(fit.z - z).max() <= max(1e-6, 1e-12 * total)


def test_margins_that_contradict_each_other_are_refuted_after_newton_too(by_newton):
    design = dc.Design.product({"a": 3, "b": 3}, "a + b")
    fit = dc.LogLinear()(design, [1, 2, 3, 2, 2, 3, 6])
    assert fit.status is Status.inconsistent
    assert np.array([1, 2, 3, 2, 2, 3, 6]) @ fit.notes["conflict"] > 0


def test_tables_with_nearly_all_cells_published_are_stored(monkeypatch):
    monkeypatch.setattr(log_linear, "NEVER_STORED", 0)
    design = dc.Design.product(SQUARE, "row*col")
    assert "open_cells" in dc.LogLinear()(design, design.aggregate(EXAMPLE)).require().notes


def test_margins_out_of_reach_are_inconsistent_not_missing():
    design = dc.Design.product(SQUARE, [("row",), ("col",)])
    fit = dc.LogLinear()(design, [3, 0, 0, 1, 1, 2])
    assert fit.status is Status.inconsistent
    assert np.isfinite(fit.y).all()
    with pytest.raises(NotConvergedError, match="contradict"):
        fit.require()
    blocked = dc.LogLinear(start=[0, 0, 0, 1, 1, 1, 1, 1, 1])(design, [1, 1, 1, 1, 1, 1])
    assert blocked.status is Status.inconsistent


@pytest.mark.parametrize("name", ["dependent margins", "tree linked", "general matrix"])
def test_the_certificate_is_the_form_of_the_model(name):
    design = HARD[name]()
    start = np.random.default_rng(4).gamma(2.0, size=design.n_inner)
    fit = dc.LogLinear(start=start)(design, design.aggregate(counts(design, 4))).require()
    model = start * np.exp(design.adjoint(fit.notes["multipliers"]))
    np.testing.assert_allclose(fit.y, model, atol=1e-9)
    assert fit.certificate.holds


def test_a_wrong_table_has_no_certificate():
    from discreet.solve.likelihood.log_linear import certify_log_linear

    design = dc.Design.product(SQUARE, [("row",), ("col",)])
    z = design.aggregate(EXAMPLE).astype(float)
    used, start, goal = np.ones(6, dtype=bool), np.ones(9), 1e-6
    fit = dc.LogLinear()(design, z)
    nu = fit.notes["multipliers"]
    assert certify_log_linear(design, z, used, fit.y, start, nu, goal).holds
    other = EXAMPLE.astype(float)  # has the margins, but not the form
    assert not certify_log_linear(design, z, used, other, start, nu, goal).holds
    assert not certify_log_linear(design, z, used, fit.y * 1.01, start, nu, goal).holds


@pytest.mark.parametrize("name", ["all pairs", "tree linked", "overlap", "general matrix"])
def test_laws_of_scale_fixed_point_and_order(name):
    design = HARD[name]()
    z = design.aggregate(counts(design, 6, mean=5)).astype(float)
    tight, counted = dc.LogLinear(tolerance=1e-9), design.row_sums() > 0
    fit = tight(design, z).require()
    seven = np.where(counted, 7 * fit.y, 1.0)
    np.testing.assert_allclose(tight(design, 7 * z).require().y, seven, atol=1e-6)
    np.testing.assert_allclose(tight(design, fit.z).require().y, fit.y, atol=1e-6)
    started = dc.LogLinear(tolerance=1e-9, start=fit.y)(design, z).require()
    np.testing.assert_allclose(started.y, fit.y, atol=1e-6)
    order = np.random.default_rng(1).permutation(design.n_published)
    shuffled = dc.Design.from_matrix(design.matrix()[:, order])
    np.testing.assert_allclose(tight(shuffled, z[order]).require().y, fit.y, atol=1e-6)


def test_a_fit_that_runs_out_of_steps_says_so():
    design = dc.Design.product({"a": 8, "b": 9, "c": 10}, dc.margins(["a", "b", "c"], 2))
    fit = dc.LogLinear(max_steps=3)(design, design.aggregate(counts(design, 9, mean=0.7)))
    assert fit.status is Status.max_steps
    assert not fit.certificate.holds


def test_whoever_asks_for_less_gets_a_log_linear_table_after_fewer_steps():
    design = HARD["all pairs"]()
    z = design.aggregate(counts(design, 1, mean=5)).astype(float)
    given_ = design, Incidence.of(design), np.ones(design.n_inner), z, np.ones(len(z), dtype=bool)
    full = fit_stored(dc.LogLinear(tolerance=1e-9), *given_)
    asked = []
    rough = fit_stored(dc.LogLinear(tolerance=1e-2), *given_, lambda mu: asked.append(mu) or True)
    assert rough.iterations < full.iterations
    np.testing.assert_allclose(rough.z, asked[-1])
    possible = rough.y > 0
    model = np.exp(design.adjoint(rough.notes["multipliers"]))
    np.testing.assert_allclose(rough.y[possible], model[possible], rtol=1e-9)
    exacting = fit_stored(
        dc.LogLinear(tolerance=1.0), *given_, lambda mu: np.allclose(mu, z, rtol=0, atol=1e-7)
    )
    np.testing.assert_allclose(exacting.y, full.y, atol=1e-5)


def test_stored_passes_are_those_of_the_dense_matrix():
    design = HARD["tree linked"]()
    members = Incidence.of(design)
    groups = members.using(np.ones(design.n_published, bool), np.zeros(len(members.nested), bool))
    X, rng = dense(design), np.random.default_rng(1)
    start = rng.gamma(1.0, size=design.n_inner)
    nu, direction = rng.normal(size=(2, design.n_published))
    passes, y = StoredPass(groups, start), start * np.exp(X @ nu)
    found = passes.table(nu)
    np.testing.assert_allclose(found.margins, X.T @ y)
    assert found.potential == pytest.approx(y.sum())
    np.testing.assert_allclose(passes.slope(nu), X.T @ y)
    np.testing.assert_allclose(passes.change(nu, direction), X.T @ (y * (X @ direction)))


def test_one_preparation_serves_many_right_hand_sides():
    design = HARD["tree linked"]()
    prepared = dc.LogLinear().prepare(design)
    for seed in range(4):
        z = design.aggregate(counts(design, seed))
        np.testing.assert_array_equal(prepared(z).y, dc.LogLinear()(design, z).y)


def test_zero_margins_and_lone_cells_are_settled_beforehand():
    design = dc.Design.product(SQUARE, [("row",), ("col",)])
    fit = dc.LogLinear()(design, [0, 5, 0, 2, 0, 3]).require()
    assert fit.notes["open_cells"] == 0
    np.testing.assert_allclose(fit.y, [0, 0, 0, 2, 0, 3, 0, 0, 0])


def test_the_log_linear_tables_of_langsrud():
    """Tables 4 to 7 of Langsrud (2019b), the values in parentheses, to three decimals."""
    design = dc.Design.product(SQUARE, [("row",), ("col",), ()])
    four = dc.LogLinear()(design, design.aggregate(EXAMPLE)).require()
    printed = [1.571, 3.143, 6.286, 1.714, 3.429, 6.857, 5.714, 11.429, 22.857]
    np.testing.assert_allclose(four.y, printed, atol=5e-4)
    non_negative = [0, 1.3, 239 / 30, 0, 2.3, 269 / 30, 149 / 15, 40 / 3, 20]  # table 5, in full
    five = dc.LogLinear()(design, design.aggregate(np.array(non_negative))).require()
    printed = [1.443, 2.459, 5.364, 1.754, 2.990, 6.522, 6.736, 11.484, 25.047]
    np.testing.assert_allclose(five.y, printed, atol=5e-4)


@pytest.mark.parametrize(
    ("inner", "printed"),
    [
        (
            [0, 6.856, 10.056, 0, 4.249, 7.449, 0.415, 17.005, 20.205],
            [0.106, 7.178, 9.629, 0.073, 4.965, 6.660, 0.236, 15.968, 21.422],
        ),
        (
            [0, 3.200, 7.800, 0, 3.700, 8.300, 4.168, 15.616, 20.216],
            [0.728, 3.931, 6.341, 0.794, 4.289, 6.917, 2.646, 14.296, 23.058],
        ),
    ],
    ids=["table 6", "table 7"],
)
def test_the_tables_of_langsrud_from_laplace_noise(inner, printed):
    """Tables 6 and 7 of Langsrud (2019b); the input is rounded, so the last digit may differ."""
    design = dc.Design.product(SQUARE, [("row",), ("col",)])
    fit = dc.LogLinear()(design, design.aggregate(np.array(inner))).require()
    np.testing.assert_allclose(fit.y, printed, atol=1.5e-3)


def party_values(design, table):
    """Published values from rows of young, middle, old, male, female, total."""
    z = np.empty(design.n_published)
    for party, row in table.items():
        for (variable, code), value in zip(COLUMNS, row, strict=True):
            cell = {} if party == "Total" else {"party": party}
            z[design.position(cell | ({variable: code} if variable else {}))] = value
    return z


COLUMNS = [("age", a) for a in PARTY["age"]] + [("sex", s) for s in PARTY["sex"]] + [("", "")]
TABLE_4 = {
    "A": [0, 12, 5, 12, 5, 17],
    "B": [3, 8, 0, 3, 8, 11],
    "C": [5, 15, 9, 13, 16, 29],
    "Total": [8, 35, 14, 28, 29, 57],
}
TABLE_6 = {
    "A": [0, 14.96875, 3.96875, 13.59375, 5.34375, 18.9375],
    "B": [0, 8.84375, 1.84375, 4.96875, 5.71875, 10.6875],
    "C": [128 / 22, 284.0625 / 22, 196.0625 / 22, 240.8125 / 22, 367.3125 / 22, 608.125 / 22],
    "Total": [128 / 22, 807.9375 / 22, 323.9375 / 22, 649.1875 / 22, 610.6875 / 22, 1259.875 / 22],
}
TABLE_7 = [
    [0, 0, 10.7449, 4.2239, 2.8489, 1.1199],
    [0, 0, 4.1116, 4.7322, 0.8572, 0.9866],
    [2.3040, 3.5142, 5.1130, 7.7989, 3.5291, 5.3829],
]
TABLE_8 = [
    [0, 0, 8.4706, 3.5294, 3.5294, 1.4706],
    [0.8182, 2.1818, 2.1818, 5.8182, 0, 0],
    [2.2414, 2.7586, 6.7241, 8.2759, 4.0345, 4.9655],
]


@pytest.mark.parametrize(
    ("margins", "printed"), [(TABLE_6, TABLE_7), (TABLE_4, TABLE_8)], ids=["table 7", "table 8"]
)
def test_the_expected_frequencies_of_langsrud_and_lupp(margins, printed):
    """Tables 7 and 8 of Langsrud & Lupp (2021), to four decimals."""
    design = dc.Design.product(PARTY, "party*age + party*sex")
    fit = dc.LogLinear()(design, party_values(design, margins)).require()
    np.testing.assert_allclose(fit.y.reshape(3, 6), printed, atol=6e-5)
    np.testing.assert_allclose(fit.y, naive_ipf(dense(design), fit.z), atol=1e-6)


def test_the_suppressed_four_by_four_table():
    """The 4×4 example of Langsrud (2019a): seven suppressed cells, fitted from the others."""
    table = np.array([[3, 11, 32, 30], [1, 9, 13, 8], [12, 22, 2, 2], [18, 19, 16, 3]])
    hidden = [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 2), (2, 3), (3, 0), (3, 3)]
    design = dc.Design.product({"row": 4, "col": 4}, "row*col")
    weights = np.ones(design.n_published)
    weights[[design.position({"row": r + 1, "col": c + 1}) for r, c in hidden]] = 0
    fit = dc.LogLinear()(design, design.aggregate(table.ravel()), weights=weights).require()
    shown = np.ones((4, 4), dtype=bool)
    shown[tuple(np.transpose(hidden))] = False
    fitted = fit.y.reshape(4, 4)
    np.testing.assert_allclose(fitted[shown], table[shown], atol=1e-6)
    assert (fitted[~shown] > 0).all()
    known = design.aggregate(table.ravel())
    np.testing.assert_allclose(fit.y, naive_ipf(dense(design), known, used=weights > 0), atol=1e-4)


@pytest.mark.parametrize("source", ["fit", "fit_of_repaired"])
@pytest.mark.parametrize("name", [n for n in OWN_TABLES if n != "birth"])
def test_the_reference_tables_of_the_field(name, source):
    t = OWN_TABLES[name]
    ones = np.ones(len(t["inner"]), dtype=int)
    shape = (t["n_inner"], t["n_published"])
    design = dc.Design.from_matrix(csr_array((ones, (t["inner"], t["published"])), shape=shape))
    z = t["z"] if source == "fit" else t["repaired"]
    fit = dc.LogLinear(tolerance=1e-9)(design, z).require()
    np.testing.assert_allclose(fit.y, t[source], atol=1e-8)


@pytest.mark.skipif(not CELL_KEY_FITS.exists(), reason="the peers' examples are not here")
def test_the_fits_of_the_cell_key_example():
    given_, squares = json.loads(CELL_KEY_FITS.read_text()), ("Square1000m", "Square250m")
    X = np.zeros((len(given_["inner"]), len(given_["publish"])), dtype=int)
    for k, cell in enumerate(given_["publish"]):
        for i, inner in enumerate(given_["inner"]):
            codes = {**{v: [inner[v]] for v in inner}, "Square250m": [inner[s] for s in squares]}
            names = ("Sex", "Age", "Municipality", "Square250m")
            X[i, k] = all(cell[v] in ("Total", *codes[v]) for v in names)
    design = dc.Design.from_matrix(X)
    z = np.array([cell["lsFit"] for cell in given_["publish"]])
    fit = dc.LogLinear(tolerance=1e-8)(design, z).require()
    np.testing.assert_allclose(fit.y, [i["ipFit"] for i in given_["inner"]], atol=1e-4)


def test_independence_has_a_closed_form():
    design = dc.Design.product({"a": 30, "b": 40}, [("a",), ("b",)])
    rng = np.random.default_rng(2)
    rows, columns = rng.integers(1, 99, 30).astype(float), rng.integers(1, 99, 40).astype(float)
    columns *= rows.sum() / columns.sum()
    fit = dc.LogLinear()(design, np.concatenate([rows, columns])).require()
    np.testing.assert_allclose(fit.y, outer(rows, columns), atol=1e-8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance": 0}, "tolerance must be positive"),
        ({"tolerance": float("nan")}, "tolerance must be positive"),
        ({"max_steps": 0}, "max_steps must be a whole number of at least 1"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        dc.LogLinear(**options)


def test_wrong_input_is_refused():
    design = dc.Design.product(SQUARE, [("row",), ("col",)])
    with pytest.raises(DesignError, match="6 published cells"):
        dc.LogLinear()(design, [1, 2])
    with pytest.raises(DataError, match="not negative"):
        dc.LogLinear()(design, [1, 2, -1, 1, 1, 0])
    with pytest.raises(DataError, match="has no value"):
        dc.LogLinear()(design, [1, 2, np.nan, 1, 1, 1])
    with pytest.raises(ParameterError, match="starting table needs 9"):
        dc.LogLinear(start=[1, 2])(design, np.ones(6))
    with pytest.raises(ParameterError, match="negative or missing"):
        dc.LogLinear(start=np.full(9, -1.0))(design, np.ones(6))


def test_it_is_in_the_registry():
    fitter = registry.build("fitter", "log-linear", {"tolerance": 1e-3})
    assert fitter.name == "log-linear"
    assert fitter.tolerance == 1e-3
