"""What a newcomer mistypes: exit code 2, one line of advice, and nothing half-written."""

import shlex
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc
from tests.commands import run

PEOPLE = "id,town,sex\n" + "".join(f"{i},{'AB'[i % 2]},{'mf'[i % 3 == 0]}\n" for i in range(60))
WRONG = {
    # the file of records
    'tabulate people.csv --by "" --out o.parquet': "say what to publish: --by FORMULA",
    "tabulate folder --by sex --out o.parquet": "the folder folder holds no Parquet files",
    "tabulate release.parquet --by sex --out o.parquet": "its rows are cells",
    "codes table.parquet --out c.toml": "its rows are cells",
    "check data release.parquet": "its rows are cells",
    "publish --draft table.parquet p.toml": "its rows are cells",
    "tabulate people.csv --by sex --header 99 --out o.parquet": "people.csv has 61 lines; --header",
    "tabulate people.csv --by sex --hierarchy town=empty.csv --out o.parquet": "has no columns",
    "tabulate people.csv --by sex --editions sometimes --out o.parquet": "got 'sometimes'",
    "tabulate people.csv --by sex --id id --secret people.csv --out o.parquet": "secret make",
    "tabulate people.csv --by sex --codes missing.toml --out o.parquet": "no code list",
    "tabulate people.csv --by sex --codes folder --out o.parquet": "a TOML file was expected",
    # where results go
    "tabulate people.csv --by sex --out none/o.parquet": "no folder none; make it first",
    "codes people.csv --out c.txt": "must end in .toml",
    "demo --folder people.csv --no-serve": "is a file; --folder names a folder",
    # tables and releases
    "protect release.parquet --method cell-key --out o.csv": "`discreet tabulate`",
    "protect people.csv --method cell-key --out o.csv": "records are tabulated first",
    "protect empty --method cell-key --out o.csv": "records are tabulated first",
    "protect folder --method cell-key --out o.csv": "folder is a folder",
    "audit folder": "folder is a folder",
    "audit --table table.parquet --labels people.csv": "discreet protect --show-kinds",
    "assess table.parquet release.parquet --ptable empty": "`discreet ptable --out` writes one",
    # everything else
    "publish": "there is no file publication.toml. Draft one",
    "publish folder": "folder is a folder",
    "argus people.csv": "no command",
    "argus empty": "the batch has no commands",
    "ledger show people.csv": "is not a ledger",
    "ledger show folder": "is not a ledger",
    "ledger burn x.db": "'burn' is not one of",
    "ptable --D 5 --V wide": "got 'wide'",
    "secret backup none --out o": "discreet secret make none",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with what may be named in place of the right thing."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "people.csv").write_text(PEOPLE)
    for name in ("empty", "empty.csv"):
        (folder / name).touch()
    (folder / "folder").mkdir()
    data = dc.open(folder / "people.csv", id="id", secret=folder / "keys.secret")
    table = data.tabulate("town*sex")
    table.save(folder / "table.parquet")
    table.protect(dc.CellKey(dc.perturbation_table(D=2, V=1))).save(folder / "release.parquet")
    return folder


@pytest.mark.parametrize(("command", "words"), WRONG.items(), ids=WRONG)
def test_what_is_mistyped_is_told_in_one_line(command, words, files, tmp_path, monkeypatch, capsys):
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert run(*shlex.split(command)) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("error: ")
    assert shown.count("\n") == 1
    assert words in shown
    assert "1,A,m" not in shown  # a record
    assert sorted(tmp_path.rglob("*")) == before


def test_rows_of_other_programs_that_are_called_like_cells_are_records(tmp_path):
    pq.write_table(pa.table({"cell": ["a", "b"], "value": [1, 2]}), tmp_path / "people.parquet")
    assert dc.open(tmp_path / "people.parquet").tabulate("cell").z.sum() > 0


def test_the_list_of_commands_is_not_cut(capsys):
    assert run("--help") == 0
    assert "..." not in capsys.readouterr().out.replace("[ARGS]...", "")
