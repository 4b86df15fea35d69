import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.design import MISSING, SparseDesign
from discreet.design.codes import canonical
from discreet.errors import CodeError, DataError, DesignError, ParameterError, UnknownNameError
from discreet.progress import listening
from discreet.records import tabulate
from discreet.records import tabulate as plan

REGION = dc.Hierarchy(
    "Total",
    {"N": "Total", "S": "Total", "N1": "N", "N2": "N", "S1": "S", "X": "Total"},
    labels={"N": "North"},
    level_names=("country", "province", "town"),
)
AGE = dc.Hierarchy.from_dict({"All": {"young": ["0", "1"], "old": ["2", "3", "4"]}})
EVEN = dc.Hierarchy.from_dict({"Even": ["0", "2", "4"]})
ROLES = {"weight": "w", "key": "k"}


def frame(n=500, missing=True, seed=1):
    rng = np.random.default_rng(seed)
    region = rng.choice(["N1", "N2", "S1", "X"], n)
    sex = rng.choice(["f", "m"] + ([None] if missing else []), n)
    return pa.table(
        {
            "region": pa.array(region, mask=rng.random(n) < 0.05 if missing else None),
            "age": rng.integers(0, 5, n),
            "sex": pa.array(sex.tolist()),
            "job": rng.choice(["a", "b", "c"], n),
            "w": rng.gamma(2, 2, n),
            "k": rng.integers(0, 2**32, n),
        }
    )


def by_hand(records, cell, hierarchies):
    """Count, weight and key of one published cell, record by record."""
    rows = records.to_pylist()
    inside = [
        row for row in rows if all(lies(row[v], c, hierarchies.get(v)) for v, c in cell.items())
    ]
    return (
        len(inside),
        sum(row["w"] for row in inside),
        sum(row["k"] for row in inside) % 2**32,
    )


def lies(value, code, trees):
    code_of = canonical(value)
    return code_of == code or any(
        code in tree and code_of in tree and code_of in tree.leaves_of(code) for tree in trees or ()
    )


FORMULAS = [
    "region*age*sex",
    "region*age + sex",
    "region:age",
    "province*sex + age",
    [("region", "sex"), ("age", "job"), ()],
    "region*age + age*sex + sex*job",
    "1",
]


TREES = [{}, {"age": AGE}, {"region": REGION, "age": [AGE, EVEN]}]
CASES = [(m, t) for m in FORMULAS for t in TREES if "province" not in m or "region" in t]


@pytest.mark.slow
@pytest.mark.parametrize(("margins", "trees"), CASES, ids=lambda x: str(x)[:40])
def test_every_published_cell_is_right(place, margins, trees):
    records = frame()
    table = place.tabulate(records, margins, roles=ROLES, hierarchies=trees)
    known = {v: t if isinstance(t, list) else [t] for v, t in trees.items()}
    for k in range(table.design.n_published):
        n, w, key = by_hand(records, table.design.cell(k), known)
        assert table.z[k] == n
        assert table.cell_keys[k] == key
        assert table.weights[k] == pytest.approx(w, rel=1e-12)


def test_missing_is_a_category_even_beside_a_hierarchy(place):
    table = place.tabulate(frame(), "region*sex", hierarchies={"region": REGION})
    assert table.z[table.design.position({"region": MISSING})] > 0
    assert table.z[table.design.position({"sex": MISSING})] > 0
    assert table.design.axis("region").leaves[-1] == MISSING
    whole = place.tabulate(frame(missing=False), "region", hierarchies={"region": REGION})
    assert MISSING not in whole.design.axis("region").leaves


def test_null_and_nan_are_one_category(place):
    values = pa.array([1.0, float("nan"), None, 1.0])
    table = place.tabulate(pa.table({"v": values}), "v")
    assert table.to_pandas()["v"].tolist() == ["1", MISSING, "Total"]
    assert table.z.tolist() == [2, 2, 4]


def test_a_second_hierarchy_over_everything_stays_an_alias_of_the_total(place):
    parity = dc.Hierarchy.from_dict({"Any": {"even": ["0", "2", "4"], "odd": ["1", "3"]}})
    records = pa.table({"age": [0, 1, 2, None]})
    table = place.tabulate(records, "age", hierarchies={"age": [AGE, parity]})
    assert table.design.axis("age").total_codes == ("All", "Any")
    assert table.z[table.design.position({"age": "even"})] == 2


@pytest.mark.slow
@pytest.mark.parametrize("margins", FORMULAS[:-1], ids=str)
def test_margins_alone_equal_the_table_with_inner_cells(place, margins, monkeypatch):
    records = frame(200)
    trees = {"region": REGION, "age": [AGE, EVEN]}
    table = place.tabulate(records, margins, roles=ROLES, hierarchies=trees)
    only = margins_only(place, records, margins, trees, monkeypatch)
    assert only.inner is None
    assert only.design.n_published == table.design.n_published
    for k in range(only.design.n_published):
        other = table.design.position(only.design.cell(k))
        assert only.z[k] == table.z[other]
        assert only.cell_keys[k] == table.cell_keys[other]
        assert only.weights[k] == pytest.approx(table.weights[other], rel=1e-12)
    with pytest.raises(DesignError, match="inner cells were not read"):
        only.require_inner()


def margins_only(place, records, margins, trees, monkeypatch):
    """The table as it is counted when the crossing is too large to hold."""
    monkeypatch.setattr(plan, "HELD", 0)
    monkeypatch.setattr(plan, "holds_inner", lambda *_: False)
    return place.tabulate(records, margins, roles=ROLES, hierarchies=trees)


class Listening:
    """An engine that remembers what it was asked."""

    def __init__(self, engine):
        self.engine, self.asked = engine, []

    def group(self, data, variables):
        self.asked.append((tuple(variables), data.weight is not None))
        return self.engine.group(data, variables)


def test_one_query_for_a_crossing(place):
    ear = Listening(place.engine)
    place.people(frame(), **ROLES).tabulate("region*age*sex + age", engine=ear)
    assert ear.asked == [(("region", "age", "sex"), True)]


def test_one_query_for_linked_tables_of_few_records(place):
    ear = Listening(place.engine)
    table = place.people(frame(), **ROLES).tabulate("region*age + sex*job", engine=ear)
    assert ear.asked == [((), False), (("region", "age", "sex", "job"), True)]
    assert table.inner is not None


def test_one_query_for_each_largest_margin_of_large_tables(place, monkeypatch):
    for module in (plan, tabulate):
        monkeypatch.setattr(module, "HELD", 0)
    monkeypatch.setattr(plan, "_AFFORDABLE", 1)
    ear = Listening(place.engine)
    data = place.people(frame(), **ROLES).with_hierarchies(region=REGION, age=AGE)
    seen = []
    with listening(lambda task, share: seen.append((task, share))):
        table = data.tabulate("region*age + sex*job + region", engine=ear)
    assert ear.asked == [
        ((), False),
        (("sex",), False),
        (("job",), False),
        (("region", "age"), True),
        (("sex", "job"), True),
    ]
    assert table.inner is None
    assert seen[-1] == ("tabulate", 1.0)


def test_too_many_published_cells_are_refused(place, monkeypatch):
    monkeypatch.setattr(plan, "LARGEST_DENSE", 10)
    with pytest.raises(DesignError, match="published cells"):
        place.tabulate(frame(), "region*age*sex")


def test_largest_sets():
    sets = [("a", "b"), ("b",), ("b", "a"), (), ("c",), ("a", "b", "d")]
    assert plan.largest_sets(sets) == [("c",), ("a", "b", "d")]
    assert plan.largest_sets([()]) == [()]


@pytest.mark.parametrize(
    ("sizes", "sets", "expected"),
    [
        ({"a": 2000, "b": 2000}, [("a",), ("b",)], True),
        ({"a": 4000, "b": 4000}, [("a",), ("b",)], False),
        ({"a": 4000, "b": 4000}, [("a", "b")], True),
        ({"a": 20_000, "b": 20_000}, [("a", "b")], False),
    ],
)
def test_when_inner_cells_are_held(sizes, sets, expected):
    assert plan.holds_inner(("a", "b"), sets, sizes) == expected


def test_occurring_support(place):
    records = frame(12, missing=False)
    table = place.tabulate(records, "region*age*job", support="occurring")
    combinations = set(
        zip(*(records.column(v).to_pylist() for v in ("region", "age", "job")), strict=True)
    )
    assert isinstance(table.design, SparseDesign)
    assert table.design.support == "occurring"
    assert table.design.n_inner == len(combinations)
    assert (table.z > 0).all()


def test_structural_zeros(place):
    records = pa.table({"age": ["child", "adult"], "marital": ["single", "married"]})
    rules = [{"age": "child", "marital": ["married"]}]
    data = place.people(records).with_structural_zeros(rules)
    table = data.tabulate("age*marital", engine=place.engine)
    assert table.design.n_inner == 3
    assert (
        data.tabulate("age*marital", structural_zeros=(), engine=place.engine).design.n_inner == 4
    )
    assert data.tabulate("age", engine=place.engine).design.n_inner == 2
    wrong = pa.table({"age": ["child"], "marital": ["married"]})
    with pytest.raises(CodeError, match="structural zero"):
        place.tabulate(wrong, "age*marital", structural_zeros=rules)


def test_structural_zeros_hold_where_inner_cells_are_not_held(place, monkeypatch):
    rules, rows = [{"age": ["0"], "job": ["a"]}], frame()
    pairs = zip(*(map(canonical, rows.column(v).to_pylist()) for v in ("age", "job")), strict=True)
    possible = rows.filter(pa.array([pair != ("0", "a") for pair in pairs]))
    formula, data = "region*age + job*age + sex", place.people(possible, **ROLES)
    full = data.with_structural_zeros(rules).tabulate(formula, engine=place.engine)
    margins = data.with_structural_zeros(rules).tabulate(formula, engine=place.engine, inner=False)
    assert full.inner is not None
    assert margins.inner is None
    assert margins.design.n_published == full.design.n_published
    np.testing.assert_array_equal(margins.z, full.z)
    np.testing.assert_array_equal(margins.cell_keys, full.cell_keys)
    assert data.tabulate(formula, engine=place.engine, inner=False).design.n_published > len(full.z)
    wrong = place.people(rows, **ROLES).with_structural_zeros(rules)
    with pytest.raises(CodeError, match="structural zero"):
        wrong.tabulate(formula, engine=place.engine, inner=False)


def test_without_inner_cells_the_crossing_of_the_leaves_does_not_matter(place):
    names, codes = ("a", "b", "c", "d"), [f"x{i:03}" for i in range(300)]
    tree = dc.Hierarchy.from_dict({"all": {f"g{k}": codes[k::3] for k in range(3)}})
    rng = np.random.default_rng(3)
    records = pa.table({name: [codes[i] for i in rng.integers(2, 300, size=50)] for name in names})
    data = place.people(records, hierarchies=dict.fromkeys(names, tree))
    zeros = [{"a": codes[:200], "b": codes[:2]}]
    table = data.with_structural_zeros(zeros).tabulate(
        [[f"{name}[1]" for name in names]], engine=place.engine, inner=False
    )  # 8·10⁹ combinations of leaves
    assert table.design.n_published == 81
    assert table.z.sum() == 50


def test_no_records(place):
    empty = frame(3).slice(0, 0)
    trees = {"age": AGE, "sex": dc.Hierarchy.flat(["f", "m"])}
    table = place.tabulate(empty, "age*sex", roles=ROLES, hierarchies=trees)
    assert table.z.sum() == 0
    assert table.cell_keys.sum() == 0
    assert table.weights.sum() == 0.0
    assert place.tabulate(empty, "1", roles=ROLES).z.tolist() == [0]
    with pytest.raises(DataError, match="no records and no code list"):
        place.tabulate(empty, "region")


def test_one_record(place):
    table = place.tabulate(frame(1, missing=False), "region*age*sex", roles=ROLES)
    assert table.z.tolist() == [1] * 8


def test_unknown_names(place):
    data = place.people(frame(), **ROLES)
    with pytest.raises(UnknownNameError, match="Did you mean 'region'"):
        data.tabulate("regin*age", engine=place.engine)
    with pytest.raises(UnknownNameError, match="Did you mean 'region'"):
        data.tabulate("age", hierarchies={"regin": REGION}, engine=place.engine)
    with pytest.raises(ParameterError, match="support"):
        data.tabulate("age", support="some", engine=place.engine)
    with pytest.raises(CodeError, match="'N2'|'N1'|'X'|'S1'"):
        data.tabulate(
            "region", hierarchies={"region": dc.Hierarchy.flat(["x"])}, engine=place.engine
        )


def test_hierarchies_of_the_call_replace_those_of_the_data(place):
    data = place.people(frame(missing=False)).with_hierarchies(age=AGE)
    flat = dc.Hierarchy.flat(range(6))
    table = data.tabulate("age", hierarchies={"age": flat}, engine=place.engine)
    assert len(table.design.axis("age")) == 6
    assert "young" not in table.to_pandas()["age"].tolist()


def test_the_same_cell_has_the_same_key_in_every_table(place):
    data = place.people(frame(), **ROLES)
    keys = {}
    for margins in ("region*sex", "sex*region*age", [("sex",)], "sex + job"):
        table = data.tabulate(margins, engine=place.engine)
        keys[str(margins)] = table.cell_keys[table.design.position({"sex": "f"})]
    assert len(set(keys.values())) == 1


def test_zero_cells_have_keys_when_there_is_a_secret(place):
    secret = dc.Secret(b"the secret of a test, and of no office")
    records = frame(50).append_column("id", pa.array(range(50)))
    keyed = place.people(records, id="id").with_keys(secret, convention="ons-4096")
    table = keyed.tabulate("region*sex", engine=place.engine)
    cells = [{"region": "N1", "sex": "f"}, {}]
    found = table.secret.zero_key(cells, table.convention)
    np.testing.assert_array_equal(found, secret.zero_key(cells, "ons-4096"))
    assert place.tabulate(frame(50), "sex", roles=ROLES).secret is None
    later = place.people(records, key="k").with_secret(secret).tabulate("sex", engine=place.engine)
    assert later.secret is secret


def test_results_do_not_depend_on_the_order_of_records(place):
    records = frame(300)
    shuffled = records.take(np.random.default_rng(3).permutation(300))
    for margins in ("region*age*sex", "job*sex + age"):
        one, two = (place.tabulate(r, margins, roles=ROLES) for r in (records, shuffled))
        np.testing.assert_array_equal(one.z, two.z)
        np.testing.assert_array_equal(one.cell_keys, two.cell_keys)
        np.testing.assert_allclose(one.weights, two.weights, rtol=1e-12)


@pytest.mark.parametrize(
    "name", ["n", "w2", "k", "v0", 'x"; DROP TABLE people; --', "select", "Größe"]
)
def test_any_name_can_be_a_variable(place, name):
    table = place.tabulate(pa.table({name: ["a", "b", "a"]}), [(name,)])
    assert table.z.tolist() == [2, 1]


def test_axes_are_shared_by_all_groupings(monkeypatch):
    """A code that appears between two queries is refused, not misplaced."""
    data = dc.open({"a": ["x"], "b": ["y"], "c": ["z"]})

    class Grows:
        asked = 0

        def group(self, data, variables):
            self.asked += 1
            extra = ["new"] if self.asked > 4 and "a" in variables else []
            n = 1 + len(extra)
            columns = {v: [v] * n for v in variables}
            if "a" in variables:
                columns["a"] = ["x", *extra]
            return pa.table({**columns, "n": pa.array([10**9] * n)})

    monkeypatch.setattr(plan, "HELD", 0)
    monkeypatch.setattr(plan, "_AFFORDABLE", 0)
    with pytest.raises(CodeError, match="'new'"):
        data.tabulate("a*b + a*c", engine=Grows())


def test_lists_cannot_be_codes(place):
    nested = dc.open(pa.table({"v": [[1], [2]]}))
    with pytest.raises(CodeError, match="cannot be"):
        nested.tabulate("v")


def test_threads_take_turns():
    """Two queries at once on one connection of DuckDB would never end."""
    data = dc.open(frame(2000), **ROLES)
    expected = {m: data.tabulate(m).z.tolist() for m in ("region*age", "sex*job", "age*job")}

    def work(margins):
        return margins, [data.tabulate(margins).z.tolist() for _ in range(4)]

    with ThreadPoolExecutor(6) as pool:
        for margins, found in pool.map(work, list(expected) * 2, timeout=120):
            assert found == [expected[margins]] * 4


def test_levels_of_two_axes_cross(place):
    records = frame(300, missing=False)
    table = place.tabulate(records, "region*age", hierarchies={"region": REGION, "age": AGE})
    for a, b in itertools.product(["N", "S", "X"], ["young", "old"]):
        cell = {"region": a, "age": b}
        expected = by_hand(records, cell, {"region": [REGION], "age": [AGE]})[0]
        assert table.z[table.design.position(cell)] == expected
