"""Parameters that are kept from readers: no export tells them, and nothing rests on that."""

import json
from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from discreet.errors import DesignError, ParameterError
from discreet.ledger import Ledger
from discreet.release.inference import matrix_of
from discreet.tables import DataSet
from tests.attacks.victims import PTABLE, SECRET
from tests.protect.tables import keyed_party

METHODS = {
    "cell-key": dc.CellKey(PTABLE),
    "drop-add": dc.DropAdd(0.05, cap=7),
    "pram": dc.Pram(epsilon=1.5, cap=6),
}
TELLING = ("'D'", '"D"', '"V"', '"js"', '"cap"', '"share"', '"epsilon"', "moved by more than")


def protected(name, **options):
    return keyed_party().with_secret(SECRET).protect(METHODS[name], **options)


@pytest.mark.parametrize("name", METHODS)
def test_the_statement_tells_no_parameter(name):
    release = protected(name, publish_parameters=False)
    parameters = release.statement.steps[1].parameters
    assert set(parameters) <= {"margins", "grid", "threshold"}
    said = json.dumps(release.statement.to_json(), ensure_ascii=False)
    assert not [word for word in TELLING if word in said]
    assert release.statement.says("parameters-kept-back")
    # the planted fault: with its parameters the same search finds them
    open_ = json.dumps(protected(name).statement.to_json(), ensure_ascii=False)
    assert [word for word in TELLING if word in open_]
    np.testing.assert_array_equal(release.z, protected(name).z)


@pytest.mark.parametrize("ending", ["csv", "json", "px", "html", "xlsx", "parquet"])
def test_no_file_tells_a_parameter(ending, tmp_path):
    """Also the statement that lies beside a CSV file."""
    found = {}
    for kept in (True, False):
        folder = tmp_path / str(kept)
        folder.mkdir()
        release = protected("cell-key", publish_parameters=not kept)
        page = release[next(iter(release.tables))] if ending == "px" else release  # it holds one
        page.write(folder / f"table.{ending}")
        found[kept] = "".join(_text(path) for path in sorted(folder.iterdir()))
    assert "maximum entropy" not in found[True]
    assert "moved by more than" not in found[True]
    assert "moved by more than" in found[False]  # the search would find it


def _text(path):
    import zipfile

    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as parts:
            return "".join(parts.read(n).decode("utf-8", "replace") for n in parts.namelist())
    return path.read_bytes().decode("utf-8", "replace")


def test_estimates_that_need_the_law_say_so():
    release = protected("cell-key", publish_parameters=False)
    with pytest.raises(DesignError, match="are not published with this release"):
        matrix_of(release)
    with pytest.raises(DesignError, match="are not published with this release"):
        release.fit("noise-likelihood")
    assert release.fit("least-squares").statement.says("parameters-kept-back")


@pytest.mark.parametrize("wrapped", [False, True])
def test_adjusted_margins_tell_no_parameter(wrapped):
    method = dc.Adjust(dc.CellKey(PTABLE)) if wrapped else dc.CellKey(PTABLE, margins="adjusted")
    table = keyed_party().with_secret(SECRET)
    telling = (*TELLING, '"max_move"', '"min_count"', "never-published", "moves-at-most")
    said = {}
    for shown in (True, False):
        statement = table.protect(method, publish_parameters=shown).statement
        said[shown] = json.dumps(statement.to_json(), ensure_ascii=False)
    assert not [word for word in telling if word in said[False]]
    assert {'"max_move"', '"min_count"'} <= {word for word in telling if word in said[True]}


@pytest.mark.parametrize("method", [dc.DiscreteLaplace(1.0), dc.ControlledRounding()])
def test_what_has_no_law_to_keep_is_refused_before_anything_is_counted(method, tmp_path):
    """A private release states its guarantee; its budget is not spent for a refusal."""
    design = dc.Design.product({"a": 2}, "a")
    table = dc.Table.from_inner(design, [3, 4]).with_secret(SECRET)
    table = replace(table, data_set=DataSet("party"))
    ledger = Ledger(tmp_path / "ledger.db")
    with pytest.raises(ParameterError, match="states its guarantee"):
        table.protect(method, ledger=ledger, publish_parameters=False)
    assert not list(ledger.rows())
    table.protect(method, ledger=ledger)
    assert list(ledger.rows())  # the same request with its parameters is counted


def test_parameters_are_guessed_from_the_values_alone():
    """Why protection must not rest on them: gaps and the smallest value tell V and js."""
    rng = np.random.default_rng(3)
    design = dc.Design.product({"a": 30, "b": 20, "c": 2}, "a*b*c")
    table = dc.Table.from_inner(design, rng.poisson(4, design.n_inner)).rekeyed(rng)
    release = table.with_secret(SECRET).protect(
        dc.CellKey(dc.perturbation_table(D=5, V=3, js=2)), publish_parameters=False
    )
    gaps = release.z - design.aggregate(release.z[design.slice_of(0)])
    inner = design.column_sizes == 1
    pairs = design.column_sizes == 2  # sums of two cells: three draws of noise
    spread = float(np.var(gaps[pairs & ~inner])) / 3
    smallest = int(release.z[release.z > 0].min())
    usual = [(D, V, js) for D in (3, 4, 5) for V in (1, 2, 3) for js in (0, 1, 2)]
    guessed = min(usual, key=lambda p: (abs(p[1] - spread), abs(p[2] + 1 - smallest)))
    assert (guessed[1], guessed[2]) == (3, 2)
