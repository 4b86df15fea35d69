import subprocess
import sys
from decimal import Decimal

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.errors import CodeError, DataError, DiscreetError, ParameterError, UnknownNameError

FRAME = pa.table(
    {
        "id": [1, 2, 3, 4],
        "region": ["01", "02", "02", None],
        "sex": ["f", "m", "f", "f"],
        "weight": [1.5, 2.0, 0.0, 4.0],
        "key": [2**32 - 1, 5, 6, 7],
    }
)
ROLES = {"id": "id", "weight": "weight", "key": "key"}


def csv(path):
    pd.DataFrame(FRAME.to_pydict()).to_csv(path, index=False)
    return path


def duck(path):
    with duckdb.connect(str(path)) as con:
        con.register("frame", FRAME)
        con.sql("CREATE TABLE people AS SELECT * FROM frame")
    return f"{path}::people"


def folder(path):
    (path / "year=2020").mkdir(parents=True)
    for i in range(2):
        pq.write_table(FRAME.slice(2 * i, 2), path / "year=2020" / f"part{i}.parquet")
    return path


def parquet(path):
    pq.write_table(FRAME, path)
    return path


SOURCES = {
    "parquet": lambda tmp: parquet(tmp / "people.parquet"),
    "odd file name": lambda tmp: parquet(tmp / "pe'op[1]le*.parquet"),
    "pattern": lambda tmp: str(folder(tmp / "parts") / "*" / "*.parquet"),
    "folder": lambda tmp: folder(tmp / "parts"),
    "csv": lambda tmp: csv(tmp / "people.csv"),
    "compressed csv": lambda tmp: csv(tmp / "people.csv.gz"),
    "duckdb": lambda tmp: duck(tmp / "people.duckdb"),
    "arrow": lambda tmp: FRAME,
    "batch": lambda tmp: FRAME.to_batches()[0],
    "dict": lambda tmp: FRAME.to_pydict(),
    "pandas": lambda tmp: FRAME.to_pandas(),
    "polars": lambda tmp: pl.from_arrow(FRAME),
    "lazy polars": lambda tmp: pl.from_arrow(FRAME).lazy(),
    "ibis": lambda tmp: ibis.duckdb.connect().create_table("people", FRAME),
    "ibis memtable": lambda tmp: ibis.memtable(FRAME),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_every_source_gives_the_same_table(source, tmp_path):
    table = dc.open(source(tmp_path), **ROLES).tabulate("region*sex")
    expected = dc.open(FRAME, **ROLES).tabulate("region*sex", engine="numpy")
    assert table.to_arrow().equals(expected.to_arrow())
    cell = table.design.position({"region": "02"})
    assert (table.z[cell], table.weights[cell], table.cell_keys[cell]) == (2, 2.0, 11)
    assert table.z[table.design.position({"region": "(missing)"})] == 1


def test_importing_the_package_loads_no_engine():
    engines = "[m for m in ('ibis', 'duckdb') if m in sys.modules]"
    code = f"import sys, discreet as dc; dc.open; print({engines})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_codes_in_csv_keep_their_zeros(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("region,n,flag\n01,1,true\n1,1,false\n,2,true\n")
    data = dc.open(path)
    assert data.tabulate("region").to_pandas()["region"].tolist() == [
        "01",
        "1",
        "(missing)",
        "Total",
    ]
    assert data.tabulate("flag").to_pandas()["flag"].tolist() == ["false", "true", "Total"]


def test_roles_of_csv_columns_given_later(tmp_path):
    data = dc.open(csv(tmp_path / "p.csv")).with_roles(**ROLES)
    assert data.tabulate("sex").weights.tolist() == [5.5, 2.0, 7.5]
    assert data.tabulate("sex").cell_keys.tolist() == [12, 5, 17]


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_fractional_keys_in_text_files(tmp_path, suffix):
    path = tmp_path / f"p.{suffix}"
    mark = "," if suffix == "csv" else "\t"
    path.write_text("\n".join(["a,key".replace(",", mark), f"x{mark}0.75", f"x{mark}0.5"]))
    table = dc.open(path, key="key", convention="ptable").tabulate("a")
    assert table.cell_keys.tolist() == [25_000_000, 25_000_000]


def test_a_duckdb_file_with_one_table_needs_no_name(tmp_path):
    path = duck(tmp_path / "p.duckdb").split("::")[0]
    assert dc.open(path).columns == dc.open(path, table="people").columns
    with duckdb.connect(path) as con:
        con.sql("CREATE TABLE more AS SELECT 1 AS a")
    with pytest.raises(ParameterError, match="'people'"):
        dc.open(path)
    with pytest.raises(UnknownNameError, match="Did you mean 'people'"):
        dc.open(f"{path}::peopel")


@pytest.mark.parametrize("name", ["p.parquet", "p.csv", "p.duckdb", "*.parquet", "p.duckdb::t"])
def test_absent_files_are_named(tmp_path, name):
    with pytest.raises(DataError, match="there is no file") as caught:
        dc.open(tmp_path / name)
    assert "p." in str(caught.value) or "*" in str(caught.value)


@pytest.mark.parametrize("keep", [0, 3, 50, 0.5, 0.99])
def test_truncated_parquet_is_one_clear_line(tmp_path, keep):
    path = parquet(tmp_path / "p.parquet")
    content = path.read_bytes()
    path.write_bytes(content[: int(keep if keep >= 1 else keep * len(content))])
    with pytest.raises(DataError) as caught:
        dc.open(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_damage_inside_a_parquet_file_shows_when_it_is_counted(tmp_path):
    path = tmp_path / "p.parquet"
    rng = np.random.default_rng(1)
    pq.write_table(pa.table({"a": rng.integers(0, 9, 50_000)}), path, use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)
    path.write_bytes(content)
    with pytest.raises(DiscreetError) as caught:
        dc.open(path).tabulate("a")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [b"a,b\n1,2\n3\n4,5,6\n", b"\xff\xfe\x00bad,\xff\n\xff,\xff\n", b"", b"\x1f\x8bnotgzip"],
)
def test_bad_text_files_are_one_clear_line(tmp_path, content):
    path = tmp_path / "p.csv"
    path.write_bytes(content)
    with pytest.raises(DiscreetError) as caught:
        dc.open(path, weight="b").tabulate("a")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_errors_do_not_quote_records(tmp_path):
    path = tmp_path / "p.csv"
    rows = "".join(f"name{i},{i}\n" for i in range(30_000))
    path.write_text(f"a,b\n{rows}Kari Nordmann,12,secret illness\n")
    with pytest.raises(DiscreetError) as caught:
        dc.open(path).tabulate("b")
    assert "Kari" not in str(caught.value)


@pytest.mark.parametrize("role", ["weight", "key", "id"])
def test_missing_columns_have_suggestions(role):
    with pytest.raises(UnknownNameError, match="Did you mean 'weight'"):
        dc.open(FRAME, **{role: "wieght"})


def test_hierarchies_of_missing_columns_are_refused():
    with pytest.raises(UnknownNameError, match="Did you mean 'region'"):
        dc.open(FRAME, hierarchies={"regoin": dc.Hierarchy.flat(["1"])})


def test_things_that_are_no_records():
    mixed = pd.DataFrame({"a": [1, "x", object()]})
    for source in (3, object(), [1, 2], mixed):
        with pytest.raises(DataError, match="frame"):
            dc.open(source)
    for source in ("people.docx", "mysql://host/db"):
        with pytest.raises(ParameterError, match="cannot tell"):
            dc.open(source)
    with pytest.raises(ParameterError, match="mysql://host/db") as caught:
        dc.open("mysql://user:SECRET@host/db")
    assert "SECRET" not in str(caught.value)
    with pytest.raises(ParameterError, match="DuckDB"):
        dc.open(FRAME, table="people")


def test_columns_that_differ_by_case_only_are_refused():
    with pytest.raises(DataError, match="'Age' and 'age'"):
        dc.open({"Age": [1], "age": [2]})


def test_types_the_engine_does_not_hold_are_named():
    with pytest.raises(DiscreetError, match="(?i)unsupported|not implemented"):
        dc.open(pa.table({"h": pa.array([1, 2], pa.float16())}))


def test_files_are_read_only(tmp_path):
    source = duck(tmp_path / "p.duckdb")
    before = (tmp_path / "p.duckdb").read_bytes()
    people = dc.open(source, id="id").with_keys(dc.Secret.generate())
    people.tabulate("region")
    assert (tmp_path / "p.duckdb").read_bytes() == before


def test_codes_outside_the_code_list_are_named():
    data = dc.open(FRAME, hierarchies={"region": dc.Hierarchy.flat(["01"])})
    with pytest.raises(CodeError, match="'02'"):
        data.tabulate("region")


def test_decimal_weights_and_keys():
    frame = {"a": ["x"], "w": [Decimal("1.25")], "k": [Decimal(9)]}
    table = dc.open(pa.table(frame), weight="w", key="k").tabulate("a")
    assert (table.weights[0], table.cell_keys[0]) == (1.25, 9)


def declared(data, margins="a"):
    return {a.name: (a.leaves, a.declared) for a in data.tabulate(margins).design.axes}


CATEGORICAL = {
    "pandas": lambda v: pd.DataFrame({"a": pd.Categorical(v, ["z", "y", "x"])}),
    "polars enum": lambda v: pl.DataFrame({"a": v}, {"a": pl.Enum(["z", "y", "x"])}),
    "lazy polars enum": lambda v: pl.LazyFrame({"a": v}, {"a": pl.Enum(["z", "y", "x"])}),
}


@pytest.mark.parametrize("frame", CATEGORICAL.values(), ids=CATEGORICAL)
def test_categories_of_a_frame_are_its_code_list(frame):
    assert declared(dc.open(frame(["x", "y"]))) == {"a": (("z", "y", "x"), False)}
    said = {"declared": ["a"]}
    assert declared(dc.open(frame(["x", "y"]), **said)) == {"a": (("z", "y", "x"), True)}
    missing = dc.open(frame(["x", None]), **said)
    assert declared(missing) == {"a": (("z", "y", "x", "(missing)"), False)}
    listed = dc.open(frame(["x", "y"])).with_hierarchies(a=dc.Hierarchy.flat(["x", "y"]))
    assert declared(listed) == {"a": (("x", "y"), True)}


CLINIC = {
    "pandas": lambda v: pd.DataFrame({"label": v}).astype("category"),
    "polars enum": lambda v: pl.DataFrame({"label": v}, {"label": pl.Enum(sorted({*v}))}),
    "polars categorical": lambda v: pl.DataFrame({"label": v}, {"label": pl.Categorical()}),
    "arrow dictionary": lambda v: pa.table({"label": pa.array(v).dictionary_encode()}),
    "text": lambda v: pd.DataFrame({"label": v}),
}


@pytest.mark.parametrize("frame", CLINIC.values(), ids=CLINIC)
def test_no_label_appears_in_a_private_table_because_one_patient_joins(frame):
    """With categories collected from the records, "HIV" was a row of the table at ε = 0.1."""
    for patients in (["flu"] * 5, ["flu"] * 5 + ["HIV"]):
        table = dc.open(frame(patients)).tabulate("label")
        with pytest.raises(ParameterError, match="found in the records"):
            table.protect(dc.DiscreteLaplace(0.1))


def test_declared_names_categories_and_nothing_else():
    frame = pd.DataFrame({"label": ["flu"], "sex": pd.Categorical(["f"], ["f", "m"])})
    with pytest.raises(ParameterError, match="has no categories.*codes="):
        dc.open(frame, declared=["label"])
    rows = dc.open(frame, declared=["sex"]).tabulate("sex").protect(dc.DiscreteLaplace(0.1))
    assert rows.design.axes[0].leaves == ("f", "m")


def test_dictionaries_and_polars_categoricals_are_found_codes():
    texts = pa.array(["y", "x"])
    for frame in (pa.table({"a": texts.dictionary_encode()}), pl.DataFrame({"a": texts})):
        assert declared(dc.open(frame)) == {"a": (("x", "y"), False)}
    categorical = pl.DataFrame({"a": ["y", "x"]}, {"a": pl.Categorical()})
    assert declared(dc.open(categorical)) == {"a": (("x", "y"), False)}


def test_hierarchies_come_before_the_categories_of_a_frame():
    frame = CATEGORICAL["pandas"](["x", "y"])
    data = dc.open(frame, hierarchies={"a": dc.Hierarchy.flat(["x", "y"])})
    assert declared(data) == {"a": (("x", "y"), True)}


def test_categories_of_ids_are_no_code_list():
    frame = pd.DataFrame({"a": ["x"], "id": pd.Categorical(["p1"])})
    assert dc.open(frame, id="id").hierarchies == {}


def test_code_lists_are_read_from_a_file(tmp_path):
    (tmp_path / "codes.toml").write_text('[region]\ncodes = ["01"]\nother = "drop"\n')
    with pytest.raises(CodeError, match="without a value"):
        dc.open(csv(tmp_path / "p.csv"), codes=tmp_path / "codes.toml").tabulate("region")
    (tmp_path / "codes.toml").write_text(
        '[region]\ncodes = ["01"]\nother = "drop"\nmissing = "01"\n'
    )
    data = dc.open(csv(tmp_path / "p.csv"), codes=str(tmp_path / "codes.toml"))
    assert declared(data, "region") == {"region": (("01",), True)}
    assert data.tabulate("region").z.tolist() == [2, 2]
    assert data.tabulate("sex").z.tolist() == [2, 2]
