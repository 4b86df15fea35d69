"""Fits whose inner cells are computed on demand: all of them, some of them, or into a file."""

import itertools
import tracemalloc

import numpy as np
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.design import ModelTable, inner
from discreet.design.fused.links import EXPONENTIAL
from discreet.errors import CodeError, DesignError, ParameterError
from discreet.solve.likelihood import log_linear
from discreet.solve.non_negative import non_negative

SIZES = {"a": 4, "b": 5, "c": 6}
PAIRS = list(itertools.combinations(SIZES, 2))
FITTERS = {"non-negative": dc.NonNegative, "log-linear": dc.LogLinear}


def regions():
    tree = dc.Hierarchy.from_dict({"All": {"north": ["n1", "n2"], "south": ["s1"]}})
    return [
        dc.design.Axis.from_hierarchies("region", [tree]),
        dc.design.Axis.flat("sex", ["f", "m"]),
    ]


@pytest.fixture
def never_stored(monkeypatch):
    monkeypatch.setattr(non_negative, "NEVER_STORED", 0)
    monkeypatch.setattr(log_linear, "NEVER_STORED", 0)
    monkeypatch.setattr(log_linear, "MOST_PUBLISHED", np.inf)


def fitted(name, design=None):
    design = dc.Design.product(SIZES, PAIRS) if design is None else design
    counts = np.random.default_rng(3).poisson(4.0, design.n_inner)
    return design, FITTERS[name]()(design, design.aggregate(counts)).require()


@pytest.mark.parametrize("name", FITTERS)
def test_inner_cells_follow_from_the_model_and_have_the_fitted_margins(never_stored, name):
    design, fit = fitted(name)
    assert isinstance(fit.cells, ModelTable)
    np.testing.assert_allclose(design.aggregate(fit.y), fit.z, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(fit.y, np.asarray(fit.cells))
    assert f"{design.n_inner} inner" in repr(fit)


@pytest.mark.parametrize("name", FITTERS)
def test_cells_are_chosen_by_codes_in_the_order_of_the_design(never_stored, name):
    _, fit = fitted(name)
    table = fit.y.reshape(4, 5, 6)
    np.testing.assert_allclose(fit.inner({"a": 2}), table[1].ravel(), rtol=1e-12)
    some = fit.inner({"a": ["1", "3"], "c": [6, 1]})
    np.testing.assert_allclose(some, table[[0, 2]][:, :, [0, 5]].ravel(), rtol=1e-12)
    np.testing.assert_allclose(fit.inner({}), fit.y, rtol=1e-12)
    np.testing.assert_allclose(fit.inner({"a": 1, "b": 2, "c": 3}), [table[0, 1, 2]], rtol=1e-12)


def test_a_code_of_a_coarser_level_stands_for_all_categories_under_it(never_stored):
    design = dc.Design.product(regions(), "region + sex")
    _, fit = fitted("log-linear", design)
    np.testing.assert_allclose(fit.inner({"region": "north"}), fit.y[:4], rtol=1e-12)


@pytest.mark.parametrize("support", ["stored", "sparse"])
def test_stored_cells_are_chosen_in_the_same_way(support):
    design = dc.Design.product({"a": 2, "b": 3}, "a + b")
    if support == "sparse":
        codes = [np.array([0, 0, 1, 1]), np.array([0, 2, 0, 1])]
        design = dc.Design.sparse({"a": 2, "b": 3}, "a + b", codes)
    fit = dc.LeastSquares()(design, design.aggregate(np.arange(1.0, design.n_inner + 1)))
    chosen = np.flatnonzero(design.inner_codes()[0] == 1)
    np.testing.assert_array_equal(fit.inner({"a": 2}), fit.y[chosen])


def test_unknown_codes_variables_and_designs_without_variables_are_refused(never_stored):
    _, fit = fitted("log-linear")
    with pytest.raises(CodeError, match="'9'"):
        fit.inner({"a": 9})
    with pytest.raises(dc.DiscreetError, match="'x'"):
        fit.inner({"x": 1})
    general = dc.LeastSquares()(dc.Design.from_matrix(np.eye(2, dtype=int)), np.ones(2))
    with pytest.raises(DesignError, match="no variables"):
        general.inner({})


@pytest.mark.parametrize("name", FITTERS)
def test_cells_are_written_slice_by_slice(never_stored, monkeypatch, tmp_path, name):
    monkeypatch.setattr(inner, "SLICE", 17)
    design, fit = fitted(name)
    monkeypatch.setattr(ModelTable, "y", property(lambda self: pytest.fail("stored the table")))
    frame = pq.read_table(fit.write(tmp_path / "inner.parquet")).to_pandas()
    y = np.zeros(design.n_inner)
    places = [design.inner_position({v: row[v] for v in SIZES}) for row in frame.to_dict("records")]
    y[places] = frame["value"]
    np.testing.assert_allclose(design.aggregate(y), fit.z, rtol=1e-9, atol=1e-9)
    assert (frame["value"] != 0).all()


def test_a_name_that_is_not_of_a_parquet_file_is_refused(never_stored, tmp_path):
    _, fit = fitted("log-linear")
    with pytest.raises(ParameterError, match="parquet"):
        fit.write(tmp_path / "inner.csv")


def test_a_release_does_not_compute_a_large_table(never_stored, monkeypatch):
    from discreet.release import fitting

    monkeypatch.setattr(fitting, "KEPT", 10)
    design = dc.Design.product(SIZES, PAIRS)
    table = dc.Table.from_inner(design, np.random.default_rng(3).poisson(4.0, design.n_inner))
    with monkeypatch.context() as patch:
        patch.setattr(ModelTable, "y", property(lambda self: pytest.fail("stored the table")))
        trial = table.simulate(dc.Laplace(epsilon=1.0), seed=1).fit(dc.NonNegative())
    assert isinstance(trial.y, ModelTable)
    np.testing.assert_allclose(design.aggregate(trial.y), trial.z, atol=1e-9)
    np.testing.assert_array_equal((2 * trial.y)[trial.y > 0], 2 * trial.y[np.asarray(trial.y) > 0])


def test_a_table_that_memory_does_not_hold_says_what_to_ask_for():
    sizes = dict.fromkeys("abc", 1000)
    design = dc.Design.product(sizes, "a + b + c")
    cells = ModelTable(design, EXPONENTIAL, np.zeros(design.n_published))
    with pytest.raises(DesignError, match=r"fit\.inner\(codes\)"):
        cells.y  # noqa: B018
    assert cells[[0, 999_999_999]].tolist() == [1.0, 1.0]


def test_kept_tables_are_computed_once_and_large_ones_anew(never_stored, monkeypatch):
    _, fit = fitted("log-linear")
    assert fit.y is fit.y
    monkeypatch.setattr(inner, "KEPT", 10)
    _, other = fitted("log-linear")
    assert other.y is not other.y


@pytest.mark.slow
@pytest.mark.parametrize("name", FITTERS)
def test_a_large_table_is_fitted_in_a_fraction_of_its_memory(name):
    design = dc.Design.product(dict.fromkeys("abcd", 40), list(itertools.combinations("abcd", 2)))
    z = design.aggregate(np.random.default_rng(3).poisson(4.0, design.n_inner).astype(float))
    fitter = FITTERS[name]()
    fitter(design, z)
    tracemalloc.start()
    fit = fitter(design, z).require()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(fit.cells, ModelTable)
    assert peak < 8 * design.n_inner / 2


@pytest.mark.parametrize("fitter", [dc.LeastSquares(), dc.NonNegative(), dc.LogLinear()])
def test_fitted_cells_cannot_be_written_to(fitter):
    design = dc.Design.product({"a": 3, "b": 4}, "a + b")
    fit = fitter(design, design.aggregate(np.arange(12.0)))
    with pytest.raises(ValueError, match="read-only"):
        fit.y[0] = 5.0
    own = fit.y.copy()
    own[0] = 5.0
    assert fit.y[0] != 5.0
