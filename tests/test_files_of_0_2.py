"""Files that version 0.2 wrote are opened, and hold the figures that they held.

They were written by `python tools/recordings.py files tests/files_of_0_2` and are never made anew.
"""

import csv
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import discreet as dc
from discreet.records import secret
from tests.commands import run

FILES = Path(__file__).parent / "files_of_0_2"
SECRET = f"{7:064x}\n"
TABLES = {  # cells, their sum, sum of the inner cells
    "flat": (20, 444, 111),
    "hierarchical": (53, 2463, 282),
    "linked": (36, 714, 102),
    "magnitude": (16, 208, 52),
    "weighted": (27, 548, 104),
}
RELEASES = {  # sum of the cells, how many are hidden
    "fitted.parquet": (725.7457717428052, 0),
    "keyed.parquet": (2480, 0),
    "keyed.csv": (2480, 0),
    "sums.parquet": (9519, 6),
    "suppressed.parquet": (411, 8),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A copy of the files, those that are confidential for their owner alone."""
    copied = shutil.copytree(FILES, tmp_path / "files")
    monkeypatch.setattr(secret, "FEWEST_BITS", 0)  # 0.2 took any secret
    (copied / "site" / "keys.secret").write_text(SECRET)
    for path in (*copied.rglob("*.db"), copied / "site" / "keys.secret"):
        path.chmod(0o600)
    monkeypatch.chdir(copied)
    return copied


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_read(name):
    table = dc.facade.read_table(FILES / f"table-{name}.parquet")
    assert (table.design.n_published, table.z.sum(), table.y.sum()) == TABLES[name]


def test_keys_weights_and_contributions_are_read():
    assert dc.facade.read_table(FILES / "table-flat.parquet").cell_keys.sum() == 44681580516
    assert dc.facade.read_table(FILES / "table-weighted.parquet").weights[-1] == pytest.approx(
        999.21
    )
    sums = dc.facade.read_table(FILES / "table-magnitude.parquet").require_contributions()
    assert sums.sum[-1] == 2652


@pytest.mark.parametrize("name", RELEASES)
def test_releases_are_read(name):
    release = dc.facade.read_release(FILES / f"release-{name}")
    assert (release.z.sum(), release.hidden.sum()) == pytest.approx(RELEASES[name], rel=1e-12)
    assert release.statement.plain


def test_a_table_is_protected_as_before():
    """The same keys and the same method give the release that was written."""
    noise = dc.CellKey(dc.perturbation_table(D=5, V=3, js=2))
    release = dc.facade.read_table(FILES / "table-hierarchical.parquet").protect(noise)
    assert (release.z == dc.facade.read_release(FILES / "release-keyed.parquet").z).all()


def test_the_ledger_knows_what_was_spent_and_released(folder, capsys):
    with pytest.raises(dc.errors.LedgerError, match="discreet ledger upgrade"):
        dc.Ledger(folder / "ledger.db")
    assert run("ledger", "upgrade", "ledger.db") == 0
    assert "recognise people" in capsys.readouterr().out
    assert (folder / "ledger.db.0.2").exists()
    assert run("ledger", "upgrade", "ledger.db") == 2
    assert "nothing to convert" in capsys.readouterr().err
    ledger = dc.Ledger(folder / "ledger.db")
    assert ledger.spent("flat").epsilon == 0.5
    assert ledger.budget_of("flat").epsilon == 2.0
    kinds = [row["entry"] for row in ledger.rows()]
    assert kinds == ["edition", "counts", "release", "private release"]
    assert run("ledger", "show", "ledger.db") == 0
    assert "ε = 0.5 of a budget of ε = 2" in capsys.readouterr().out


def test_an_edition_of_an_old_ledger_is_compared_once_its_table_is_entered(folder, capsys):
    assert run("ledger", "upgrade", "ledger.db") == 0
    table = dc.facade.read_table(FILES / "table-flat.parquet")
    later = replace(table, data_set=replace(table.data_set, edition="2"))
    noise = dc.CellKey(dc.perturbation_table(D=5, V=3, js=2))
    with pytest.raises(dc.errors.LedgerError, match="cannot be compared.*ledger enter"):
        later.protect(noise, ledger="ledger.db")
    assert run("ledger", "enter", "ledger.db", "--table", "table-flat.parquet") == 0
    with pytest.raises(dc.errors.LedgerError, match="by about 0 records"):
        later.protect(noise, ledger="ledger.db")


def test_a_build_is_served_as_it_is(folder, capsys):
    assert run("build", "site/site.toml", "--stale") == 0
    assert capsys.readouterr().out.strip() == "Every data set is built."
    assert run("replay", "site/query.toml", "--site", "site/site.toml", "--out", "table.csv") == 0
    with Path("table.csv").open(encoding="utf-8-sig") as file:
        found = {(row["region"], row["sex"]): int(row["count"]) for row in csv.DictReader(file)}
    assert len(found) == 15
    assert found["Total", "Total"] == 60
    assert [found[region, "f"] for region in ("north", "east", "south", "west")] == [5, 9, 6, 10]


def test_accounts_and_the_audit_log_are_read(folder, capsys):
    assert run("token", "list", "--site", "site/site.toml") == 0
    assert "ann  custodian" in capsys.readouterr().out
    assert run("log", "export", "--site", "site/site.toml", "--out", "log.csv") == 0
    with Path("log.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["address"], row["kind"], row["cells"]) for row in rows] == [
        ("rows=region", "table", "5"),
        ("rows=sex", "download", "3"),
        ("rows=q", "table", "0"),
    ]
