"""Editions one person apart, tried through the command line with all that hid them before."""

import hashlib
import json
import shlex
import sqlite3
import stat

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.commands import run

N = 400
COLUMNS = ("pid", "region", "sex", "age", "year", "colour")


def people(n=N, year=2024, first=0):
    rng = np.random.default_rng(1)
    codes = np.array([rng.integers(0, k, N) for k in (4, 2, 12)])
    rows = [[str(first + i), *map(str, codes[:, i]), str(year), "red"] for i in range(N)]
    return rows[N - n :]


def write(rows):
    columns = zip(*rows, strict=True)
    pq.write_table(pa.table(dict(zip(COLUMNS, map(list, columns), strict=True))), "people.parquet")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(people())
    make_secret(tmp_path, "one secret")
    return tmp_path


def make_secret(folder, word):
    (folder / "keys.secret").write_text(hashlib.sha256(word.encode()).hexdigest() + "\n")
    (folder / "keys.secret").chmod(0o600)


def publish(edition, *more, by="region*sex*age", at_protect=False):
    """Both commands; the ledger is named when records are counted, or when they are protected."""
    ledger = ("--ledger", "book.db")
    who = ("--id", "pid", "--secret", "keys.secret", "--name", "census", "--edition", edition)
    counted = ("tabulate", "people.parquet", "--by", by, *who, "--out", "t.parquet")
    done = run(*counted, *more, *(() if at_protect else ledger))
    if done:
        return done
    noise = ("--method", "cell-key", "-s", "D=5", "-s", "V=3", "-s", "js=2")
    return run("protect", "t.parquet", *noise, *(ledger if at_protect else ()), "--out", "r.csv")


def year(rows):
    return [[*row[:4], "2025", row[5]] for row in rows]


def age(rows):
    return [[*row[:3], str(int(row[3]) + 1), *row[4:]] for row in rows]


@pytest.mark.parametrize("at_protect", [False, True], ids=["counted", "protected"])
def test_an_edition_one_person_apart_is_refused(at_protect, capsys):
    """With a reference year in the table and everybody a year older; more in tests/attacks."""
    options = {"by": "region*sex*age*year", "at_protect": at_protect}
    declared = ("--time", "year", "--moves", "age=1")
    assert publish("2024", *declared, **options) == 0
    write(year(age(people(N - 1))))
    capsys.readouterr()
    assert publish("2025", *declared, **options) == 2
    said = capsys.readouterr().err
    assert "table 'age*region*sex'" in said
    assert "by about 1 record" in said
    write(year(age(people(N - 60))))
    assert publish("2025", *declared, **options) == 0


def test_what_is_not_declared_cannot_be_compared_and_is_never_all_changed(capsys):
    by = "region*sex*age*year"
    assert publish("2024", by=by) == 0
    write(year(people(N - 5)))
    assert publish("2025", by=by) == 2
    assert "cannot be compared with edition '2024'" in capsys.readouterr().err
    assert publish("2025", "--time", "year", by=by) == 2  # another way of comparing
    assert "has no such table in the ledger" in capsys.readouterr().err
    write(people())
    assert run("tabulate", "people.parquet", "--by", by, "--id", "pid", "--secret", "keys.secret",
               "--name", "census", "--edition", "2024", "--time", "year", "--ledger", "book.db",
               "--out", "again.parquet") == 0  # fmt: skip
    assert run("ledger", "enter", "book.db", "--table", "again.parquet") == 0
    write(year(people(N - 60)))
    assert publish("2025", "--time", "year", by=by) == 0


def test_one_table_is_held_and_not_the_edition(capsys):
    """Sixty people changed their age: region by sex has not changed at all."""
    assert publish("2024", by="region*sex + region*age") == 0
    rows = people()
    write([*age(rows[:60]), *rows[60:]])
    assert publish("2025", by="region*sex + region*age") == 2
    assert "table 'region*sex' of edition '2025'" in capsys.readouterr().err
    assert publish("2025", by="region*age") == 0
    accept = ("ledger", "accept", "book.db", "--name", "census", "--edition", "2025")
    assert run(*accept, "--table", "sex*region") == 2
    assert "--reason" in capsys.readouterr().err
    assert run(*accept, "--table", "sex*region", "--reason", "nobody moved") == 0
    assert publish("2025", by="region*sex + region*age") == 0
    run("ledger", "show", "book.db")
    assert "accepted: nobody moved" in capsys.readouterr().out


def test_all_tables_that_are_held_are_named_with_the_command_that_lets_them_pass(capsys):
    """A correction of three people is held as a whole: one refusal, one decision."""
    by = "region*sex + region*age"
    assert publish("2024", by=by) == 0
    rows = people()
    write([*age(rows[:3]), *rows[3:]])
    assert publish("2024-r1", by=by) == 2
    told = capsys.readouterr().err
    assert "2 tables of edition '2024-r1' of data set 'census' are held" in told
    command = shlex.split(told[told.index("discreet ledger accept") :].rstrip(". \n"))
    assert {word for word in command if "*" in word} == {"region*sex", "age*region"}
    assert run(*["book.db" if w == "LEDGER" else w for w in command[1:]]) == 0
    assert publish("2024-r1", by=by) == 0


PUBLICATION = """
[publication]
formats = ["csv"]
[data]
source = "people.parquet"
codes = "codes.toml"
id = "pid"
secret = "keys.secret"
name = "people"
ledger = "book.db"
[tabulate]
margins = "region*sex*age"
[protect]
method = "safe"
parameters = {proposals = 1000}
[gate]
attack = "off"
"""
SITE = """
[datasets.people]
title = "People"
[datasets.people.records]
source = "people.parquet"
id = "pid"
name = "people"
edition = "EDITION"
codes = "codes.toml"
secret = "keys.secret"
[datasets.people.recipe.tabulate]
margins = "region*sex*age"
[datasets.people.recipe.protect]
method = "safe"
parameters = {proposals = 1000}
"""
CODES = """
[region]
codes = ["0", "1", "2", "3"]
[sex]
codes = ["0", "1"]
[age]
codes = [AGES]
moves = 1
"""


def describe(edition, folder):
    ages = ", ".join(f'"{a}"' for a in range(20))
    (folder / "codes.toml").write_text(CODES.replace("AGES", ages))
    (folder / "site.toml").write_text(SITE.replace("EDITION", edition))
    (folder / "publication.toml").write_text(PUBLICATION)


@pytest.mark.parametrize("command", ["build", "publish"])
def test_build_and_publish_refuse_an_edition_one_person_apart(command, folder, capsys):
    def once(edition):
        describe(edition, folder)
        if command == "build":
            return run("build", "site.toml", "--ledger", "book.db")
        return run("publish", "publication.toml", "--edition", edition)

    assert once("2024") == 0
    write(age(year(people(N - 1))))
    assert once("2025") == 2
    assert "by about 1 record" in capsys.readouterr().err
    write(age(year(people(N - 60))))
    assert once("2025") == 0


def test_a_secret_is_copied_and_exchanged(folder, capsys):
    assert publish("2024") == 0
    assert run("secret", "backup", "keys.secret", "--out", "copy.secret") == 0
    assert (folder / "copy.secret").read_text() == (folder / "keys.secret").read_text()
    assert stat.S_IMODE((folder / "copy.secret").stat().st_mode) == 0o600
    assert run("secret", "backup", "keys.secret", "--out", "copy.secret") == 2
    make_secret(
        folder, "fedcba9876543210a1b3c5d7e9f02468" * 2
    )  # lost, and another one made in its place
    write(people(N - 60))
    capsys.readouterr()
    assert publish("2025") == 2
    assert "its secret is not that of edition '2024'" in capsys.readouterr().err
    (folder / "keys.secret").write_text((folder / "copy.secret").read_text())
    rotate = ("secret", "rotate", "keys.secret", "--ledger", "book.db", "--out", "old.secret")
    assert run(*rotate, "--reason", "a laptop was lost") == 0
    assert (folder / "old.secret").read_text() == (folder / "copy.secret").read_text()
    assert (folder / "keys.secret").read_text() != (folder / "copy.secret").read_text()
    write(people(N - 1))
    capsys.readouterr()
    assert publish("2025") == 2  # another secret hides nothing from the sketch of cells
    assert "by about 1 record" in capsys.readouterr().err
    write(people(N - 60))
    assert publish("2025") == 0


def test_editions_are_withdrawn_and_corrected(capsys):
    where = ("book.db", "--name", "census", "--edition")
    assert publish("2024") == 0
    assert run("ledger", "withdraw", *where, "2023", "--reason", "x") == 2
    assert "its editions are '2024'" in capsys.readouterr().err
    assert run("ledger", "correct", *where, "2024", "--by", "2024-r1", "--reason", "wrong") == 0
    capsys.readouterr()
    assert publish("2024") == 2
    assert "edition '2024-r1' has taken its place" in capsys.readouterr().err
    write(people(N - 1))
    assert publish("2024-r1") == 2  # a correction is an edition
    assert "by about 1 record" in capsys.readouterr().err
    write(people(N - 60))
    assert publish("2024-r1") == 0
    assert run("ledger", "withdraw", *where, "2024-r1", "--reason", "wrong too") == 0
    capsys.readouterr()
    assert publish("2024-r1") == 2
    assert "was withdrawn" in capsys.readouterr().err
    run("ledger", "show", "book.db", "--json")
    rows = json.loads(capsys.readouterr().out)["entries"]
    kinds = [row["decision"] for row in rows if row["entry"] == "decision"]
    assert kinds == ["corrected", "withdrawn"]


def test_a_ledger_is_copied_and_a_damaged_one_says_what_to_do(folder, capsys):
    assert publish("2024") == 0
    assert run("ledger", "backup", "book.db", "--out", "copy.db") == 0
    assert stat.S_IMODE((folder / "copy.db").stat().st_mode) == 0o600
    assert run("ledger", "backup", "book.db", "--out", "copy.db") == 2
    content = (folder / "book.db").read_bytes()
    for damaged in (
        content[:5_000],
        b"",
        b"x" * 9_000,
        content[:4096] + bytes(len(content) - 4096),
    ):
        (folder / "book.db").write_bytes(damaged)
        capsys.readouterr()
        assert run("ledger", "show", "book.db") == 2
        assert "put back its last copy" in capsys.readouterr().err
    (folder / "book.db").write_bytes((folder / "copy.db").read_bytes())
    assert publish("2024") == 0
    with sqlite3.connect("book.db") as db:
        db.execute("DELETE FROM keys")
    capsys.readouterr()
    assert publish("2024") == 2
    assert "has lost its key" in capsys.readouterr().err
