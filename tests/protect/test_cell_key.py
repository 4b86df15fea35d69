import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dc
from discreet import registry
from discreet.errors import DataError, DesignError, InfeasibleError, KeysError, ParameterError
from discreet.noise import discrete_laplace
from discreet.protect import SeededDraws
from discreet.protect.cell_key import fold, from_predrawn, predrawn
from discreet.tables import CONVENTIONS, CellStatus, CellValues
from discreet.testing import by_cell, check_method, retabulate, sample_table
from tests.protect.tables import PARTY, SECRET, keyed_party, party
from tests.strategies import designs

REFERENCE = Path(__file__).parents[3] / "shared" / "reference"
PTABLE = dc.perturbation_table(D=5, V=3, js=2)
LAPLACE = discrete_laplace(2.0, 7)


def with_secret(table):
    return table.with_secret(SECRET)


def value(release, **cell):
    return release.z[release.design.position(cell)]


@pytest.mark.slow
@pytest.mark.parametrize("margins", ["own", "summed"])
@pytest.mark.parametrize("matrix", [PTABLE, LAPLACE], ids=["zeros kept", "zeros perturbed"])
def test_the_battery_finds_nothing_to_complain_of(matrix, margins):
    check_method(dc.CellKey(matrix, margins=margins), draws=100_000 if margins == "own" else 5_000)


@pytest.mark.parametrize("grid", [30, 12.5])
def test_the_battery_believes_weighted_counts_too(grid):
    method = dc.CellKey(PTABLE, grid=grid)
    found = check_method(method, sample_table(weights=True, unit="weight"), draws=3_000)
    assert found["keeps zeros"] == "5 zeros stayed zero"


@pytest.mark.slow
@given(designs(), st.integers(0, 2**32 - 1))
def test_on_any_design_a_cell_is_the_same_wherever_it_appears(design, seed):
    rng = np.random.default_rng(seed)
    table = dc.Table.from_inner(design, rng.integers(0, 4, design.n_inner)).rekeyed(rng)
    table = with_secret(table)
    declared = not (design.is_complete or design.support == "occurring")
    for method in (dc.CellKey(PTABLE), *([] if declared else [dc.CellKey(LAPLACE)])):
        here = table.protect(method)
        first = here.design.duplicates()
        np.testing.assert_array_equal(here.z, here.z[first])
        values = by_cell(here)
        for term in design.terms:
            there = by_cell(retabulate(table, [term]).protect(method))
            assert there == {cell: values[cell] for cell in there}


def test_every_look_up_is_that_of_an_obvious_loop():
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 12, 400)
    table = dc.Table.from_inner(
        dc.Design.product({"a": 400}, [("a",)]), CellValues(counts, key=np.zeros(400, np.int64))
    ).rekeyed(rng)
    for name in ("discreet", "ssb", "ptable", "mersenne", "ons-256"):
        rule = CONVENTIONS[name]
        keys = rng.integers(rule.modulus, size=400)
        again = replace(table, convention=rule, published=CellValues(counts, key=keys))
        shown = again.protect(dc.CellKey(PTABLE)).z
        assert shown.tolist() == [slow(n, k, rule) for n, k in zip(counts, keys, strict=True)]


def slow(count, key, rule):
    """The first interval of the count's row that holds the key."""
    from fractions import Fraction

    upper = Fraction(0)
    point = Fraction(int(key), rule.modulus)
    row = PTABLE.probabilities(int(count))
    for move, p in zip(PTABLE.deviations, row, strict=True):
        upper += Fraction(float(p))
        if p > 0 and (point < upper or (rule.edge == "left" and point == upper)):
            return count + move
    return count + PTABLE.deviations[np.flatnonzero(row)[-1]]


@pytest.mark.parametrize(
    ("file", "coarse", "fine", "margins"),
    [
        ("example1", "eu", "geo", "age*geo[leaves]*year + geo[1]*year"),
        (
            "my_km2",
            "Square1000m",
            "Square250m",
            "(Sex + Age)*Municipality*Square250m[1] + Square250m[leaves]",
        ),
    ],
)
def test_published_figures_of_the_norwegian_package(file, coarse, fine, margins):
    """SSBcellKey 0.0.4 with ptable 1.0.0 (D=5, V=3, js=2): keys in, perturbed cells out."""
    path = REFERENCE / f"d_cellkey_{file}.json"
    if not path.exists():
        pytest.skip("the reference figures are not here")
    reference = json.loads(path.read_text())
    tree = {}
    for row in reference["input"]:
        tree.setdefault(row[coarse], {})[row[fine]] = []
    table = dc.Table.from_counts(
        pa.Table.from_pylist(reference["input"]),
        count="freq",
        key="keys",
        margins=margins,
        convention="ssb",
        hierarchies={fine: dc.Hierarchy.from_dict({"All": tree})},
    )
    ptable = dc.perturbation_table(D=5, V=3, js=2, variant="ptable")
    release = table.protect(dc.CellKey(ptable))
    for row in reference["publish"]:
        codes = {k: v for k, v in row.items() if k not in ("original", "perturbed", "keys")}
        k = table.design.position({k: v for k, v in codes.items() if v != "Total"})
        assert (table.z[k], release.z[k]) == (row["original"], row["perturbed"]), codes


@pytest.mark.slow
def test_the_spread_of_utility_is_that_of_the_papers():
    """Langsrud & Lupp (2021): 95 % of the Hellinger utilities in [0.8871, 0.9392]."""
    table, method, rng = party(), dc.CellKey(PTABLE), np.random.default_rng(1)
    utility = []
    for _ in range(1500):
        shown = table.rekeyed(rng).protect(method).z
        distance = np.sqrt(0.5 * np.sum((np.sqrt(table.z) - np.sqrt(shown)) ** 2))
        utility.append(1 - distance / np.sqrt(table.z.sum()))
    np.testing.assert_allclose(np.quantile(utility, [0.025, 0.975]), [0.8871, 0.9392], atol=0.004)


def test_neither_draws_nor_a_secret_change_what_keys_say():
    table, method = keyed_party(), dc.CellKey(PTABLE)
    with pytest.raises(ParameterError, match="not from a seed"):
        table.protect(method, seed=1)
    guided = method(with_secret(table), draws=SeededDraws(1))
    np.testing.assert_array_equal(guided.z, table.protect(method).z)


def test_the_same_cell_has_the_same_value_in_every_table():
    method, whole = dc.CellKey(LAPLACE), with_secret(keyed_party("party*age*sex"))
    wide = whole.protect(method)
    inner = {name: PARTY[name] for name in ("party", "age", "sex")} | {"n": PARTY["n"]}
    inner["key"] = [
        int(whole.inner.key[whole.design.inner_position({"party": p, "age": a, "sex": s})])
        for p, a, s in zip(PARTY["party"], PARTY["age"], PARTY["sex"], strict=True)
    ]
    for margins in ("sex*age", "age*party", "sex*party", "age"):
        narrow = with_secret(dc.Table.from_counts(inner, "n", margins, key="key")).protect(method)
        for k in range(narrow.design.n_published):
            assert narrow.z[k] == value(wide, **narrow.design.cell(k))


def test_empty_cells_need_a_rule_for_their_keys_when_the_matrix_moves_them():
    table = keyed_party()
    table.protect(dc.CellKey(PTABLE))
    with pytest.raises(KeysError, match=r"with_secret\(secret\)"):
        table.protect(dc.CellKey(LAPLACE))
    matrix_table = dc.Table.from_inner(
        dc.Design.from_matrix(np.eye(3, 2)), CellValues(np.array([0, 2, 1]), key=np.arange(3))
    )
    with pytest.raises(KeysError, match="no codes"):
        with_secret(matrix_table).protect(dc.CellKey(LAPLACE))


def test_empty_cells_move_by_the_hash_of_their_definition():
    table = with_secret(keyed_party())
    empty = table.z == 0
    keys = [SECRET.zero_key([table.design.cell(int(k))])[0] for k in np.flatnonzero(empty)]
    expected = LAPLACE.noise(np.zeros(empty.sum(), dtype=int), keys, 2**32)
    np.testing.assert_array_equal(table.protect(dc.CellKey(LAPLACE)).z[empty], expected)


def test_two_names_of_an_empty_cell_are_one_cell():
    regions = dc.Hierarchy.from_dict({"All": {"north": ["n1", "n2"], "south": ["s1"]}})
    frame = {"region": ["n1", "n2", "n1"], "age": list("xyx"), "n": [3, 4, 0], "k": [1, 2, 0]}
    always = discrete_laplace(0.05, 60)
    table = with_secret(
        dc.Table.from_counts(frame, "n", "region*age", key="k", hierarchies={"region": regions})
    )
    release = table.protect(dc.CellKey(always))
    for age in ("x", "y"):
        assert value(release, region="south", age=age) == value(release, region="s1", age=age)
    leaves_only = with_secret(
        dc.Table.from_counts(
            frame, "n", [("age", "region[leaves]")], key="k", hierarchies={"region": regions}
        )
    ).protect(dc.CellKey(always))
    assert value(leaves_only, region="s1", age="x") == value(release, region="south", age="x")
    assert len({value(release, region="s1", age=a) for a in "xy"}) == 2


def test_cells_that_structural_zeros_make_the_same_share_their_key():
    frame = {"age": ["child", "adult", "adult"], "work": ["none", "none", "job"], "n": [0, 2, 5]}
    frame["k"] = [0, 11, 22]
    table = with_secret(
        dc.Table.from_counts(
            frame,
            "n",
            "age*work",
            key="k",
            structural_zeros=[{"age": "child", "work": "job"}],
        )
    )
    always = dc.TransitionMatrix.from_law("up to 60", np.repeat([[0] * 60 + [1 / 61] * 61], 2, 0))
    release = table.protect(dc.CellKey(always))
    assert value(release, age="child") == value(release, age="child", work="none") != 0
    with pytest.raises(DesignError):
        table.design.position({"age": "child", "work": "job"})


def test_a_structural_zero_of_a_matrix_stays_and_is_marked():
    X = np.array([[1, 0, 1], [1, 0, 1]])
    table = dc.Table.from_inner(
        dc.Design.from_matrix(X), CellValues(np.array([2, 3]), key=np.array([5, 6]))
    )
    release = table.protect(dc.CellKey(discrete_laplace(0.05, 60)))
    assert release.z[1] == 0
    assert release.status.tolist() == [0, CellStatus.structural_zero, 0]
    assert release.z[0] == release.z[2]


def test_the_support_of_the_records_does_not_show():
    everything, occurring = (
        with_secret(party(support=support).rekeyed(np.random.default_rng(2)))
        for support in ("all", "occurring")
    )
    keys = dict(
        zip(
            map(tuple, zip(*occurring.design.inner_codes(), strict=True)),
            occurring.inner.key,
            strict=True,
        )
    )
    everywhere = np.array(
        [keys.get(tuple(c), 0) for c in zip(*everything.design.inner_codes(), strict=True)]
    )
    everything = with_secret(
        dc.Table.from_inner(everything.design, replace(everything.inner, key=everywhere))
    )
    for method in (dc.CellKey(LAPLACE), dc.CellKey(LAPLACE, margins="summed"), dc.CellKey(PTABLE)):
        first, second = everything.protect(method), occurring.protect(method)
        np.testing.assert_array_equal(first.z, second.z)
    hidden = dc.CellKey(PTABLE, threshold=4)
    np.testing.assert_array_equal(
        everything.protect(hidden).status, occurring.protect(hidden).status
    )


def test_values_below_the_threshold_are_hidden():
    table = keyed_party()
    open_, hidden = (table.protect(dc.CellKey(PTABLE, threshold=t)) for t in (None, 10))
    below = open_.z < 10
    assert (hidden.status == np.where(below, CellStatus.below_threshold, 0)).all()
    assert not hidden.z[below].any()
    np.testing.assert_array_equal(hidden.z[~below], open_.z[~below])
    assert "below 10" in hidden.statement.text


def test_the_ons_rule_is_a_join_on_count_and_key():
    rng = np.random.default_rng(5)
    pcv, ckey = (a.ravel() for a in np.mgrid[1:751, 0:256])
    pvalue = rng.integers(-1, 2, pcv.size)
    pvalue[pcv + pvalue < 0] = 0
    matrix = dc.TransitionMatrix.from_ons(pa.table({"pcv": pcv, "ckey": ckey, "pvalue": pvalue}))
    joined = dict(zip(zip(pcv.tolist(), ckey.tolist(), strict=True), pvalue.tolist(), strict=True))
    counts = np.concatenate([np.arange(12), [749, 750, 751, 1000, 1001, 100_001, 2345]])
    keys = rng.integers(256, size=len(counts))
    design = dc.Design.product({"a": len(counts)}, [("a",)])
    table = dc.Table(design, CellValues(counts, key=keys), convention=CONVENTIONS["ons-256"])
    shown = table.protect(dc.CellKey(matrix, threshold=10))
    for k, (count, key) in enumerate(zip(counts.tolist(), keys.tolist(), strict=True)):
        row = count if count <= 750 else (count - 1) % 250 + 501
        expected = count + joined.get((row, key), 0)
        assert (shown.status[k] == CellStatus.below_threshold) == (expected < 10)
        assert shown.z[k] == (expected if expected >= 10 else 0)


def test_folded_keys_are_the_exclusive_or_of_four_bytes():
    keys = np.random.default_rng(1).integers(2**32, size=200)
    slow_fold = [k & 255 ^ k >> 8 & 255 ^ k >> 16 & 255 ^ k >> 24 for k in keys.tolist()]
    assert fold(keys).tolist() == slow_fold


def test_tables_drawn_in_advance_follow_their_column_rule():
    rng = np.random.default_rng(6)
    size, repeated = 9, 4
    drawn = rng.integers(-1, 2, size=(256, size))
    counts = np.arange(40)
    keys = rng.integers(17_312_941, size=40)
    design = dc.Design.product({"a": 40}, [("a",)])
    table = dc.Table(design, CellValues(counts, key=keys), convention=CONVENTIONS["prime"])
    shown = table.protect(dc.CellKey(from_predrawn(drawn, repeated), folded=True)).z
    for count, key, z in zip(counts.tolist(), keys.tolist(), shown.tolist(), strict=True):
        column = count if count <= size - repeated else size - repeated + count % repeated + 1
        row = key & 255 ^ key >> 8 & 255 ^ key >> 16 & 255 ^ key >> 24
        assert z == (count + drawn[row, column - 1] if count else 0)
    with pytest.raises(ParameterError, match="256 rows"):
        from_predrawn(drawn[:255], repeated)
    with pytest.raises(ParameterError, match="repeated"):
        from_predrawn(drawn, 10)


def test_drawing_in_advance_keeps_the_law_to_a_slot():
    table = predrawn(PTABLE, seed=1)
    assert np.abs(table.law - PTABLE.law).max() <= 1.5 / 256
    assert (table.widths == 1 / 256).all()
    assert table.keeps_zeros
    assert predrawn(PTABLE, seed=1) == table != predrawn(PTABLE, seed=2)


def test_a_convention_must_have_the_range_of_the_keys():
    table = keyed_party(convention="ptable")
    left = table.protect(dc.CellKey(PTABLE, convention="ssb"))
    assert left.z.shape == table.z.shape
    with pytest.raises(KeysError, match="'ptable'.*'discreet'"):
        table.protect(dc.CellKey(PTABLE, convention="discreet"))
    with pytest.raises(dc.DiscreetError, match="key convention"):
        dc.CellKey(PTABLE, convention="abacus")


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"matrix": "ptable.csv"}, ParameterError, "TransitionMatrix"),
        ({"matrix": PTABLE, "threshold": 0}, ParameterError, "threshold must be"),
        ({"matrix": PTABLE, "threshold": 2.5}, ParameterError, "whole number"),
        ({"matrix": PTABLE, "threshold": 5, "margins": "summed"}, ParameterError, "subtracted"),
        ({"matrix": PTABLE, "threshold": 5, "grid": 30}, ParameterError, "threshold"),
        ({"matrix": PTABLE, "grid": 0}, ParameterError, "grid must be"),
        ({"matrix": PTABLE, "grid": 30, "margins": "adjusted"}, ParameterError, "'adjusted'"),
        ({"matrix": PTABLE, "margins": "both"}, ParameterError, "'own'"),
    ],
)
def test_wrong_options_are_refused_when_they_are_written(given, error, words):
    with pytest.raises(error, match=words):
        dc.CellKey(**given)


def test_every_kind_of_bad_input_has_its_own_error():
    method = dc.CellKey(PTABLE)
    with pytest.raises(KeysError, match="no cell keys"):
        party().protect(method)
    with pytest.raises(KeysError, match="inner cells of this table have no keys"):
        party().protect(dc.CellKey(PTABLE, margins="summed"))
    outside = replace(party().published, key=np.full(24, 2**32))
    with pytest.raises(KeysError, match=r"0\.\.4294967295"):
        replace(party(), published=outside).protect(method)
    for counts, words in (([-1] * 24, "negative"), ([1.5] * 24, "whole numbers")):
        with pytest.raises(DataError, match=words):
            CellValues(np.array(counts), key=np.zeros(24, np.int64))
    with pytest.raises(InfeasibleError, match="V"):
        registry.build("method", "cell-key", {"D": 3, "V": 9})
    with pytest.raises(ParameterError, match="sums to 0.9"):
        dc.TransitionMatrix.from_law("bad", [[0, 1, 0], [0.2, 0.5, 0.2]])
    with pytest.raises(ParameterError, match="too few rows"):
        dc.TransitionMatrix.from_law("bad", [[0, 0, 1, 0, 0], [0, 0.5, 0, 0, 0.5]], blocked=2)


def test_recipes_name_the_parameters_or_a_file(tmp_path):
    PTABLE.to_ptable_csv(tmp_path / "ptable.csv")
    (tmp_path / "ptable.json").write_text(PTABLE.to_json())
    csv.write_csv(PTABLE.to_ons().to_arrow(), tmp_path / "ons.csv")
    table = keyed_party()
    direct = registry.build("method", "cell-key", {"D": 5, "V": 3, "js": 2}).matrix
    assert direct == PTABLE
    expected = table.protect(dc.CellKey(PTABLE)).z
    for name in ("ptable.csv", "ptable.json"):
        matrix = {"name": "file", "path": str(tmp_path / name)}
        read = registry.build("method", "cell-key", {"matrix": matrix})
        np.testing.assert_array_equal(table.protect(read).z, expected)
    flat = {"matrix": "file", "path": str(tmp_path / "ons.csv")}
    ons = registry.build("method", "cell-key", flat)
    assert ons.matrix.period == 250


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"V": 3}, ParameterError, "V= goes with D="),
        ({"D": 5}, ParameterError, "needs the variance V="),
        ({"ptable": "x.csv"}, ParameterError, '"name": "file", "path"'),
        ({"matrix": "file", "path": "nowhere.csv"}, DataError, "nowhere.csv"),
        ({"matrix": "file", "path": "x.csv", "D": 5}, dc.DiscreetError, "'D'"),
        ({"D": 5, "V": 3, "d": 1}, dc.DiscreetError, "'D'"),
    ],
)
def test_wrong_parameters_of_a_recipe_are_explained(parameters, error, words):
    with pytest.raises(error, match=words):
        registry.build("method", "cell-key", parameters)


def test_the_statement_is_public_and_complete(tmp_path):
    table = with_secret(keyed_party())
    table = replace(table, published=replace(table.published, count=table.z + 987_654))
    release = table.protect(dc.CellKey(PTABLE))
    statement = release.statement
    assert statement.version == dc.__version__
    assert [step.name for step in statement.steps] == ["data", "protect:cell-key"]
    assert statement.steps[1].parameters["V"] == 3
    written = json.dumps(statement.to_json())
    assert "98765" not in written
    assert not any(str(key) in written for key in table.cell_keys if key > 1000)
    assert "variance of the change is 3 " in statement.text
    assert statement.says("nested-crossings")
    assert statement.says("editions")
    assert "small random amount" in statement.plain
    again = dc.facade.read_release(release.save(tmp_path / "release.parquet"))
    assert again.statement == statement


def test_precision_is_left_out_where_all_cells_are_alike():
    assert keyed_party().protect(dc.CellKey(PTABLE)).precision is None
