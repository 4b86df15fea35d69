"""Tables of a release: named, taken alone, with the values of the whole after every method."""

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet import registry
from discreet.errors import DesignError, UnknownNameError
from discreet.facade import read_release
from discreet.ledger import Ledger
from tests.protect.methods import FOR_COUNTS

CODES = {"region": ["N", "S", "W"], "age": ["0-17", "18-64", "65+"], "sex": ["f", "m"]}
NAMES = {"Age by region": "region*age", "Sex by region": "region*sex", "Sex": "sex"}
KEYS = {"D": 3, "V": 1.0}
PARAMETERS = {
    "adjust": KEYS,
    "cell-key": KEYS,
    "quality": KEYS,
    "discrete-laplace": {"epsilon": 1.0},
    "discrete-gaussian": {"rho": 0.1},
    "laplace": {"epsilon": 1.0},
    "suppress": {"rules": "threshold(3)"},
}


def linked(margins=NAMES, **options):
    rng = np.random.default_rng(7)
    cells = [(r, a, s) for r in CODES["region"] for a in CODES["age"] for s in CODES["sex"]]
    frame = dict(zip(CODES, map(list, zip(*cells, strict=True)), strict=True))
    frame["count"] = rng.integers(0, 9, len(cells)).tolist()
    frame["key"] = rng.integers(0, 2**32, len(cells)).tolist()
    table = dc.Table.from_counts(
        frame, "count", margins, key="key", declared=True, name="people", **options
    )
    return table.with_secret(dc.Secret.demo())


def cells_of(release):
    """Values and status by their codes, variables that are totals left out."""
    rows = release.to_arrow().to_pylist()
    codes = {axis.name: axis.total_codes for axis in release.design.axes}
    values = [name for name in rows[0] if name not in codes]
    return {
        frozenset((name, row[name]) for name in codes if row[name] not in codes[name]): tuple(
            row[name] for name in values
        )
        for row in rows
    }


def firms():
    """Sums of invented turnovers, for methods that publish sums."""
    rng, n = np.random.default_rng(5), 400
    frame = {name: rng.choice(codes, n).tolist() for name, codes in CODES.items()}
    frame |= {"firm": list(range(n)), "turnover": rng.integers(1, 900, n).tolist()}
    data = dc.open(pa.table(frame), id="firm", secret=dc.Secret.demo(), name="people")
    return data.tabulate(NAMES, value="turnover")


@pytest.mark.parametrize("method", sorted(registry.METHODS))
def test_every_method_gives_tables_with_the_values_of_the_whole(method, tmp_path):
    ledger = Ledger(tmp_path / "ledger.db", epsilon=100.0, delta=0.001)
    table = linked() if method in FOR_COUNTS else firms()
    release = table.protect(method, ledger=ledger, **PARAMETERS.get(method, {}))
    check_tables(release, ledger)


def check_tables(release, ledger):
    """Each table has the values of the whole; nothing is drawn, and nothing is paid."""
    rows = ledger.rows()
    whole = cells_of(release)
    assert [*release.tables] == [*NAMES]
    for name in release.tables:
        part = release[name]
        assert isinstance(part, dc.Release)
        assert part.statement == release.statement
        assert cells_of(part).items() <= whole.items()
        assert {axis.name for axis in part.design.axes} == set(
            NAMES[name].replace("*", " ").split()
        )
        assert part.z.dtype == release.z.dtype
        for parts in ("status", "precision", "quality"):
            assert (getattr(part, parts) is None) == (getattr(release, parts) is None)
        again = release.tabulate(NAMES[name])
        if release.y is None:  # decimals in place of hidden cells are judged anew with inner cells
            assert cells_of(again) == cells_of(part)
    assert set().union(*(cells_of(release[name]) for name in release.tables)) == set(whole)
    assert ledger.rows() == rows, "a table was entered again, so something was paid for it"


def test_a_wrong_place_of_cells_would_be_noticed(monkeypatch):
    release = linked().protect("cell-key", **KEYS)
    table = release["Age by region"]
    moved = table.with_parts(z=np.roll(table.z, 1))
    assert not cells_of(moved).items() <= cells_of(release).items()


def test_names_are_made_of_the_largest_margins():
    table = linked("region*age + age*region + region:sex + 1 + age")
    assert [*table.tables] == ["Region by age", "Region by sex"]
    assert table.tables["Region by sex"] == [("region", "sex"), ("region",), ()]
    assert [*linked([()]).tables] == ["Total"]
    assert [*linked("sex").tables] == ["Sex"]
    assert dc.Design.from_matrix(np.eye(2)).tables == {}


def test_names_must_be_names():
    with pytest.raises(DesignError.__base__, match="Age by region"):
        linked({"": "region"})
    with pytest.raises(UnknownNameError, match="Sex by region"):
        linked().protect("cell-key", **KEYS)["Sex by regon"]


def test_levels_of_a_hierarchy_lie_in_one_table():
    people = dc.demo.census(persons=300)
    table = people.tabulate("region*sex + region[province]*marital")
    assert [*table.tables] == ["Region by sex", "Region (province) by marital"]
    release = table.protect("cell-key", **KEYS)
    part = release["Region (province) by marital"]
    assert part.design.n_published < release["Region by sex"].design.n_published
    assert cells_of(part).items() <= cells_of(release).items()


def test_structural_zeros_stay_impossible_in_a_table():
    zeros = [{"age": "0-17", "region": "W"}, {"region": ["N", "S", "W"], "sex": "f", "age": "65+"}]
    frame = {"region": ["N", "W"], "age": ["0-17", "65+"], "sex": ["f", "m"], "count": [4, 9]}
    hierarchies = {name: dc.Hierarchy.flat(codes) for name, codes in CODES.items()}
    table = dc.Table.from_counts(
        frame, "count", NAMES, structural_zeros=zeros, hierarchies=hierarchies
    ).with_secret(dc.Secret.demo())
    release = table.protect("safe")
    part = release["Age by region"]
    assert cells_of(part).items() <= cells_of(release).items()
    assert frozenset({("age", "0-17"), ("region", "W")}) not in cells_of(part)
    assert np.array_equal(part.design.aggregate(part.y), part.z)


def test_a_table_is_fitted_and_rounded_with_the_others_alone():
    release = linked().protect("cell-key", **KEYS).fit("non-negative")
    with pytest.raises(DesignError, match="together"):
        release["Sex"].fit()
    with pytest.raises(DesignError, match="together"):
        release["Sex"].round(seed=1)
    whole = release.round(seed=1)
    assert cells_of(whole["Age by region"]).items() <= cells_of(whole).items()


def test_margins_that_were_not_published_are_refused_without_inner_cells():
    release = linked().protect("cell-key", **KEYS)
    with pytest.raises(DesignError, match="region:age"):
        release.tabulate("age*sex")
    assert release.fit("non-negative").tabulate("age*sex").design.n_published == 12


def test_no_constant_total_is_shown():
    release = linked().protect("safe")
    further = release.tabulate("region*sex")
    assert [axis.name for axis in further.design.axes] == ["region", "sex"]
    assert "age" not in repr(further)
    assert np.array_equal(further.design.aggregate(further.y), further.z)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_names_survive_files(tmp_path, ending):
    release = linked().protect("cell-key", **KEYS)
    read = read_release(release.save(tmp_path / f"release.{ending}"))
    assert read.tables == release.tables
    part = read_release(release["Sex"].save(tmp_path / f"part.{ending}"))
    assert part.table_name == "Sex"
    assert cells_of(part) == cells_of(release["Sex"])
    table = dc.read(linked().save(tmp_path / "table.parquet"))
    assert table.tables == linked().tables


def test_printing_shows_each_table_once_and_the_public_text():
    release = linked().protect("cell-key", **KEYS)
    text, page = repr(release), release._repr_html_()
    for name in NAMES:
        assert f"\n{name}: " in text
        assert f"{name}: " in page
    assert "age \\ sex" not in text
    assert release.statement.plain in page
    assert "Limit the tables" not in text
