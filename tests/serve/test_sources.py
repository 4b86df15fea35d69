"""Where cubes come from: an inner table, keyed noise on the fly, a universe of private tables."""

import itertools
import math
import multiprocessing
import os
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from discreet import Hierarchy, Secret
from discreet.design.axis import axes_of
from discreet.errors import DataError, DesignError, ParameterError, UnknownNameError
from discreet.ledger import Ledger
from discreet.publication import Choice, Publication
from discreet.serve import (
    DiskCache,
    InnerSource,
    InnerTable,
    LiveSource,
    PrivateSource,
    RecipeTables,
    Refusal,
    write_build,
)
from discreet.serve.build import require_inner
from discreet.serve.data import inner
from discreet.serve.data.cache import read_cube, write_cube
from discreet.serve.data.inner import POINTER, read_build
from tests.serve.records import RECIPE, small_country
from tests.serve.sites import inner_table, live


def offered(source):
    return {v.name: [d.name for d in v.details] for v in source.variables}


EVERYTHING = {
    "region": ["region", "region[part]", "region[county]", "region[leaves]"],
    "age": ["age"],
    "sex": ["sex"],
}


def test_a_variable_offers_every_level_and_each():
    assert offered(InnerSource(inner_table())) == EVERYTHING
    assert offered(LiveSource(RECIPE, small_country())) == EVERYTHING


def test_a_named_level_offers_that_level_alone():
    names = ["region[part]", "county", "sex"]
    wanted = {"region": ["region[part]", "county"], "sex": ["sex"]}
    once = InnerSource(inner_table(), names)
    assert offered(once) == wanted
    assert [d.label for d in once.variables[0].details] == ["part", "county"]
    recipe = RECIPE.of([("region[part]",), ("county", "sex")])
    assert offered(LiveSource(recipe, small_country())) == wanted
    assert once.cube(("county",), "count").values.shape == (4,)


def test_labels_are_those_of_the_site():
    source = InnerSource(inner_table(), ["region"], {"region": "Where they live"})
    assert source.variables[0].label == "Where they live"
    assert InnerSource(inner_table(), ["age"]).variables[0].label == "Age"


def test_a_table_is_summed_in_pieces(monkeypatch):
    whole = inner_table().margin(["region"])
    monkeypatch.setattr(inner, "_CHUNK", 5)
    np.testing.assert_array_equal(inner_table().margin(["region"]), whole)
    assert len(inner_table().values) > 4 * len(whole)


@pytest.mark.parametrize("scale", [1, 1 / 3])
def test_a_table_is_the_same_whether_its_finest_categories_are_crossed_or_not(monkeypatch, scale):
    table = replace(inner_table(), values=inner_table().values * scale)
    source = InnerSource(table)
    details = [[None, *(d.name for d in v.details)] for v in source.variables]
    for chosen in [*itertools.product(*details)][1:]:
        asked = tuple(name for name in chosen if name)
        whole = source.cube(asked, "count")
        with monkeypatch.context() as patch:
            patch.setattr(inner, "_MOST_LEAVES", -1)
            found = source.cube(asked, "count")
        assert found.axes == whole.axes
        np.testing.assert_array_equal(found.status, whole.status)
        np.testing.assert_allclose(found.values, whole.values, rtol=1e-12)
        assert found.values.dtype == whole.values.dtype


def test_a_coarse_table_of_many_categories_costs_what_its_cells_do():
    """Thirty million combinations of the finest categories: 700 MB as an array."""
    trees = {
        v: Hierarchy.from_dict(
            {"T": {f"{v}{k}": [f"{v}{k}-{j}" for j in range(15)] for k in "abcde"}}
        )
        for v in "wxyz"
    }
    axes = tuple(replace(axis, declared=True) for axis in axes_of(trees))
    codes = tuple(np.arange(3_000) * (7 + k) % 75 for k in range(4))
    zeros = [{"w": ["wa"], "x": ["xb", "xc-1"]}]
    table = replace(inner_table(), axes=axes, codes=codes, values=np.ones(3_000, int), zeros=())
    for rules in ((), zeros):
        kept = ~((codes[0] < 15) & ((codes[1] // 15 == 1) | (codes[1] == 31))) if rules else ...
        some = tuple(c[kept] for c in codes)
        source = InnerSource(replace(table, codes=some, values=table.values[kept], zeros=rules))
        tracemalloc.start()
        cube = source.cube(tuple(f"{v}[1]" for v in "wxyz"), "count")
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert most < 30_000_000
        assert cube.values[0, 0, 0, 0] == len(some[0])
        inside = np.array([np.bincount(c // 15, minlength=5) for c in some])
        np.testing.assert_array_equal(cube.values[1:, 0, 0, 0], inside[0])
        np.testing.assert_array_equal(cube.values[0, 0, 0, 1:], inside[3])


def test_what_is_not_there_cannot_be_offered():
    with pytest.raises(UnknownNameError, match="height"):
        InnerSource(inner_table(), ["height"])


def test_an_inner_table_comes_back_from_its_folder(tmp_path):
    table = replace(inner_table(), made_from="abc")
    place = write_build(table, tmp_path / "once")
    found = read_build(tmp_path / "once", "abc")
    assert isinstance(found.values, np.memmap)
    assert all(isinstance(c, np.memmap) for c in found.codes)
    np.testing.assert_array_equal(found.margin(["age", "sex"]), table.margin(["age", "sex"]))
    assert found.statement.text == table.statement.text
    assert (found.edition, found.unit, found.zeros) == (table.edition, table.unit, table.zeros)
    assert sorted(p.name for p in tmp_path.joinpath("once").glob("[!.]*")) == [place.name, POINTER]


def test_a_stale_build_is_told(tmp_path):
    write_build(replace(inner_table(), made_from="abc"), tmp_path / "once")
    with pytest.raises(DataError, match="another recipe, edition or code list"):
        read_build(tmp_path / "once", "abd")
    with pytest.raises(DataError, match="has not been built"):
        read_build(tmp_path / "other", "abc")


def test_a_build_that_breaks_off_leaves_the_old_one(tmp_path, monkeypatch):
    folder = tmp_path / "once"
    write_build(replace(inner_table(), made_from="old"), folder)

    def broken(self, place):
        (place / "codes0.npy").write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(InnerTable, "write", broken)
    with pytest.raises(KeyboardInterrupt):
        write_build(replace(inner_table(), made_from="new"), folder)
    assert read_build(folder, "old").made_from == "old"
    assert not list(folder.glob("*.part"))


def test_what_a_killed_build_left_is_removed_after_a_day(tmp_path):
    old, new = (tmp_path / "once" / f"build-{k}.part" for k in "ab")
    for folder in (old, new):
        folder.mkdir(parents=True)
    os.utime(old, (0, 0))
    write_build(inner_table(), tmp_path / "once")
    assert (old.exists(), new.exists()) == (False, True)


def test_builds_before_the_last_two_are_removed(tmp_path):
    places = [write_build(inner_table(), tmp_path / "once") for _ in range(4)]
    assert [p.is_dir() for p in places] == [False, False, True, True]


def _build(folder):
    write_build(inner_table(), folder)


def test_builds_at_the_same_time_leave_a_whole_one(tmp_path):
    inner_table()
    context = multiprocessing.get_context("fork")
    all_ = [context.Process(target=_build, args=(tmp_path / "once",)) for _ in range(6)]
    for process in all_:
        process.start()
    for process in all_:
        process.join()
    assert [process.exitcode for process in all_] == [0] * 6
    assert len(read_build(tmp_path / "once", "").values)


def test_a_file_that_is_no_inner_table_is_a_clear_error(tmp_path):
    place = write_build(inner_table(), tmp_path / "once")
    (place / "values.npy").write_bytes(b"nothing of the kind")
    with pytest.raises(DataError, match="Build it again"):
        read_build(tmp_path / "once", "")


def test_only_a_release_with_inner_cells_can_be_summed():
    release = RECIPE.run(small_country())
    with pytest.raises(DesignError, match="inner cells are not part of this release"):
        InnerTable.of(release, "1")
    for refused in (Choice("cell-key", {"D": 5, "V": 3, "js": 2}), Choice("small-count-rounding")):
        with pytest.raises(ParameterError, match="releases no inner cells"):
            require_inner(Publication("sex", refused))


INNER = [
    Publication("region*age*sex", Choice("small-count-rounding", {"base": 3, "force_inner": True})),
    Publication(
        "region*sex + age*sex",
        Choice("discrete-laplace", {"epsilon": 1.0}),
        fitter=Choice("non-negative"),
        rounding="margins",
        seed=1,
    ),
    Publication(
        "region*sex + age*sex", Choice("discrete-laplace", {"epsilon": 1.0}), Choice("non-negative")
    ),
]


@pytest.mark.parametrize("recipe", INNER, ids=["rounding", "private, whole", "private, decimals"])
def test_every_recipe_with_inner_cells_can_be_released_once(recipe):
    require_inner(recipe)
    table = recipe.tabulate(small_country()).with_secret(Secret.demo())
    release = recipe.run(table)
    source = InnerSource(InnerTable.of(release, "1"))
    found = source.cube(("age", "sex"), "count")
    expected = release.tabulate("age*sex")
    for cell, value in zip(expected.to_arrow().to_pylist(), expected.z, strict=True):
        place = tuple(found.axis(name).place(cell[name]) for name in ("age", "sex"))
        assert found.values[place] == pytest.approx(value)
    assert release.statement.text in found.statement.text


REFUSED = {
    "safe": {},
    "small-count-rounding": {},
    "controlled-rounding": {},
    "pram": {"invariant": True},
    "cell-key": {"D": 5, "V": 3, "js": 2, "margins": "adjusted"},
    "drop-add": {"margins": "summed"},
    "discrete-laplace": {"epsilon": 1.0},
}


@pytest.mark.parametrize("name", REFUSED)
def test_methods_that_draw_for_a_whole_table_are_refused_on_the_fly(name):
    recipe = Publication("age*sex", Choice(name, REFUSED[name]))
    with pytest.raises(ParameterError, match="average it away"):
        LiveSource(recipe, small_country())


def test_a_fit_draws_for_a_whole_table_too():
    recipe = replace(RECIPE, fitter=Choice("least-squares"))
    with pytest.raises(ParameterError, match="average it away"):
        LiveSource(recipe, small_country())


def test_found_codes_are_refused():
    records = small_country()
    records.declared = False
    with pytest.raises(ParameterError, match="found in the records"):
        LiveSource(RECIPE.of("age"), records)


def test_the_engine_is_asked_once_for_what_is_on_a_shelf(tmp_path):
    records = small_country()
    source = LiveSource(RECIPE, records, disk_cache=DiskCache(tmp_path, "a"), keeps_all=True)
    first = source.cube(("age", "sex"), "count")
    asked = len(records.asked)
    other = LiveSource(RECIPE, small_country(seed=2), disk_cache=DiskCache(tmp_path, "a"))
    np.testing.assert_array_equal(other.cube(("age", "sex"), "count").values, first.values)
    assert len(records.asked) == asked
    another = LiveSource(RECIPE, small_country(seed=2), disk_cache=DiskCache(tmp_path, "b"))
    assert (another.cube(("age", "sex"), "count").values != first.values).any()


def test_a_cube_comes_back_from_its_file(tmp_path):
    cube = live().source.cube(("region", "age"), "count")
    write_cube(cube, tmp_path / "cube.npz")
    found = read_cube(tmp_path / "cube.npz")
    assert found.axes == cube.axes
    np.testing.assert_array_equal(found.values, cube.values)
    np.testing.assert_array_equal(found.status, cube.status)
    assert (found.unit, found.statement.text) == (cube.unit, cube.statement.text)
    (tmp_path / "cube.npz").write_bytes(b"no cube")
    with pytest.raises(DataError, match="Remove the file"):
        read_cube(tmp_path / "cube.npz")


@pytest.mark.parametrize("room", [10**9, math.inf])
def test_a_flipped_bit_of_a_kept_cube_is_never_shown(tmp_path, room, caplog):
    """What may be made again is; a private table is not drawn a second time."""
    cube, cache = live().source.cube(("age",), "count"), DiskCache(tmp_path, "a", room)
    cache.get(("age",), lambda: cube)
    (path,) = tmp_path.glob("*.npz")
    content = bytearray(path.read_bytes())
    content[content.index(cube.values.tobytes())] ^= 1
    path.write_bytes(bytes(content))
    if room == math.inf:
        with pytest.raises(DataError, match="Remove the file"):
            cache.get(("age",), lambda: pytest.fail("drawn again"))
        return
    for _ in range(2):
        np.testing.assert_array_equal(cache.get(("age",), lambda: cube).values, cube.values)
    assert len(caplog.records) == 1


def _fill(folder, made):
    def make():
        with open(made, "a") as file:
            file.write("x")
        return live().source.cube(("sex",), "count")

    DiskCache(folder, "a").get(("sex",), make)


def test_processes_make_a_cube_once(tmp_path):
    context = multiprocessing.get_context("fork")
    made = tmp_path / "made"
    all_ = [context.Process(target=_fill, args=(tmp_path / "shelf", made)) for _ in range(4)]
    for process in all_:
        process.start()
    for process in all_:
        process.join()
    assert made.read_text() == "x"


UNIVERSE = [("region", "sex"), ("age", "sex"), ("sex",), ()]
PRIVATE = Publication(UNIVERSE, Choice("discrete-laplace", {"epsilon": 0.5}))


@pytest.fixture
def private(tmp_path):
    people = dc.demo.census(persons=500).recode(region="province")
    data = people.named("private", "1").with_ledger(Ledger(tmp_path / "ledger.db", epsilon=1.0))
    tables = RecipeTables(PRIVATE, data)
    return lambda: PrivateSource(tables, DiskCache(tmp_path / "shelf", "a"))


def test_a_private_table_is_drawn_once_and_its_cost_is_shown(private):
    source = private()
    assert [set(t) for t in source.universe] == [{"region", "sex"}, {"age", "sex"}]
    assert (source.budget.spent, source.budget.limit, source.budget.drawn) == (0, 1.0, 0)
    first = source.cube(("age", "sex"), "count")
    assert (source.budget.spent, source.budget.drawn, source.budget.tables) == (0.5, 1, 2)
    again = private().cube(("age", "sex"), "count")
    np.testing.assert_array_equal(again.values, first.values)
    assert private().budget.spent == 0.5


@pytest.mark.parametrize(
    "recipe",
    [PRIVATE, replace(PRIVATE, fitter=Choice("non-negative"), rounding="margins", seed=1)],
    ids=["noise", "fitted"],
)
def test_what_is_said_of_a_private_table_is_known_before_it_is_drawn(recipe, tmp_path):
    people = dc.demo.census(persons=500).recode(region="province")
    data = people.named("private", "1").with_ledger(Ledger(tmp_path / "ledger.db", epsilon=1.0))
    source = PrivateSource(RecipeTables(recipe, data), DiskCache(tmp_path / "shelf", "a"))
    before = source.statement.to_json()
    assert source.budget.spent == 0
    assert source._draw(source.universe[0]).statement.to_json() == before
    assert source.budget.spent == 0.5


def test_parts_of_a_private_table_cost_nothing(private):
    source = private()
    whole = source.cube(("age", "sex"), "count")
    age = source.cube(("age",), "count")
    np.testing.assert_array_equal(age.values, whole.at("sex", "TOTAL").values)
    broad = source.cube(("age[broad_age]",), "count")
    kept = [whole.axis("age").place(c) for c in broad.axis("age").codes]
    np.testing.assert_array_equal(broad.values, whole.at("sex", "TOTAL").values[kept])
    assert [e.is_sum for e in broad.axis("age").entries[1:]] == [False] * 3
    assert source.budget.spent == 0.5


def test_what_was_not_planned_is_refused_with_the_plan(private):
    source = private()
    with pytest.raises(Refusal) as caught:
        source.cube(("region", "age"), "count")
    assert caught.value.code == "not_planned"
    assert len(caught.value.offers) == 2
    assert source.budget.spent == 0


def test_a_spent_budget_is_a_refusal(private, tmp_path):
    source = private()
    source.cube(("age", "sex"), "count")
    source.cube(("region", "sex"), "count")
    assert source.budget.spent == 1.0
    for path in (tmp_path / "shelf").glob("*.npz"):
        path.unlink()
    with pytest.raises(Refusal) as caught:
        private().cube(("age", "sex"), "count")
    assert caught.value.code == "budget_spent"


def test_private_tables_need_a_ledger(tmp_path):
    tables = RecipeTables(PRIVATE, dc.demo.census(persons=500).recode(region="province"))
    with pytest.raises(ParameterError, match="ledger"):
        PrivateSource(tables, DiskCache(tmp_path, "a"))
