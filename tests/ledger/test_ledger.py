import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from discreet.cli.custody import ledger as ledger_command
from discreet.errors import BudgetError, DiscreetError, LedgerError, ParameterError
from discreet.ledger import Cost, Ledger, Relation
from discreet.ledger.file import upgrade
from discreet.tables import DataSet, SketchedTable

CENSUS = DataSet("census", "2021")
LATER = DataSet("census", "2022")
STEP = {"method": "discrete-laplace"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "discreet.db"


def people(*numbers):
    """A table in which each person has a cell."""
    place = np.arange(len(numbers))
    part = ("person", tuple(map(str, numbers)), place)
    return [SketchedTable(("person",), ("person",), "", (part,), np.ones_like(place))]


# --- budget ---------------------------------------------------------------------------------------


def test_costs_add_up_until_the_budget_is_used_up(path):
    ledger = Ledger(path, epsilon=1.0)
    for _ in range(10):
        ledger.spend(CENSUS, Cost(0.1), STEP)
    assert ledger.spent("census").epsilon == 1.0
    with pytest.raises(BudgetError, match="10 before it.*budget is ε = 1") as refused:
        ledger.spend(CENSUS, Cost(0.1), STEP)
    assert "0.1" not in refused.value.public()
    assert len(ledger.rows()) == 10


def test_a_new_edition_is_no_new_budget_but_another_data_set_has_its_own(path):
    ledger = Ledger(path, epsilon=1.0)
    ledger.spend(CENSUS, Cost(1.0), STEP)
    with pytest.raises(BudgetError):
        ledger.spend(LATER, Cost(0.1), STEP)
    ledger.spend(DataSet("survey"), Cost(1.0), STEP)
    assert ledger.spent("survey").epsilon == ledger.spent("census").epsilon == 1.0
    assert ledger.spent("unheard of").entries == 0


def test_delta_has_a_budget_too(path):
    ledger = Ledger(path, epsilon=1.0, delta=1e-9)
    ledger.spend(CENSUS, Cost(0.1, 6e-10), STEP)
    with pytest.raises(BudgetError, match="sum of δ: 1.2e-09"):
        ledger.spend(CENSUS, Cost(0.1, 6e-10), STEP)
    ledger.spend(CENSUS, Cost(0.1, 4e-10), STEP)
    assert ledger.spent("census").delta == 1e-9


def test_rho_is_counted_as_the_epsilon_it_proves(path):
    ledger = Ledger(path, epsilon=3.0, delta=1e-9)
    ledger.spend(CENSUS, Cost(rho=0.1), STEP)
    spent = ledger.spent("census")
    assert (spent.epsilon, spent.rho) == (0.0, 0.1)
    assert spent.epsilon_at(1e-9) == pytest.approx(2.7154818867)
    with pytest.raises(BudgetError):
        ledger.spend(CENSUS, Cost(rho=0.1), STEP)
    ledger.spend(CENSUS, Cost(0.1), STEP)
    assert len(ledger.rows()) == 2


def test_rho_needs_a_delta(path):
    with pytest.raises(BudgetError, match="no finite ε without δ"):
        Ledger(path, epsilon=3.0).spend(CENSUS, Cost(rho=1e-9), STEP)


def test_a_budget_is_kept_with_the_name_and_cannot_be_changed(path):
    Ledger(path, epsilon=1.0, delta=1e-9).spend(CENSUS, Cost(0.5), STEP)
    again = Ledger(path)
    assert again.budget_of("census") == Cost(1.0, 1e-9)
    with pytest.raises(BudgetError):
        again.spend(CENSUS, Cost(0.6), STEP)
    Ledger(path, epsilon=1.0, delta=1e-9).spend(CENSUS, Cost(0.1), STEP)
    for other in (Ledger(path, epsilon=2.0, delta=1e-9), Ledger(path, epsilon=1.0)):
        with pytest.raises(LedgerError, match="has a budget of ε = 1, δ = 1e-09 for one"):
            other.spend(CENSUS, Cost(0.1), STEP)
    Ledger(path, epsilon=2.0).spend(DataSet("survey"), Cost(2.0), STEP)


def test_without_a_budget_costs_are_entered_and_a_later_budget_counts_them(path):
    Ledger(path).spend(CENSUS, Cost(100.0), STEP)
    assert Ledger(path).budget_of("census") is None
    with pytest.raises(BudgetError):
        Ledger(path, epsilon=100.0).spend(CENSUS, Cost(0.1), STEP)
    assert Ledger(path).spent("census").epsilon == 100.0


def test_what_a_refused_release_would_have_entered_is_not_there(path):
    with pytest.raises(BudgetError):
        Ledger(path, epsilon=1.0).spend(CENSUS, Cost(2.0), STEP)
    assert Ledger(path).budget_of("census") is None
    assert Ledger(path).rows() == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": 1e-9}, "needs epsilon"),
        ({"epsilon": -1.0}, "epsilon must be"),
        ({"epsilon": 1.0, "delta": 2.0}, "delta must be"),
        ({"min_changed": -1}, "min_changed must be"),
        ({"min_changed": 2.5}, "min_changed must be"),
    ],
)
def test_options_that_make_no_sense_are_refused(path, options, message):
    with pytest.raises(ParameterError, match=message):
        Ledger(path, **options)
    assert not path.exists()


# --- processes ------------------------------------------------------------------------------------

SPENDER = """
import sys
from discreet.tables.truth import DataSet
from discreet.errors import BudgetError
from discreet.ledger import Cost, Ledger
ledger = Ledger(sys.argv[1], epsilon=1.0)
for _ in range(int(sys.argv[2])):
    try:
        ledger.spend(DataSet("census"), Cost(0.02), {})
        print("spent", flush=True)
    except BudgetError:
        print("refused", flush=True)
"""


def start(path, times, program=SPENDER):
    arguments = [sys.executable, "-c", program, str(path), str(times)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_several_processes_spend_one_budget_exactly(path):
    running = [start(path, 20) for _ in range(4)]
    said = [line for each in running for line in each.communicate(timeout=60)[0].split()]
    assert all(each.returncode == 0 for each in running)
    assert (said.count("spent"), said.count("refused")) == (50, 30)
    assert Ledger(path).spent("census").epsilon == 1.0
    assert Ledger(path).spent("census").entries == 50


@pytest.mark.slow
def test_several_processes_enter_one_first_release(path):
    program = """
import os, sys
from discreet.tables.truth import DataSet
from discreet.errors import LedgerError
from discreet.ledger import Ledger
ledger = Ledger(sys.argv[1])
try:
    print(ledger.register_release(DataSet("census"), str(os.getpid()), {}))
except LedgerError:
    print("refused")
"""
    running = [start(path, 1, program) for _ in range(4)]
    said = sorted(each.communicate(timeout=60)[0].strip() for each in running)
    assert said == ["1", "refused", "refused", "refused"]


@pytest.mark.parametrize("lines", [1, 3, 8])
def test_a_killed_process_has_counted_everything_it_released(path, lines):
    running = start(path, 40)
    with running:
        for _ in range(lines):
            assert running.stdout.readline() == "spent\n"
        running.send_signal(signal.SIGKILL)
        released = lines + running.stdout.read().count("spent\n")
    assert released <= Ledger(path).spent("census").entries <= released + 1


def test_a_process_killed_between_entry_and_release_has_counted(path):
    program = """
import os, signal, sys
from discreet.tables.truth import DataSet
from discreet.ledger import Cost, Ledger
Ledger(sys.argv[1]).spend(DataSet("census"), Cost(0.02), {})
os.kill(os.getpid(), signal.SIGKILL)
"""
    running = start(path, 1, program)
    assert running.communicate(timeout=60)[0] == ""
    assert running.returncode == -signal.SIGKILL
    assert Ledger(path).spent("census").entries == 1


def test_a_process_killed_before_its_entry_is_complete_leaves_a_ledger_that_works(path):
    program = """
import os, signal, sys
from discreet.tables.truth import DataSet
from discreet.ledger import Cost, Ledger, entries
ledger, add = Ledger(sys.argv[1], epsilon=1.0), entries.add_cost
def add_and_die(*arguments):
    add(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)
entries.add_cost = add_and_die
ledger.spend(DataSet("census"), Cost(0.02), {})
"""
    running = start(path, 1, program)
    running.communicate(timeout=60)
    assert running.returncode == -signal.SIGKILL
    ledger = Ledger(path)
    assert ledger.spent("census").entries == 0
    ledger.spend(DataSet("census"), Cost(0.02), {})
    assert ledger.spent("census").entries == 1


# --- the file -------------------------------------------------------------------------------------


def test_only_the_owner_can_read_the_ledger(path):
    before = os.umask(0)
    try:
        Ledger(path).spend(CENSUS, Cost(0.1), STEP)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    with pytest.raises(LedgerError, match="permissions 640: others can reach it.*chmod 600"):
        Ledger(path)


def test_a_file_that_is_no_ledger_is_refused_and_left_alone(path):
    path.write_text("person,age\n1,30\n" * 100)
    path.chmod(0o600)
    with pytest.raises(LedgerError, match="is not a ledger"):
        Ledger(path)
    assert path.read_text().startswith("person,age")


def test_a_database_that_is_no_ledger_is_refused_and_left_alone(path):
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE people (id INTEGER)")
        db.commit()
    path.chmod(0o600)
    with pytest.raises(LedgerError, match="is not a ledger"):
        Ledger(path)


def test_what_is_no_ledger_needs_no_advice_on_its_permissions(path, tmp_path):
    path.write_text("person,age\n")
    path.chmod(0o644)
    for other in (path, tmp_path):
        with pytest.raises(LedgerError, match="is not a ledger"):
            Ledger(other)


def test_a_ledger_that_disappears_is_an_error_and_not_a_new_ledger(path, tmp_path):
    ledger = Ledger(path)
    path.unlink()
    with pytest.raises(LedgerError, match="cannot use the ledger"):
        ledger.spend(CENSUS, Cost(0.1), STEP)
    assert not path.exists()
    with pytest.raises(LedgerError, match="cannot open the ledger .*No such file"):
        Ledger(tmp_path / "nowhere" / "discreet.db")


def test_the_ledger_stays_where_it_is_when_the_program_moves(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = Ledger("a ledger?.db")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    ledger.spend(CENSUS, Cost(0.1), STEP)
    assert Ledger(tmp_path / "a ledger?.db").spent("census").entries == 1


# --- releases -------------------------------------------------------------------------------------


def test_a_different_table_wise_release_of_an_edition_needs_again(path):
    ledger = Ledger(path)
    assert ledger.register_release(CENSUS, "first", STEP) == 1
    assert ledger.register_release(CENSUS, "first", STEP) == 1
    with pytest.raises(LedgerError, match="again=True") as refused:
        ledger.register_release(CENSUS, "second", STEP)
    assert "census" not in refused.value.public()
    assert ledger.register_release(CENSUS, "second", STEP, again=True) == 2
    assert ledger.register_release(CENSUS, "second", STEP) == 2
    assert Ledger(path).register_release(CENSUS, "first", STEP) == 1
    assert ledger.register_release(LATER, "second", STEP) == 1


def test_a_release_that_was_stopped_is_not_counted_and_another_needs_again(path):
    ledger = Ledger(path)
    ledger.register_release(CENSUS, "seen", STEP)
    ledger.register_release(CENSUS, "stopped", STEP, again=True)
    ledger.stop(CENSUS, "release", "Somebody is certain.", 2)
    assert ledger.release_numbers(CENSUS) == {1}
    with pytest.raises(LedgerError, match="again=True"):
        ledger.register_release(CENSUS, "third", STEP)
    assert ledger.register_release(CENSUS, "third", STEP, again=True) == 2
    ledger.register_release(LATER, "first", STEP)
    ledger.stop(LATER, "release", "Somebody is certain.", 1)
    with pytest.raises(LedgerError, match=r"attacks stopped a release .* again=True"):
        ledger.register_release(LATER, "first", STEP)
    ledger.stop(CENSUS, "method", "Too weak.")
    assert ledger.register_release(CENSUS, "seen", STEP) == 1


# --- editions -------------------------------------------------------------------------------------


def test_other_records_under_one_edition_are_refused(path):
    ledger = Ledger(path)
    for _ in range(2):
        ledger.register_edition(CENSUS, people(*range(100)), "mark")
    with pytest.raises(LedgerError, match="another set of records") as refused:
        ledger.register_edition(CENSUS, people(*range(1, 101)), "mark")
    assert "census" not in refused.value.public()
    with pytest.raises(LedgerError, match="another secret"):
        ledger.register_edition(CENSUS, people(*range(100)), "another")
    with pytest.raises(ParameterError, match="with its tables"):
        ledger.register_edition(CENSUS, [], "mark")


@pytest.mark.parametrize(("changed", "accepted"), [(0, False), (19, False), (30, True)])
@pytest.mark.parametrize("kind", ["added", "removed", "changed"])
def test_a_table_must_differ_by_enough_records(path, changed, accepted, kind):
    ledger = Ledger(path)
    ledger.register_edition(CENSUS, people(*range(100)), None)
    later = {
        "added": people(*range(100 + changed)),
        "removed": people(*range(100 - changed)),
        "changed": people(*range(changed, 100 + changed)),
    }[kind]
    if accepted:
        ledger.register_edition(LATER, later, None)
        assert len(ledger.rows()) == 4
        return
    with pytest.raises(LedgerError, match="table 'person'.*by about .* records.*min_changed=20"):
        ledger.register_edition(LATER, later, None)
    assert len(ledger.rows()) == 2
    Ledger(path, min_changed=0).register_edition(LATER, later, None)
    ledger.register_edition(LATER, later, None)  # what was accepted once stays accepted


def test_a_table_must_differ_from_that_of_every_earlier_edition(path):
    ledger = Ledger(path)
    ledger.register_edition(DataSet("census", "1"), people(*range(100)), None)
    ledger.register_edition(DataSet("census", "2"), people(*range(200)), None)
    with pytest.raises(LedgerError, match="edition '1' by about 1 record"):
        ledger.register_edition(DataSet("census", "3"), people(*range(101)), None)
    ledger.register_edition(DataSet("survey", "3"), people(*range(101)), None)


def test_keys_that_are_kept_come_from_one_secret_and_one_edition_has_one_way(path):
    kept, redrawn = (DataSet("census", "2021", keys=k) for k in ("kept", "redrawn"))
    ledger = Ledger(path, min_changed=0)
    ledger.register_edition(kept, people(1), "mark")
    ledger.register_edition(CENSUS, people(1), None)
    ledger.register_counts(kept, "sex", "digest")
    with pytest.raises(LedgerError, match="another way of making record keys"):
        ledger.register_edition(redrawn, people(1), "mark")
    later = DataSet("census", "2022", keys="kept")
    for attempt in (
        lambda: ledger.register_edition(later, people(1), "another"),
        lambda: ledger.check_secret(later, "another"),
    ):
        with pytest.raises(LedgerError, match="in mode .kept.*edition '2021'.*secret rotate"):
            attempt()
    ledger.register_edition(DataSet("census", "2022", keys="redrawn"), people(2), "another")
    ledger.register_edition(DataSet("census", "2023", keys="kept"), people(3), "mark")


def test_a_rotated_secret_is_followed(path):
    ledger = Ledger(path, min_changed=0)
    ledger.register_edition(DataSet("census", "1", keys="kept"), people(1), "first")
    assert ledger.rotate("first", "second", "lost") == ["census"]
    assert ledger.rotate("unknown", "third", "lost") == []
    ledger.register_edition(DataSet("census", "2", keys="kept"), people(2), "second")
    ledger.rotate("second", "third", "lost again")
    ledger.register_edition(DataSet("census", "3", keys="kept"), people(3), "third")
    with pytest.raises(LedgerError, match="in mode .kept."):
        ledger.register_edition(DataSet("census", "4", keys="kept"), people(4), "fourth")


def test_other_counts_under_one_edition_are_refused(path):
    ledger = Ledger(path)
    for _ in range(2):
        ledger.register_counts(CENSUS, "age*sex", "digest")
    ledger.register_counts(CENSUS, "age*region", "another")
    ledger.register_counts(LATER, "age*sex", "another")
    with pytest.raises(LedgerError, match="other counts") as refused:
        ledger.register_counts(CENSUS, "age*sex", "another")
    assert isinstance(refused.value, DiscreetError)
    assert len(ledger.rows()) == 3


def test_costs_of_other_neighbours_are_refused_or_converted_and_never_mixed(path, tmp_path):
    known = Cost(0.4, relation=Relation("known", known=("1",)))
    person = Cost(0.1, relation=Relation(unit="person (pid)", max_records=2))
    ledger = Ledger(path, epsilon=1.0)
    ledger.spend(CENSUS, Cost(0.3), STEP)
    for other, why in ((known, "known="), (person, "a person who has many")):
        with pytest.raises(BudgetError, match=why):
            ledger.spend(CENSUS, other, STEP)
    assert ledger.spent("census").entries == 1
    replaced = Ledger(tmp_path / "replace.db", epsilon=1.0, relation="replace")
    replaced.spend(CENSUS, Cost(0.4), STEP)
    assert replaced.summary()[0]["epsilon_at_delta"] == 0.8
    with pytest.raises(BudgetError, match="ε = 1.2 at"):
        replaced.spend(CENSUS, Cost(0.2), STEP)
    cheaper = Cost(0.2, replaced=Cost(0.2, relation=Relation("replace")))
    replaced.spend(CENSUS, cheaper, STEP)
    assert replaced.spent("census").under("replace").epsilon == 1.0
    assert Ledger(replaced.path).budget_of("census") == replaced.budget
    with pytest.raises(LedgerError, match="for one record added or removed"):
        Ledger(replaced.path, epsilon=1.0).spend(CENSUS, Cost(0.0), STEP)


def test_units_that_do_not_add_up_are_shown_apart(path):
    ledger = Ledger(path)
    ledger.spend(CENSUS, Cost(0.3), STEP)
    ledger.spend(CENSUS, Cost(0.1, relation=Relation(unit="person (pid)")), STEP)
    assert ledger.summary()[0]["epsilon"] is None
    assert "ε = 0.1 for one person (pid) added or removed" in ledger.text()
    assert "they have no sum; no budget." in ledger.text()


def test_an_upgraded_ledger_says_which_costs_have_no_relation(path):
    Ledger(path, epsilon=1.0).spend(CENSUS, Cost(0.3), STEP)
    with sqlite3.connect(path) as db:
        for table in ("costs", "budgets"):
            db.execute(f"ALTER TABLE {table} DROP COLUMN relation")
        db.execute("PRAGMA user_version = 0")  # as version 0.2 left it
    with pytest.raises(LedgerError, match="discreet ledger upgrade"):
        Ledger(path)
    upgrade(path)
    ledger = Ledger(path)
    assert ledger.spent("census").epsilon == 0.3
    assert ledger.budget_of("census") == Cost(1.0)
    assert "1 of them were entered by a version that did not say" in ledger.text()
    ledger.spend(CENSUS, Cost(0.7), STEP)
    assert ledger.spent("census").epsilon == 1.0


# --- for people -----------------------------------------------------------------------------------


def filled(path):
    ledger = Ledger(path, epsilon=1.0, delta=1e-9)
    kept = DataSet("census", "2021", keys="kept")
    ledger.register_edition(kept, people(*range(100)), "the mark")
    ledger.register_counts(kept, "age*sex", "digest of counts")
    ledger.spend(kept, Cost(0.25), {"method": "discrete-laplace", "margins": ("own",)})
    ledger.spend(kept, Cost(rho=0.001), {"method": "discrete-gaussian"})
    ledger.register_release(kept, "digest of a release", {"method": "safe"})
    Ledger(path).spend(DataSet("survey"), Cost(2.0, 1e-7), STEP)
    return ledger


def test_rows_are_plain_data_in_the_order_of_time(path):
    rows = filled(path).rows()
    assert [row["time"] for row in rows] == sorted(row["time"] for row in rows)
    assert {row["entry"] for row in rows} == {
        "edition",
        "table",
        "counts",
        "private release",
        "release",
    }
    first = next(row for row in rows if row.get("epsilon") == 0.25)
    assert first["step"] == {"margins": ["own"], "method": "discrete-laplace"}
    assert (first["name"], first["edition"], first["delta"], first["rho"]) == (
        "census",
        "2021",
        0.0,
        None,
    )
    assert json.loads(json.dumps(rows)) == rows
    assert "the mark" not in json.dumps(rows)


def test_the_text_tells_totals_and_every_entry(path):
    ledger = filled(path)
    text = ledger.text()
    assert "census: 2 private releases cost ε = 0.25, ρ = 0.001 for one record added" in text
    assert "added or removed together; ε = 0.49" in text
    assert "of a budget of ε = 1, δ = 1e-09." in text
    assert "survey: 1 private release costs ε = 2, δ = 1e-07 for one record added" in text
    assert "added or removed; no budget." in text
    assert "census, edition 2021: release 1 (method safe)" in text
    assert "census, edition 2021: edition, keys kept" in text
    assert "census, edition 2021: table person" in text
    assert "census, edition 2021: counts of age*sex" in text
    assert len(text.splitlines()) == 1 + 2 + 7
    assert repr(ledger) == f"Ledger({str(path)!r}, ε = 1, δ = 1e-09)"


def show(*arguments):
    app = typer.Typer()
    app.command("ledger")(ledger_command)
    return CliRunner().invoke(app, [*arguments])


def test_the_command_shows_the_ledger(path):
    ledger = filled(path)
    assert show("show", str(path)).output == ledger.text() + "\n"
    found = json.loads(show("show", str(path), "--json").output)
    assert found["side"] == "confidential"
    assert [each["name"] for each in found["data_sets"]] == ["census", "survey"]
    assert found["data_sets"][0]["budget"] == {
        "epsilon": 1.0,
        "delta": 1e-9,
        "relation": "add-remove",
    }
    assert found["data_sets"][1]["epsilon_at_delta"] is None
    assert found["entries"] == ledger.rows()


def test_the_command_makes_no_ledger(path):
    done = show("show", str(path))
    assert isinstance(done.exception, ParameterError)
    assert not path.exists()
