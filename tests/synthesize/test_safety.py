"""Records that would come out as they went in, or mirrored, are found and refused or merged."""

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.errors import PUBLIC_TEXT
from discreet.synthesis import UnsafeRowsError
from discreet.synthesis.decompose import fit
from discreet.synthesis.formula import parse
from discreet.synthesis.model import build, read_columns
from discreet.synthesis.result import read_records
from discreet.synthesis.safety import unsafe_sets
from tests.synthesize.people import lonely, people


def found_in(frame, formula):
    parsed = parse(formula)
    records = read_records(frame, secret=None, name=None, edition=None, ledger=None)
    model = build(parsed, *read_columns(records, parsed, "refuse"))
    sets = unsafe_sets(model, fit(model.Y, model.X).basis)
    return {tuple(each.rows.tolist()) for each in sets}, model.X


def freedom(X, rows):
    """Residual degrees of freedom of some rows by their definition, slow and obvious."""
    others = np.delete(X, rows, axis=0)
    lost = np.linalg.matrix_rank(X) - np.linalg.matrix_rank(others)
    return len(rows) - lost, lost


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_cell_needs_two_residual_degrees_of_freedom(size):
    frame = lonely(size=size)
    found, _ = found_in(frame, "income ~ age + region")
    assert found == (set() if size == 3 else {tuple(range(size))})


def test_slopes_of_a_cell_count_as_well():
    """Three persons with a mean and a slope of their own have one degree of freedom left."""
    assert found_in(lonely(size=3), "income ~ age*region")[0] == {(0, 1, 2)}
    assert found_in(lonely(size=4), "income ~ age*region")[0] == set()


def test_cells_agree_with_the_definition_by_ranks():
    rng = np.random.default_rng(5)
    frame = people(40, 3)
    frame["region"] = rng.choice(
        list("abcdefgh"), 40, p=[0.4, 0.3, 0.1, 0.08, 0.05, 0.04, 0.02, 0.01]
    )
    found, X = found_in(frame, "income ~ age + region*sex")
    expected = set()
    for names in (["region"], ["region", "sex"], ["sex"]):
        for rows in frame.groupby(names).indices.values():
            left, lost = freedom(X, rows)
            if lost and left < 2:
                expected.add(tuple(sorted(rows.tolist())))
    assert expected
    assert found == expected


def test_a_number_that_differs_for_two_people_only_is_found():
    frame = people(50)
    frame["boats"] = 0
    frame.loc[[7, 11], "boats"] = [1, 3]
    assert found_in(frame, "income ~ boats")[0] == {(7, 11)}
    assert found_in(frame.assign(boats=frame["age"]), "income ~ boats")[0] == set()


METHODS = {
    "ipso": {},
    "residual-correlation": {"correlations": 0.5},
    "score-correlation": {"correlations": 0.5},
    "from-residuals": {"share": 0.5},
    "romm": {"lambda": 0.5},
    "hybrid": {"clusters": "sex"},
}


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_refuses_small_cells(method, size):
    formula = "income ~ shared(region)" if method == "hybrid" else "income ~ region"
    with pytest.raises(UnsafeRowsError, match="fewer than 2 residual degrees of freedom") as error:
        dc.synthesize(lonely(size=size), formula, method, **METHODS[method])
    assert error.value.rows.tolist() == list(range(size))
    assert error.value.public() == PUBLIC_TEXT


@pytest.mark.parametrize("size", [1, 2])
def test_small_clusters_are_refused(size):
    with pytest.raises(UnsafeRowsError, match="clusters") as error:
        dc.synthesize(lonely(size=size), "income ~ 1", "hybrid", clusters="region")
    assert error.value.rows.tolist() == list(range(size))


def test_a_record_that_alone_has_an_effect_in_its_cluster_is_refused():
    """Its residual lies in the one direction that is left over all clusters: ± what it was."""
    frame = people(40).assign(boat=0.0)
    women = np.flatnonzero(frame["sex"] == "f")
    men = np.flatnonzero(frame["sex"] == "m")
    frame.loc[[women[0], *men[:8]], "boat"] = 1.0
    model = "income ~ local(1) + shared(boat)"
    with pytest.raises(UnsafeRowsError, match="cells of boat within") as error:
        dc.synthesize(frame, model, "hybrid", clusters="sex")
    assert error.value.rows.tolist() == [women[0]]
    frame.loc[women[:5], "boat"] = 1.0
    dc.synthesize(frame, model, "hybrid", clusters="sex")


@pytest.mark.parametrize("term", ["local(boat)", "groups(boat)", "pieces(boat)", "shared(boat)"])
@pytest.mark.parametrize("kind", [float, str])
def test_two_records_with_an_effect_in_their_part_are_refused(term, kind):
    """Their sum would be kept, so that one of the two knows the other."""
    frame = people(80).assign(boat=0)
    women, men = (np.flatnonzero(frame["sex"] == s) for s in "fm")
    frame.loc[[*women[:2], *men[:8]], "boat"] = 1
    frame["boat"] = frame["boat"].astype(kind)
    labels = {"clusters": "sex"}
    if term.startswith("groups"):
        frame["cluster"] = frame["sex"] + (frame["age"] > 50).astype(str)
        labels = {"clusters": "cluster", "groups": "sex"}
    if term.startswith("pieces"):
        frame["all"] = "all"
        labels = {"clusters": "all", "pieces": "sex"}
    with pytest.raises(UnsafeRowsError, match="cells of boat within") as error:
        dc.synthesize(frame, f"income ~ {term}", "hybrid", **labels)
    assert error.value.rows.tolist() == women[:2].tolist()
    frame.loc[women[:6], "boat"] = kind(1)
    dc.synthesize(frame, f"income ~ {term}", "hybrid", **labels)


def test_small_pieces_of_clusters_are_refused():
    frame = people(40)
    frame["piece"] = ["a"] * 38 + ["b"] * 2
    frame.loc[[38, 39], "region"] = "north"
    with pytest.raises(UnsafeRowsError, match="pieces"):
        dc.synthesize(frame, "income ~ 1", "hybrid", clusters="region", pieces="piece")


@pytest.mark.parametrize("size", [1, 2])
def test_small_cells_are_merged_on_request(size):
    frame = lonely(size=size)
    made = dc.synthesize(frame, "income ~ age + region", merge="pool")
    assert made.statement.says("merged-cells")
    assert (np.abs(made.frame["income"] - frame["income"])[:size] > 1e-3).all()
    merged = dc.synthesis.Preserved.of(frame, made)
    assert all(f.verdict == "equal" for f in merged.figures if f.kind == "coefficient")
    sums = [f.loc[f["region"] == "island", "income"].sum() for f in (frame, made.frame)]
    assert abs(sums[0] - sums[1]) > 1e-3


def test_small_clusters_are_merged_on_request():
    frame = lonely(size=2)
    made = dc.synthesize(frame, "income ~ 1", "hybrid", clusters="region", merge="pool")
    sums = [f.groupby("region")["income"].sum() for f in (frame, made.frame)]
    assert (abs(sums[0] - sums[1]) > 1e-3).sum() == 2
    np.testing.assert_allclose(sums[0].sum(), sums[1].sum())


def test_what_cannot_be_merged_is_refused():
    frame = people(30).assign(boats=np.eye(30)[0])
    with pytest.raises(UnsafeRowsError, match="effect of boats"):
        dc.synthesize(frame, "income ~ boats", merge="pool")


def test_a_model_that_leaves_one_degree_of_freedom_is_refused():
    frame = pd.DataFrame({"y": [1.0, 5.0, 2.0], "x": [0.1, 0.7, 0.4]})
    with pytest.raises(UnsafeRowsError, match="as they went in, or mirrored"):
        dc.synthesize(frame, "y ~ x")


@pytest.mark.parametrize("column", ["double", "constant"])
def test_a_column_without_residuals_is_refused(column):
    frame = people(30).assign(double=lambda f: 2.0 * f["age"], constant=3.0)
    with pytest.raises(UnsafeRowsError, match=column):
        dc.synthesize(frame, f"income + {column} ~ age")


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("score-correlation", {"correlations": "keep"}),
        ("residual-correlation", {"correlations": 1.0}),
        ("from-residuals", {"share": 1.0}),
        ("from-residuals", {"other": people(30)}),
    ],
)
def test_parameters_that_change_nothing_are_refused(method, parameters):
    with pytest.raises(dc.DiscreetError, match="as they are"):
        dc.synthesize(people(30), "income + tax ~ age", method, **parameters)
