import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

import discreet as dc
from discreet.errors import (
    CodeError,
    ConfidentialError,
    DataError,
    DesignError,
    KeysError,
    ParameterError,
    UnknownNameError,
)
from discreet.tables import CellStatus, CellValues, Protected, Sentence, Statement, Step

COUNTS = pd.DataFrame(
    {
        "party": ["A", "A", "B", "B", "B"],
        "age": ["young", "old", "young", "old", "old"],
        "sex": ["f", "m", "f", "f", "m"],
        "n": [3, 5, 1, 2, 7],
        "w": [30.0, 50.0, 10.0, 20.0, 70.0],
        "k": [10, 20, 2**32 - 1, 40, 50],
    }
)
SENTENCES = (Sentence("test", "Made for a test.", about="process"),)
STATEMENT = Statement((Step("test", {"D": 5}, SENTENCES),), version=dc.__version__)


def party_table(**options):
    return dc.Table.from_counts(COUNTS, count="n", margins="party*age + party*sex", **options)


def value(table, **cell):
    return table.z[table.design.position(cell)]


def test_a_table_from_counts_has_all_its_margins():
    table = party_table()
    assert value(table) == 18
    assert value(table, party="B") == 10
    assert value(table, party="B", age="old") == 9
    assert value(table, party="A", sex="m") == 5
    assert table.design.n_inner == 8
    assert table.y.sum() == 18


@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, dict], ids=["pandas", "polars", "dict"]
)
def test_any_frame_gives_the_same_table(make):
    frame = make({name: COUNTS[name].tolist() for name in COUNTS})
    table = dc.Table.from_counts(frame, count="n", margins="party*age + party*sex")
    np.testing.assert_array_equal(table.z, party_table().z)


def test_rows_of_the_same_cell_are_summed_and_their_order_is_irrelevant():
    halves = pd.concat([COUNTS.assign(n=1), COUNTS.assign(n=COUNTS["n"] - 1)]).sample(
        frac=1, random_state=1
    )
    table = dc.Table.from_counts(halves, count="n", margins="party*age + party*sex")
    np.testing.assert_array_equal(table.z, party_table().z)


def test_weights_and_keys_are_summed_like_counts():
    table = party_table(weight="w", key="k")
    np.testing.assert_allclose(table.weights, 10 * table.z)
    total = table.design.position({})
    assert table.cell_keys[total] == (10 + 20 + 2**32 - 1 + 40 + 50) % 2**32


def test_fractional_keys_follow_the_peers_convention():
    frame = COUNTS.assign(k=[0.25, 0.5, 0.75, 0.125, 0.9])
    table = dc.Table.from_counts(
        frame, count="n", margins="party*age", key="k", convention="ptable"
    )
    expected = (0.25 + 0.5 + 0.75 + 0.125 + 0.9) % 1
    assert table.cell_keys[table.design.position({})] == round(expected * 10**8)


def test_missing_keys_weights_and_inner_cells_are_explained():
    table = party_table()
    with pytest.raises(KeysError, match="an id and a secret"):
        _ = table.cell_keys
    with pytest.raises(DesignError, match="weight column"):
        _ = table.weights
    margins_only = dc.Table(table.design, table.published)
    with pytest.raises(DesignError, match="published cells only"):
        _ = margins_only.y


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"n": [3, 5, -1, 2, 7]}, DataError, "negative"),
        ({"n": [3, 5, 1.5, 2, 7]}, DataError, "whole"),
        ({"n": [3, 5, None, 2, 7]}, DataError, "missing"),
        ({"n": list("abcde")}, DataError, "numbers"),
        ({"k": [1, 2, 3, 4, 2**32]}, KeysError, r"0\.\.4294967295"),
        ({"k": [1, 2, 3, 4, -5]}, KeysError, "convention"),
    ],
)
def test_bad_values_are_refused(change, error, words):
    with pytest.raises(error, match=words):
        dc.Table.from_counts(COUNTS.assign(**change), count="n", margins="party*age", key="k")


def test_unknown_columns_name_the_nearest():
    with pytest.raises(UnknownNameError, match="'party'"):
        dc.Table.from_counts(COUNTS, count="n", margins="prty*age")
    with pytest.raises(UnknownNameError, match="'n'"):
        dc.Table.from_counts(COUNTS, count="N", margins="party*age")


def test_missing_values_are_a_category_of_their_own():
    frame = COUNTS.assign(age=["young", None, "young", "old", None])
    table = dc.Table.from_counts(frame, count="n", margins="party*age")
    assert value(table, age="(missing)") == 12
    assert table.design.axes[1].leaves[-1] == "(missing)"


def test_a_hierarchy_adds_its_levels_and_must_hold_every_code():
    ages = dc.Hierarchy.from_dict({"All": {"adult": ["young", "old"], "child": []}})
    table = party_table(hierarchies={"age": ages})
    assert value(table, party="A", age="adult") == 8
    assert value(table, age="child") == 0
    with pytest.raises(CodeError, match="'old'.*'age'"):
        party_table(hierarchies={"age": dc.Hierarchy.flat(["young"])})


def test_structural_zeros_leave_the_support():
    table = party_table(structural_zeros=[{"party": "A", "age": "young", "sex": "m"}])
    assert table.design.n_inner == 7
    np.testing.assert_array_equal(table.z, party_table().z)
    with pytest.raises(CodeError, match="structural zero"):
        party_table(structural_zeros=[{"party": "A", "age": "young"}])
    with pytest.raises(UnknownNameError, match="'young'"):
        party_table(structural_zeros=[{"party": "A", "age": "yung"}])


def test_occurring_support_is_confidential_and_is_lifted_on_release():
    table = party_table(support="occurring")
    assert table.design.n_inner == 5
    with pytest.raises(ConfidentialError, match="public support"):
        dc.Release(table.design, table.z, STATEMENT)
    release = dc.Release.of(table.design, table.z, STATEMENT, y=table.y)
    full = party_table()
    np.testing.assert_array_equal(release.z, full.z)
    np.testing.assert_array_equal(release.y, full.y)


def test_cells_outside_the_occurring_support_have_no_quality():
    table = dc.Table.from_counts(COUNTS, count="n", margins="party:age:sex", support="occurring")
    quality = np.ones(len(table.z), dtype=np.int64)
    release = dc.Release.of(table.design, table.z, STATEMENT, quality=quality)
    shown = release.to_arrow().column("quality").to_pylist()
    assert (release.z == 0).any()
    assert shown == [1 if z else None for z in release.z.tolist()]


def test_listed_zeros_join_the_occurring_cells():
    zero = pd.DataFrame({"party": ["A"], "age": ["young"], "sex": ["m"], "n": [0]})
    frame = pd.concat([COUNTS[["party", "age", "sex", "n"]], zero])
    sizes = {
        support: dc.Table.from_counts(
            frame, count="n", margins="party*age + party*sex", support=support
        ).design.n_inner
        for support in ("occurring", "listed", "all")
    }
    assert sizes == {"occurring": 5, "listed": 6, "all": 8}
    with pytest.raises(ParameterError, match="'listed'"):
        party_table(support="some")


def test_published_cells_can_be_read_back_from_a_frame():
    table = party_table(key="k")
    again = dc.Table.from_frame(
        table.to_pandas().sample(frac=1, random_state=3), "party*age + party*sex", key="cell_key"
    )
    np.testing.assert_array_equal(again.z, table.z)
    np.testing.assert_array_equal(again.cell_keys, table.cell_keys)
    assert again.inner is None


def test_a_frame_with_the_inner_block_gives_inner_cells():
    table = dc.Table.from_counts(COUNTS, count="n", margins="party*age")
    again = dc.Table.from_frame(table.to_arrow(), "party*age")
    np.testing.assert_array_equal(again.y, table.y)


def test_a_frame_of_published_cells_must_be_complete_and_known():
    frame = party_table().to_pandas()
    with pytest.raises(DesignError, match="not at all"):
        dc.Table.from_frame(frame.iloc[1:], "party*age + party*sex")
    with pytest.raises(DesignError, match="twice"):
        dc.Table.from_frame(pd.concat([frame, frame.iloc[:1]]), "party*age + party*sex")
    with pytest.raises(DesignError, match="not among the margins"):
        dc.Table.from_frame(frame, "party + age + sex")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"support": "occurring"},
        {"structural_zeros": [{"party": "A", "sex": "m", "age": "young"}]},
    ],
)
def test_a_table_survives_the_disk(tmp_path, options):
    table = party_table(weight="w", key="k", **options)
    path = table.save(tmp_path / "table.parquet")
    again = dc.facade.read_table(path)
    assert again.design.n_inner == table.design.n_inner
    for name in ("count", "weight", "key"):
        np.testing.assert_array_equal(
            getattr(again.published, name), getattr(table.published, name)
        )
        np.testing.assert_array_equal(
            getattr(again.inner, name)[
                np.argsort(again.design.inner_flat if options else range(8))
            ],
            getattr(table.inner, name)[
                np.argsort(table.design.inner_flat if options else range(8))
            ],
        )
    assert again.convention == table.convention
    assert path.stat().st_mode & 0o777 == 0o600


def test_hierarchies_and_labels_survive_the_disk(tmp_path):
    tree = dc.Hierarchy.from_dict({"All": {"adult": ["young", "old"], "child": []}})
    table = party_table(hierarchies={"age": tree})
    again = dc.read(table.save(tmp_path / "t.parquet"))
    np.testing.assert_array_equal(again.design.matrix().toarray(), table.design.matrix().toarray())


def test_a_release_survives_the_disk_and_a_confidential_file_is_refused(tmp_path):
    table = party_table()
    precision = np.linspace(1, 2, table.design.n_published)
    release = dc.Release(
        table.design, table.z + 1, STATEMENT, y=table.y.astype(float), precision=precision
    )
    path = release.save(tmp_path / "release.parquet")
    again = dc.facade.read_release(path)
    np.testing.assert_array_equal(again.z, release.z)
    np.testing.assert_array_equal(again.precision, precision)
    np.testing.assert_array_equal(again.y, release.y)
    assert again.statement == STATEMENT
    confidential = table.save(tmp_path / "table.parquet")
    with pytest.raises(ConfidentialError, match="confidential"):
        dc.facade.read_release(confidential)
    with pytest.raises(DataError, match="is a release"):
        dc.facade.read_table(path)


def test_broken_files_are_explained(tmp_path):
    with pytest.raises(DataError, match="no file"):
        dc.read(tmp_path / "absent.parquet")
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 truncated")
    with pytest.raises(DataError, match="no Parquet file, or a damaged one"):
        dc.read(broken)
    COUNTS.to_parquet(tmp_path / "other.parquet")
    with pytest.raises(DataError, match="not a table or release"):
        dc.read(tmp_path / "other.parquet")


def test_a_failed_write_leaves_nothing_behind(tmp_path, monkeypatch):
    table = party_table()
    monkeypatch.setattr("discreet.tables.storage.write_parquet", lambda *a, **k: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        table.save(tmp_path / "t.parquet")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DataError, match="cannot write"):
        table.save(tmp_path / "no-such-folder" / "t.parquet")


def test_rekeying_changes_keys_and_nothing_else():
    table = party_table(key="k")
    again = table.rekeyed(np.random.default_rng(1))
    np.testing.assert_array_equal(again.z, table.z)
    assert (again.cell_keys != table.cell_keys).any()
    inner = again.inner.key
    assert (inner[table.y == 0] == 0).all()
    np.testing.assert_array_equal(again.cell_keys, again.design.aggregate(inner) % 2**32)


class Fake:
    name, source = "fake", "table"

    def __call__(self, table, *, draws):
        noise = int(draws.generator(self, table).integers(1, 1000))
        return Protected.of(table.design, table.z + noise, STATEMENT)


def test_an_experiment_depends_on_its_seed_alone():
    table = party_table()
    first, second, other = (table.simulate(Fake(), seed=seed).z for seed in (4, 4, 5))
    np.testing.assert_array_equal(first, second)
    assert (first != other).all()
    with pytest.raises(ParameterError, match="seed"):
        table.protect(Fake(), seed=4)


def test_pictures_of_a_table():
    crosstab = repr(dc.Table.from_counts(COUNTS, count="n", margins="party*age"))
    assert "confidential" in crosstab
    assert crosstab.splitlines()[1].split() == ["party", "\\", "age", "old", "young", "Total"]
    assert crosstab.splitlines()[-1].split() == ["Total", "14", "4", "18"]
    long = repr(party_table())
    assert "party" in long
    assert (
        "<script"
        not in dc.Table.from_counts(
            COUNTS.assign(age="<script>alert(1)</script>"), count="n", margins="party*age"
        )._repr_html_()
    )


@pytest.mark.parametrize(("rows", "columns"), [(20, 2), (2, 20)])
def test_the_shorter_of_two_variables_stands_in_columns(rows, columns):
    design = dc.Design.product({"a": rows, "b": columns}, margins="a*b")
    lines = repr(dc.Table(design, CellValues(np.arange(design.n_published)))).splitlines()
    assert lines[1].split()[:3] == (["a", "\\", "b"] if rows > columns else ["b", "\\", "a"])
    assert len(lines[2].split()) == 1 + 2 + 1  # a code, two figures, their total
    first, second = design.published_codes()
    for line in lines[2:]:
        code, *figures = line.split()
        long, short = (first, second) if rows > columns else (second, first)
        of_line = [k for k in range(design.n_published) if long[1][long[0][k]] == code]
        told = {short[1][short[0][k]]: k for k in of_line}
        assert [int(f) for f in figures] == [told[c] for c in lines[1].split()[3:]] or code == "…"


def test_printed_groups_stand_above_their_parts():
    ages = dc.Hierarchy.from_dict({"All": {"young": ["y2", "y1"], "old": ["o1"]}})
    table = dc.Table.from_counts(
        pd.DataFrame({"age": ["y1", "y2", "o1"], "sex": ["f", "m", "f"], "n": [1, 2, 4]}),
        count="n",
        margins="age*sex",
        hierarchies={"age": ages},
    )
    lines = repr(table).splitlines()[2:]
    set_in = [line[: len(line) - len(line.lstrip())] + line.split()[0] for line in lines]
    assert set_in == ["young", "  y2", "  y1", "old", "  o1", "All"]
    assert [int(line.split()[-1]) for line in lines] == [3, 2, 1, 4, 4, 7]


def test_a_printed_hierarchy_is_a_tree():
    tree = dc.Hierarchy.from_dict({"All": {"A": ["a1", "a2"], "B": ["b1"]}})
    assert str(tree).splitlines()[1:] == ["All", "  A", "    a1", "    a2", "  B", "    b1"]
    long = str(dc.Hierarchy.flat([f"c{k}" for k in range(99)])).splitlines()
    assert (len(long), long[-1]) == (32, "… and 70 further codes")


def test_frames_out_agree():
    table = party_table(weight="w")
    assert (
        table.to_pandas()["count"].tolist()
        == table.to_polars()["count"].to_list()
        == table.z.tolist()
    )
    assert table.to_arrow().column_names == ["party", "age", "sex", "count", "weight"]


def test_lengths_must_fit_the_design():
    design = party_table().design
    with pytest.raises(DesignError, match="published cells"):
        dc.Table(design, CellValues(np.ones(3, dtype=int)))
    with pytest.raises(DesignError, match="published cells"):
        dc.Release(design, np.ones(3), STATEMENT)


def test_a_pickled_table_loses_its_secret():
    table = party_table(key="k").with_secret(dc.Secret.generate())
    assert pickle.loads(pickle.dumps(table)).secret is None


def test_hidden_cells_are_null_in_frames_and_survive_the_disk(tmp_path):
    table = party_table()
    status = np.zeros(table.design.n_published, dtype=np.int8)
    status[2] = CellStatus.below_threshold
    release = dc.Release(table.design, table.z, STATEMENT, status=status)
    frame = release.to_arrow()
    assert frame.column("count").to_pylist()[2] is None
    assert frame.column("count").null_count == 1
    assert frame.column("status").to_pylist()[2] == "below threshold"
    assert ":c" in repr(release)
    again = dc.facade.read_release(release.save(tmp_path / "r.parquet"))
    np.testing.assert_array_equal(again.status, status)


def test_the_total_alone_ignores_structural_zeros():
    table = dc.Table.from_counts(
        COUNTS, count="n", margins=[()], structural_zeros=[{"party": "A", "age": "young"}]
    )
    assert table.z.tolist() == [18]


# What comes in is believed only when it is true


def whole(total=95):
    return {"sex": ["f", "m", "Total"], "count": [43, 52, total]}


@pytest.mark.parametrize(
    ("frame", "margins", "why"),
    [
        (whole(99), "sex", r"total: 99 given, 95 summed"),
        (
            {
                "a": ["x", "y", "Total", "Total", "Total"],
                "b": ["Total", "Total", "Total", "u", "v"],
                "count": [5, 4, 9, 6, 4],
            },
            "a + b",
            r"total: 9 given, 10 summed",
        ),
    ],
)
def test_published_cells_that_do_not_add_up_are_refused_with_both_sums(frame, margins, why):
    with pytest.raises(DataError, match=why) as refused:
        dc.Table.from_frame(frame, margins)
    assert "adds_up=False" in str(refused.value)
    assert "summed" not in refused.value.public()


def test_hierarchies_are_checked_level_by_level():
    tree = dc.Hierarchy("Total", {"n1": "north", "n2": "north", "s": "Total", "north": "Total"})
    codes = ["n1", "n2", "s", "north", "Total"]
    right = {"place": codes, "count": [1, 2, 3, 3, 6]}
    assert dc.Table.from_frame(right, "place", hierarchies={"place": tree}).z.sum() == 15
    with pytest.raises(DataError, match="'north'.*4 given, 3 summed"):
        dc.Table.from_frame(
            {**right, "count": [1, 2, 3, 4, 6]}, "place", hierarchies={"place": tree}
        )


def test_a_table_meant_not_to_add_up_is_protected_cell_by_cell(tmp_path):
    odd = dc.Table.from_frame({**whole(99), "k": [1, 2, 3]}, "sex", key="k", adds_up=False)
    odd = dc.facade.read_table(odd.save(tmp_path / "odd.parquet"))
    assert odd.inner is None
    assert odd.protect(dc.CellKey(dc.perturbation_table(2, 1))).z[-1] != 95
    for method in (dc.Suppress(), dc.ControlledRounding(), dc.Safe(), dc.DiscreteLaplace(1.0)):
        with pytest.raises(ParameterError, match="adds_up=False.*cell-key"):
            odd.simulate(method, seed=1)


TOTALS = {
    "a": ["x", "x", "y", "y", "x", "y", "Total", "Total", "Total"],
    "b": ["u", "v", "u", "v", "Total", "Total", "u", "v", "Total"],
    "n": [1, 2, 4, 11, 3, 15, 5, 13, 18],
}


def renamed(frame, **names):
    return {c: [names.get(v, v) for v in values] for c, values in frame.items()}


@pytest.mark.parametrize("name", ["Total", "TOTAL", "_T", "(all)"])
@pytest.mark.parametrize("margins", ["a*b", "a"])
def test_rows_of_totals_are_not_counted_again(name, margins):
    """By name and by their sums, also where no margin names the variable."""
    table = dc.Table.from_counts(renamed(TOTALS, Total=name), "n", margins)
    assert table.z[table.design.position({})] == 18
    assert table.design.axes[0].leaves == ("x", "y")
    assert table.design.axes[0].total == "Total"


def test_totals_are_known_by_the_code_list():
    tree = dc.Hierarchy.flat(["x", "y"], root="Norway")
    frame = renamed(TOTALS, Total="Norway")
    frame["b"] = TOTALS["b"]
    table = dc.Table.from_counts(frame, "n", "a*b", hierarchies={"a": tree})
    assert table.z[table.design.position({})] == 18


@pytest.mark.parametrize(
    ("frame", "options", "why"),
    [
        ({**TOTALS, "n": [1, 2, 4, 11, 3, 15, 5, 13, 19]}, {}, "all: 19 given, 18 summed"),
        ({**TOTALS, "n": [1, 2, 4, 11, 3, 15, 6, 13, 18]}, {}, "b u: 6 given, 5 summed"),
        (
            {"a": list("pqr") * 3, "b": [*"xxx", *"yyy", *"zzz"], "n": [1, 2, 3, 4, 5, 9, 1, 7, 8]},
            {},
            r"code 'r' of variable 'a' is the sum of all others.*declared=\['a'\]",
        ),
        ({**TOTALS, "a": [*"xxyyxy", "Total", "All", "Total"]}, {}, "both sound like its total"),
    ],
)
def test_what_may_be_a_total_and_may_not_is_refused(frame, options, why):
    with pytest.raises(DataError, match=why):
        dc.Table.from_counts(frame, "n", "a*b", **options)


def test_a_declared_category_may_be_called_total():
    frame = {"a": ["x", "Total"], "n": [1, 5]}
    with pytest.raises(DataError, match="not the sums"):
        dc.Table.from_counts(frame, "n", "a")
    assert dc.Table.from_counts(frame, "n", "a", declared=True).z[-1] == 6
    sums = {"a": list("pqr") * 3, "b": [*"xxx", *"yyy", *"zzz"], "n": [1, 2, 3, 4, 5, 9, 1, 7, 8]}
    assert dc.Table.from_counts(sums, "n", "a*b", declared=["a"]).z[-1] == 40
