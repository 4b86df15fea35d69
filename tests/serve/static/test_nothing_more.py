"""A folder of files tells what the server's policy lets visitors know, and nothing more."""

import json
from dataclasses import replace

import numpy as np
import pytest

from discreet.serve import InnerSource, Policy, Query, Site, write_site
from discreet.serve.static import rules
from discreet.serve.static.cells import base_name, bases_of
from discreet.tables import Sentence, Statement, Step
from tests.serve.sites import inner_table, once, small_site
from tests.serve.static.sites import FIXED, static_site

COARSE = ["region[county]", "region[part]", "age"]
KINDS = {1: "<i1", 2: "<i2", 4: "<i4", 8: "<f8"}


def coarse(table=None):
    """A data set that keeps towns and sex for itself."""
    return once(source=InnerSource(table or inner_table(), COARSE), name="coarse")


def written(folder, *datasets, parquet=False):
    """The files of a site, by their paths."""
    made = Site(small_site().config, {dataset.name: dataset for dataset in datasets})
    write_site(made, folder, parquet=parquet)
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def cell_files(files, name):
    """The cell files of a data set, by what they cross."""
    site = json.loads(files[json.loads(files["site.json"])["site"]])
    told = json.loads(files[site["datasets"][name]["cells"]])["files"]
    return {crossing: files[f"files/{path}.bin"] for crossing, path in told.items()}


def asked_slots(axis, base):
    """How the slots of a base follow from the entries of a table's variable."""
    place = {code: k for k, code in enumerate(axis.codes)}
    found = np.zeros((base.size, len(axis)))
    for slot, code in enumerate(base.codes):
        if code in place:  # others can never occur
            found[slot, place[code]] = 1
    if base.size > len(base.codes):  # what a level leaves out is the rest of the total
        found[-1] = -found[:-1].sum(axis=0)
        found[-1, axis.total] += 1
    return found


def figures_asked_for(dataset, crossing):
    """What a visitor of the server works out of a crossing; a refusal where he may not."""
    names, _, period = crossing.partition("@")
    across = [v for v in dataset.variables if not v.is_time]
    bases = {base.name: (v, base) for v in across for base in bases_of(v)}
    chosen = [bases[name] for name in names.split("*") if name]
    details = [
        min((d for d in v.details if base_name(v, d) == base.name), key=lambda d: d.cells)
        for v, base in chosen
    ]
    asked = [("rows", detail.name) for detail in details]
    if period and not asked:
        answer = dataset.answer(Query.parse([("rows", dataset.time)]))
        return answer.cube.values[answer.cube.axes[0].codes.index(period)]
    asked += [(f"where.{dataset.time}", period)] if period else []
    cube = dataset.answer(Query.parse(asked)).cube
    found = cube.values
    for dimension, (axis, (_, base)) in enumerate(zip(cube.axes, chosen, strict=True)):
        along = np.moveaxis(found, dimension, 0)
        found = np.moveaxis(np.tensordot(asked_slots(axis, base), along, 1), 0, dimension)
    return found


@pytest.fixture(scope="module")
def datasets():
    return {**static_site().datasets, "coarse": coarse()}


@pytest.fixture(scope="module")
def files(datasets, tmp_path_factory):
    return written(tmp_path_factory.mktemp("all"), *datasets.values())


@pytest.mark.parametrize("name", ["once", "years", "fixed", "coarse"])
def test_every_figure_of_a_folder_is_one_that_a_visitor_of_the_server_may_know(
    name, datasets, files
):
    found = cell_files(files, name)
    assert len(found) > 4
    for crossing, content in found.items():
        expected = figures_asked_for(datasets[name], crossing)
        read = np.frombuffer(content[8:], KINDS[content[4]], expected.size)
        assert np.array_equal(read, expected.ravel()), crossing


def changed(change):
    """The small country after a change of its inner cells."""
    table = inner_table()
    dense = table.margin(["region", "age", "sex"])
    change(dense)
    kept = np.nonzero(dense)
    codes = (c.astype(old.dtype) for c, old in zip(kept, table.codes, strict=True))
    return replace(table, codes=tuple(codes), values=dense[kept])


def moved_in_hiding(dense):
    """Everybody of a county moves into its first town, and everybody is a man."""
    towns = [k for k, code in enumerate(inner_table().axis("region").leaves) if "N1-" in code]
    dense[towns[0]] = dense[towns].sum(axis=0)
    dense[towns[1:]] = 0
    dense[:, :, 1] = dense.sum(axis=2)
    dense[:, :, 0] = 0


def turned(dense):
    """Other cells of three variables with the same tables of two."""
    sign = np.array([1, -1])
    dense[:2, :2, :2] -= dense[0, 0, 0] * np.einsum("i,j,k->ijk", sign, sign, sign)


def test_what_the_server_never_tells_changes_no_byte(tmp_path):
    """Releases that no visitor of the server can tell apart are the same files."""
    before, after = inner_table(), changed(moved_in_hiding)
    assert len(after.values) < len(before.values)
    one = written(tmp_path / "1", coarse(before), parquet=True)
    assert one == written(tmp_path / "2", coarse(after), parquet=True)
    turn = changed(turned)
    assert len(turn.values) < len(before.values)
    fixed = {k: once(FIXED, source=InnerSource(t)) for k, t in enumerate((before, turn))}
    assert written(tmp_path / "3", fixed[0]) == written(tmp_path / "4", fixed[1])
    whole = [written(tmp_path / f"p{k}", fixed[k], parquet=True) for k in fixed]
    assert whole[0] != whole[1]  # the whole table, which the office asked for


def test_codes_that_are_not_on_offer_are_in_no_file(tmp_path):
    found = written(tmp_path, coarse(), parquet=True)
    assert any(b'"N1"' in content for content in found.values())
    assert not [path for path, content in found.items() if b"N1-1" in content]


def test_parameters_that_the_office_keeps_back_are_in_no_file(tmp_path):
    said = Sentence("x", "At most 98765.", "", "values")
    step = Step("cell-key", {"D": 5, "js": 98_765}, (said,))
    table = replace(inner_table(), statement=Statement((step,)))
    told = Policy(public_parameters=("max_variables", "max_cells", "threshold", "D"))
    kept = once(told, source=InnerSource(table))
    assert not [p for p, content in written(tmp_path, kept).items() if b"98765" in content]
    assert b"98765" in b"".join(written(tmp_path, once(source=InnerSource(table))).values())


def test_a_number_of_hidden_cells_would_be_found(tmp_path, monkeypatch):
    told = rules.dataset_rules
    monkeypatch.setattr(
        "discreet.serve.static.build.dataset_rules",
        lambda dataset, table: {**told(dataset, table), "rows": len(table.values)},
    )
    one = written(tmp_path / "1", coarse())
    assert one != written(tmp_path / "2", coarse(changed(moved_in_hiding)))
