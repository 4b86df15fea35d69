"""Files that the browser makes are those of the library."""

import base64
import io
import shutil
import zipfile
from dataclasses import asdict

import numpy as np
import pytest

from discreet.release import Cube, CubeAxis, CubeEntry, Options, writer_named
from discreet.release.formats.write import About
from discreet.tables import CellStatus, Sentence, Statement, Step
from tests.serve.kernel.node import CLIENT, run_node
from tests.serve.kernel.random_cubes import REVIVED, RandomCubes, told
from tests.serve.kernel.workbooks import read_book

WRITTEN = f"""
{REVIVED}
const {{ formats }} = await client("downloads/index.js");
const writer = (name) => formats.find((format) => format.name === name);
const write = (one) => writer(one.format).write(revived(one.cube), one.options);
return data.map((one) => Buffer.from(write(one)).toString("base64"));
"""
STATEMENT = Statement(
    (
        Step(
            "cell-key",
            {"variance": 2.0, "max": 5, "on": True, "é": 'a: b, "c"'},
            (Sentence("moves-at-most", "Figures move by at most 5.", "Plain: 5.", "values"),),
        ),
    )
)
FORMATS = ("csv", "json-stat", "px", "xlsx")


def questions(formats, n, seed):
    """Random tables with everything that is told of them, in random formats."""
    random = RandomCubes(seed)
    for _ in range(n):
        cube = random.cube(random.one_of(1, 2, 3))
        cube = Cube(cube.axes, cube.values, cube.status, cube.unit, STATEMENT)
        some = [random.name() for _ in range(3)]
        about = About(
            title=random.one_of("", random.name()),
            name=random.one_of("census", "a very long name of a table"),
            source=random.one_of("", random.name()),
            edition="2026",
            updated=random.one_of("", "2026-11-18"),
            citation=random.name(),
            notes=random.one_of((), (some[0], "n" * 200)),
            footnotes=random.one_of((), (some[1], some[2])),
            language=random.one_of("en", "nb"),
        )
        options = Options(
            labels=random.one_of(None, "codes", "labels", "both"),
            columns=random.one_of((), cube.names[-1:], cube.names[1:]),
            measure=random.one_of("", "row_percent", "v1"),
            separator=random.one_of(",", ";"),
            time=random.one_of("", cube.names[0]),
            about=about,
        )
        yield {"cube": cube, "options": options, "format": random.one_of(*formats)}


def made_there(asked, folder=CLIENT):
    plain = [{**one, "cube": told(one["cube"]), "options": asdict(one["options"])} for one in asked]
    return [base64.b64decode(text) for text in run_node(WRITTEN, plain, folder=folder)]


def made_here(asked):
    return [writer_named(a["format"]).write(a["cube"], a["options"]) for a in asked]


@pytest.mark.parametrize("name", FORMATS[:3])
def test_files_are_those_of_the_library_byte_by_byte(name):
    asked = list(questions([name], 120, seed=FORMATS.index(name)))
    pairs = zip(made_here(asked), made_there(asked), strict=True)
    assert [(here, there) for here, there in pairs if here != there][:1] == []


def plain(cube, name):
    """A table in a format, without a wish."""
    return {"cube": cube, "options": Options(), "format": name}


def sums(values):
    """A table of one variable with these values."""
    entries = [CubeEntry(str(k), str(k), 1, is_sum=False) for k in range(len(values))]
    axis = CubeAxis("v0", "V", tuple(entries))
    return Cube((axis,), values, np.zeros(len(values), np.int8), "turnover", STATEMENT)


def test_numbers_of_every_size_are_written_alike():
    draws = np.random.default_rng(5)
    values = draws.integers(-(10**6), 10**6, 600) * 10.0 ** draws.integers(-14, 14, 600)
    asked = [plain(sums(values), name) for name in ("csv", "json-stat")]
    assert made_here(asked) == made_there(asked)


def test_a_hidden_value_is_in_no_file():
    """What lies under a hidden cell of the cube must not be written, in no format."""
    values = np.array([123454321, 7])
    cube = sums(values)
    status = np.array([CellStatus.suppressed, 0], dtype=np.int8)
    hidden = Cube(cube.axes, cube.values, status, cube.unit, cube.statement)
    files = made_there([plain(hidden, name) for name in FORMATS])
    assert not [name for name, file in zip(FORMATS, files, strict=True) if b"12345" in file]


def test_workbooks_are_read_as_those_of_the_library():
    asked = list(questions(["xlsx"], 40, seed=9))
    for here, there in zip(made_here(asked), made_there(asked), strict=True):
        assert read_book(there) == read_book(here)


def test_parts_of_a_workbook_have_one_date_and_are_whole():
    (content,) = made_there(list(questions(["xlsx"], 1, seed=9)))
    with zipfile.ZipFile(io.BytesIO(content)) as parts:
        assert parts.testzip() is None
        assert {one.date_time for one in parts.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {one.compress_type for one in parts.infolist()} == {zipfile.ZIP_STORED}


FAULTS = {
    "csv": ("downloads/csv.js", '(signs[k] ? "" :', '(false ? "" :'),
    "json-stat": ("downloads/jsonstat.js", "repr_float(value)", "String(value)"),
    "px": ("downloads/px.js", "MOST_DECIMALS = 6", "MOST_DECIMALS = 2"),
    "xlsx": ("downloads/xlsx.js", "NARROWEST] = [40, 9]", "NARROWEST] = [40, 8]"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_a_writer_is_found(tmp_path, name):
    path, right, wrong = FAULTS[name]
    shutil.copytree(CLIENT, tmp_path, dirs_exist_ok=True)
    text = (tmp_path / path).read_text(encoding="utf-8")
    assert text.count(right) == 1
    (tmp_path / path).write_text(text.replace(right, wrong), encoding="utf-8")
    asked = [*questions([name], 30, seed=2), plain(sums(np.array([1.125])), name)]
    here, there = made_here(asked), made_there(asked, tmp_path)
    read = read_book if name == "xlsx" else bytes
    assert list(map(read, here)) != list(map(read, there))
