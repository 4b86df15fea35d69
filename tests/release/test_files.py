"""Releases in files: what is written comes back, under the name that says what it is."""

import json

import numpy as np
import pytest

import discreet as dc
from discreet import Release
from discreet.errors import DataError, ParameterError
from discreet.release import write_csv
from discreet.release.files import read_csv
from discreet.tables import CellStatus, PrivacyStatement, Sentence, Statement, Step

STATEMENT = Statement(
    (Step("protect:test", {"epsilon": 0.1}, (Sentence("noise", "Noise was added.", "Changed."),)),),
    PrivacyStatement(0.1, 0.0, 0.2, 0.0, 1.0, "record"),
    "0.2.0",
)
TREE = dc.Hierarchy.from_columns(
    {"part": ["n", "n", "s"], "place": ["n1", "n2", "s1"]}, ["part", "place"]
)


def design():
    axes = [
        dc.design.Axis.from_hierarchies("place", [TREE]),
        dc.design.Axis.flat("status", ["a", "=b", "-1", "47"]),
        dc.design.Axis.flat("count", ["x", 'ä, \n"y"']),
    ]
    return dc.Design.product(axes, "place*status*count")


def release(z, d=None, **parts):
    return Release(design() if d is None else d, z, STATEMENT, **parts)


def same(left, right):
    assert left.statement == right.statement
    assert left.unit == right.unit
    assert left.design.terms == right.design.terms
    assert left.design.published_codes()[0][1] == right.design.published_codes()[0][1]
    assert [a.declared for a in left.design.axes] == [a.declared for a in right.design.axes]
    for name in ("z", "y", "status", "precision", "quality"):
        a, b = getattr(left, name), getattr(right, name)
        assert (a is None) == (b is None), name
        if a is not None:
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


@pytest.fixture(params=["whole", "fractions", "hidden", "graded"])
def any_release(request):
    n = design().n_published
    rng = np.random.default_rng(5)
    counts = rng.integers(-5, 10**15, n)
    if request.param == "whole":
        return release(counts, unit="weight")
    if request.param == "fractions":
        precision = np.where(np.arange(n) < 7, np.inf, 1 / 3)
        return release(rng.normal(0, 1e6, n), precision=precision)
    status = rng.integers(0, 4, n).astype(np.int8)
    hidden = np.isin(status, [CellStatus.suppressed, CellStatus.below_threshold])
    if request.param == "hidden":
        return release(np.where(hidden, 0, counts), status=status)
    return release(counts, quality=rng.integers(-1, 3, n))


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".CSV"])
def test_a_release_comes_back_as_it_was_written(any_release, tmp_path, ending):
    path = any_release.save(tmp_path / f"release{ending}")
    same(any_release, dc.facade.read_release(path))
    same(any_release, dc.read(path))


def test_a_csv_file_in_another_order_is_the_same_release(any_release, tmp_path):
    path = write_csv(any_release, tmp_path / "release.csv")
    table = any_release.to_frame()
    shuffled = table.take(np.random.default_rng(1).permutation(len(table)))
    (tmp_path / "release.csv").write_bytes(_csv(shuffled))
    same(any_release, read_csv(path))


def _csv(table):
    from discreet.release.formats.csv import csv_bytes

    return csv_bytes(table)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_inner_cells_come_back(tmp_path, ending, kind):
    d = design()
    y = np.random.default_rng(3).normal(0, 40, d.n_inner).round(0 if kind is np.int64 else 15)
    y[:3] = 0
    made = release(d.aggregate(y.astype(kind)), y=y.astype(kind))
    same(made, dc.facade.read_release(made.save(tmp_path / f"r{ending}")))


def test_inner_cells_on_structural_zeros_come_back_in_any_order(tmp_path):
    axes = [dc.design.Axis.flat("a", "xyz"), dc.design.Axis.flat("count", "uv")]
    d = dc.Design.sparse(axes, "a*count", [np.array([0, 1, 2]), np.array([1, 0, 1])])
    made = release(d.aggregate(np.array([5, 7, 9])), d, y=np.array([5, 7, 9]))
    path = made.save(tmp_path / "r.csv")
    inner = tmp_path / "r.inner.csv"
    head, *rows = inner.read_text().splitlines()
    inner.write_text("\n".join([head, *rows[::-1]]))
    same(made, dc.facade.read_release(path))


@pytest.mark.parametrize("damage", ["missing", "twice", "code", "renamed", "text"])
def test_damaged_inner_cells_are_refused(tmp_path, damage):
    d = design()
    y = np.arange(d.n_inner)
    path = release(d.aggregate(y), y=y).save(tmp_path / "r.csv")
    inner = tmp_path / "r.inner.csv"
    text = inner.read_text()
    lines = text.splitlines(keepends=True)
    changed = {
        "twice": "".join([*lines, lines[-1]]),
        "code": text.replace("n1", "n7"),
        "renamed": text.replace("place", "plac"),
        "text": "nothing",
    }
    if damage == "missing":
        inner.unlink()
    else:
        inner.write_text(changed[damage])
    with pytest.raises(DataError, match="inner cells"):
        dc.facade.read_release(path)


def test_decimals_in_place_of_suppressed_cells_come_back(tmp_path):
    d = dc.Design.product({"row": 3, "col": 3}, "row*col")
    table = dc.Table.from_inner(d, np.array([3, 11, 32, 30, 1, 9, 13, 8, 2]))
    made = table.with_secret(dc.Secret.demo()).protect("suppress", max=3, decimals="rmse")
    found = dc.facade.read_release(made.save(tmp_path / "r.csv"))
    same(made, found)
    same(made.tabulate("row"), found.tabulate("row"))


def test_structural_zeros_come_back(tmp_path):
    axes = [dc.design.Axis.flat("a", "xyz"), dc.design.Axis.flat("b", "uv")]
    d = dc.Design.sparse(axes, "a*b", [np.array([0, 1, 2]), np.array([1, 0, 1])])
    found = dc.facade.read_release(release(np.arange(d.n_published), d).save(tmp_path / "r.csv"))
    np.testing.assert_array_equal(found.design.inner_flat, d.inner_flat)
    np.testing.assert_array_equal(found.z, np.arange(d.n_published))


def test_a_table_of_one_total_comes_back(tmp_path):
    d = dc.Design.product([dc.design.Axis.flat("a", "xy")], [()])
    found = dc.facade.read_release(release(np.array([7]), d).save(tmp_path / "r.csv"))
    assert found.z.tolist() == [7]


def test_a_private_release_in_csv_can_be_fitted_and_assessed(tmp_path):
    frame = {"region": ["a", "a", "b", "b"], "sex": ["m", "f"] * 2, "count": [40, 30, 20, 10]}
    table = dc.Table.from_counts(frame, "count", "region*sex", declared=True)
    made = table.protect("discrete-laplace", epsilon=1.0, known="1")
    read = dc.facade.read_release(made.save(tmp_path / "release.csv"))
    same(made, read)
    np.testing.assert_array_equal(made.fit().z, read.fit().z)
    assert dc.assess(table, read).frame == dc.assess(table, made).frame


@pytest.mark.parametrize("damage", ["missing", "other", "short", "renamed", "text"])
def test_a_csv_file_without_its_own_statement_is_refused(tmp_path, damage):
    made = release(np.arange(design().n_published))
    path = made.save(tmp_path / "r.csv")
    statement = tmp_path / "r.statement.json"
    lines = path.read_text().splitlines(keepends=True)
    if damage == "missing":
        statement.unlink()
    if damage == "other":
        statement.write_text(json.dumps({**json.loads(statement.read_text()), "format": 99}))
    if damage == "short":
        path.write_text("".join(lines[:-1]))
    if damage == "renamed":
        path.write_text("".join(lines).replace('"n1"', '"n3"'))
    if damage == "text":
        statement.write_text("Noise was added.")
    with pytest.raises(DataError, match=r"statement|newer version"):
        dc.facade.read_release(path)


@pytest.mark.parametrize("name", ["t.csv", "t.xlsx", "t"])
def test_a_table_is_not_written_under_the_name_of_another_format(tmp_path, name):
    frame = {"region": ["a", "b"], "count": [4, 3]}
    table = dc.Table.from_counts(frame, "count", "region")
    with pytest.raises(ParameterError, match=r"must end in \.parquet"):
        table.save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_release_is_written_in_no_format_but_those_its_name_can_say(tmp_path):
    with pytest.raises(ParameterError, match=r"\.parquet, \.pq or \.csv"):
        release(np.arange(design().n_published)).save(tmp_path / "r.xlsx")
