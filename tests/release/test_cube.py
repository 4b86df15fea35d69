"""A release as a labelled array."""

import time

import numpy as np
import pytest

import discreet as dc
from discreet import Release
from discreet.design.formula import heading_of
from discreet.errors import DesignError, UnknownNameError
from discreet.release import Cube, CubeAxis, CubeEntry
from discreet.release.cube import ABSENT
from discreet.tables import CellStatus, Statement

AGE = dc.Hierarchy("all", {"young": "all", "old": "all", "a": "young", "b": "young", "c": "old"})


def release_of(margins, y=None, status=None):
    axes = [dc.design.Axis.from_hierarchies("age", [AGE]), dc.design.Axis.flat("sex", ["f", "m"])]
    design = dc.Design.product(axes, margins=margins)
    y = np.arange(1, 7) if y is None else np.asarray(y)
    return Release(design, design.aggregate(y), Statement(()), y=y, status=status)


def value(cube, *codes):
    return cube.values[tuple(a.place(c) for a, c in zip(cube.axes, codes, strict=True))]


def test_every_cell_stands_at_its_codes():
    release = release_of("age*sex")
    cube = Cube.of(release)
    for row in release.to_arrow().to_pylist():
        assert value(cube, row["age"], row["sex"]) == row["count"]
    assert cube.is_shown.sum() == release.design.n_published


def test_entries_stand_in_reading_order_under_their_groups():
    axis = Cube.of(release_of("age*sex")).axis("age")
    assert axis.codes == ("all", "young", "a", "b", "old", "c")
    assert [e.depth for e in axis.entries] == [0, 1, 2, 2, 1, 2]


def test_thousands_of_codes_are_found_at_once():
    entries = tuple(CubeEntry(f"c{k}", f"c{k}", 1, is_sum=False) for k in range(20_000))
    axis = CubeAxis("place", "Place", entries)
    start = time.perf_counter()
    assert [axis.place(entry.code) for entry in entries] == list(range(20_000))
    assert time.perf_counter() - start < 2


def test_a_code_that_two_entries_have_is_the_first_of_them():
    entries = tuple(CubeEntry(code, code, 1, is_sum=False) for code in ("a", "b", "a"))
    assert CubeAxis("place", "Place", entries).place("a") == 0


def test_one_level_shows_its_codes_alone():
    cube = Cube.of(release_of("age[1]*sex"))
    assert cube.axis("age").codes == ("all", "young", "old")
    assert cube.is_shown.all()


def test_margins_that_were_not_asked_for_are_absent():
    cube = Cube.of(release_of("age + sex"))
    assert cube.status[cube.axis("age").place("a"), cube.axis("sex").place("f")] == ABSENT
    assert value(cube, "a", "Total") == 3


def test_a_sum_of_codes_is_the_sum_of_their_values():
    cube = Cube.of(release_of("age*sex"))
    by_sex = cube.sum_over("age", ["a", "old"])
    assert by_sex.names == ("sex",)
    assert by_sex.values.tolist() == [3 + 11, 1 + 5, 2 + 6]


def test_groups_keep_the_total():
    cube = Cube.of(release_of("age*sex")).group("age", {"ends": ["a", "c"]})
    assert cube.axis("age").codes == ("all", "ends")
    assert value(cube, "all", "Total") == 21
    assert value(cube, "ends", "f") == 1 + 5


def test_a_sum_with_a_hidden_part_is_hidden():
    status = np.zeros(release_of("age*sex").design.n_published, dtype=np.int8)
    plain = Cube.of(release_of("age*sex"))
    rows = release_of("age*sex").to_arrow().to_pylist()
    place = next(k for k, r in enumerate(rows) if (r["age"], r["sex"]) == ("a", "f"))
    status[place] = CellStatus.suppressed
    cube = Cube.of(release_of("age*sex", status=status)).sum_over("age", ["a", "b"])
    assert plain.sum_over("age", ["a", "b"]).is_shown.all()
    assert cube.status.tolist() == [0, CellStatus.suppressed, 0]


def test_impossible_cells_add_nothing_and_stay_impossible_among_themselves():
    status = np.array([0, 2, 2], dtype=np.int8)
    axis = Cube.of(release_of("sex", status=None))
    cube = Cube(axis.axes[1:], np.array([5, 9, 9]), status, "count", axis.statement)
    both = cube.sum_over("sex", ["f", "m"])
    mixed = cube.sum_over("sex", ["Total", "m"])
    assert both.status == CellStatus.structural_zero
    assert (int(mixed.values), int(mixed.status)) == (5, CellStatus.published)


def test_a_hidden_part_beside_an_impossible_one_hides_the_sum():
    whole = Cube.of(release_of("sex", status=None))
    status = np.array([0, CellStatus.suppressed, CellStatus.structural_zero], dtype=np.int8)
    cube = Cube(whole.axes[1:], np.array([5, 9, 0]), status, "count", whole.statement)
    assert cube.sum_over("sex", ["f", "m"]).status == CellStatus.suppressed


def test_shares_are_per_cent_of_the_released_total():
    cube = Cube.of(release_of("age*sex"))
    assert value(cube.shares(["sex"]), "a", "f") == pytest.approx(100 / 3)
    assert value(cube.shares(["age"]), "a", "f") == pytest.approx(100 / 9)
    assert value(cube.shares(["age", "sex"]), "a", "f") == pytest.approx(100 / 21)


def test_shares_of_nothing_are_not_numbers():
    cube = Cube.of(release_of("age*sex", y=np.zeros(6, dtype=np.int64)))
    assert np.isnan(cube.shares(["sex"]).values).all()


def test_shares_need_the_total():
    cube = Cube.of(release_of("age*sex")).select("sex", ["f"])
    with pytest.raises(DesignError, match="need its total"):
        cube.shares(["sex"])


def test_picking_keeps_the_order_of_the_cube():
    cube = Cube.of(release_of("age*sex")).select("age", ["c", "a", "c"])
    assert cube.axis("age").codes == ("a", "c")
    assert value(cube, "c", "m") == 6


def test_arranging_and_slicing_move_values_with_their_codes():
    cube = Cube.of(release_of("age*sex"))
    turned = cube.reorder(["sex", "age"])
    assert value(turned, "f", "b") == value(cube, "b", "f") == 3
    assert turned.at("sex", "f").values.tolist() == cube.at("sex", "f").values.tolist()


def test_unknown_names_are_named_with_what_there_is():
    cube = Cube.of(release_of("age*sex"))
    with pytest.raises(UnknownNameError, match="variable 'sec'"):
        cube.axis("sec")
    with pytest.raises(UnknownNameError, match="'x'"):
        cube.at("sex", "x")


def test_a_release_without_variables_has_no_codes():
    design = dc.Design.from_matrix(np.eye(2))
    with pytest.raises(DesignError, match="no codes"):
        Cube.of(Release(design, np.array([1, 2]), Statement(())))


def test_names_become_words():
    assert heading_of("major_group") == "Major group"
    assert heading_of("INDP_CAT") == "INDP CAT"
