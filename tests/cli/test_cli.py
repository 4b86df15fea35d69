"""The command line as a newcomer uses it: good input, wrong input, nothing left behind."""

import json
from pathlib import Path

import pandas as pd
import pytest

import discreet as dc
from discreet import Microdata
from discreet.cli.options import in_flags
from discreet.randomness import stream
from tests.commands import run

ROWS = pd.DataFrame(
    {
        "id": range(400),
        "town": ["A1", "A2", "B1", "B2"] * 100,
        "sex": ["f", "m", "m", "f", "f"] * 80,
        "w": [1.5, 2.5] * 200,
    }
)
PTABLE = ["-s", "D=5", "-s", "V=3", "-s", "js=2"]
HRC = "A\n@A1\n@A2\nB\n@B1\n@B2\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ROWS.to_parquet("people.parquet")
    (tmp_path / "town.hrc").write_text(HRC)
    return tmp_path


def tabulate(*more):
    return run("tabulate", "people.parquet", "--by", "town*sex", "--out", "table.parquet", *more)


def keyed():
    dc.Secret.from_file("keys.secret", create=True)
    assert tabulate("--id", "id", "--secret", "keys.secret", "--hierarchy", "town=town.hrc") == 0


def test_tabulate_writes_a_confidential_table(folder, capsys):
    assert tabulate("--weight", "w", "--hierarchy", "town=town.hrc", "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["published_cells"] == 7 * 3
    assert summary["weights"]
    path = folder / "table.parquet"
    assert path.stat().st_mode & 0o777 == 0o600
    table = dc.facade.read_table(path)
    assert table.z[table.design.position({"town": "A"})] == 200


def test_protect_publishes_what_was_tabulated(folder, capsys):
    keyed()
    code = run("protect", "table.parquet", "--method", "cell-key", *PTABLE,
               "--out", "release.csv")  # fmt: skip
    assert code == 0
    assert "release.csv" in capsys.readouterr().out
    published = pd.read_csv("release.csv")
    assert list(published.columns) == ["town", "sex", "count"]
    assert (folder / "release.statement.txt").read_text().strip()


def test_fit_makes_a_release_additive(folder):
    keyed()
    assert run("protect", "table.parquet", "--method", "cell-key", *PTABLE,
               "--out", "r.parquet") == 0  # fmt: skip
    assert run("fit", "r.parquet", "--fitter", "least-squares", "--out", "f.parquet") == 0
    fitted = dc.facade.read_release("f.parquet")
    assert abs(fitted.design.aggregate(fitted.y) - fitted.z).max() < 1e-6


def test_keys_are_written_for_their_owner_only(folder):
    assert run("keys", "people.parquet", "--id", "id", "--secret", "new.secret",
               "--out", "keys.parquet") == 0  # fmt: skip
    for name in ("new.secret", "keys.parquet"):
        assert (folder / name).stat().st_mode & 0o777 == 0o600


def test_ptable_prints_its_audit_and_draws(folder, capsys):
    assert run("ptable", "--D", 5, "--V", 3, "--js", 2, "--out", "p.csv", "--plot", "p.svg") == 0
    assert "p.svg" in capsys.readouterr().out
    assert (folder / "p.svg").read_text().startswith("<svg")
    assert (folder / "p.csv").read_text()
    assert run("ptable", "--D", 5, "--V", 3, "--js", 2, "--json") == 0
    assert json.loads(capsys.readouterr().out)["variance"][1] == pytest.approx(3)


WRONG = {
    "unknown column": (["--by", "twon*sex"], "'town'"),
    "formula": (["--by", "town**sex"], "formula"),
    "support": (["--support", "some"], "must be one of all, occurring"),
    "missing hierarchy file": (["--hierarchy", "town=none.hrc"], "none.hrc"),
    "hierarchy option": (["--hierarchy", "town.hrc"], "VARIABLE=FILE"),
    "unknown weight": (["--weight", "weight"], "'w'"),
    "unreadable secret": (["--id", "id", "--secret", "people.parquet"], "does not hold a secret"),
}


@pytest.mark.parametrize(("arguments", "words"), WRONG.values(), ids=WRONG)
def test_bad_input_is_one_clear_line_and_leaves_nothing(folder, capsys, arguments, words):
    before = sorted(p.name for p in folder.iterdir())
    command = ["tabulate", "people.parquet", "--out", "table.parquet"]
    if "--by" not in arguments:
        command += ["--by", "town*sex"]
    assert run(*command, *arguments) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("error: ")
    assert len(shown.err.strip().splitlines()) == 1
    assert words in shown.err
    assert sorted(p.name for p in folder.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tabulate", "people.parquet", "--by", "town"], "--out"),
        (["tabulate"], "source"),
        (["tabulte"], "tabulte"),
        (["ptable", "--D", "five", "--V", "3"], "--D"),
        (["ptable", "--D", "5", "--V", "3", "--jss", "2"], "--jss"),
    ],
)
def test_wrong_use_of_a_command_is_one_clear_line(folder, capsys, arguments, words):
    assert run(*arguments) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("error: ")
    assert len(shown.strip().splitlines()) == 1
    assert words in shown


def bad_data(**columns):
    ROWS.assign(**columns).to_parquet("people.parquet")


def test_bad_records_are_one_clear_line_too(folder, capsys):
    bad_data(w=[-1.0] + [1.0] * 399)
    assert tabulate("--weight", "w") == 2
    assert "negative" in capsys.readouterr().err
    bad_data(id=[1, 1, *range(398)])
    dc.Secret.from_file("keys.secret", create=True)
    assert tabulate("--id", "id", "--secret", "keys.secret") == 2
    assert "duplicate" in capsys.readouterr().err.lower()
    bad_data(town=["C9"] + ["A1"] * 399)
    assert tabulate("--hierarchy", "town=town.hrc") == 2
    assert "'C9'" in capsys.readouterr().err
    (folder / "people.parquet").write_bytes(b"PAR1 not really")
    assert tabulate() == 2
    assert "people.parquet" in capsys.readouterr().err
    assert not (folder / "table.parquet").exists()


def test_confidential_files_are_refused_by_what_publishes(folder, capsys):
    keyed()
    assert run("fit", "table.parquet") == 2
    assert "confidential" in capsys.readouterr().err


def test_unknown_methods_parameters_and_formats(folder, capsys):
    keyed()
    assert run("protect", "table.parquet", "--method", "cell-kye") == 2
    assert "'cell-key'" in capsys.readouterr().err
    assert run("protect", "table.parquet", "--method", "cell-key", "-s", "DD=3") == 2
    assert "parameter" in capsys.readouterr().err
    assert run("protect", "table.parquet", "--method", "cell-key", *PTABLE,
               "--out", "r.docx") == 2  # fmt: skip
    assert "must end in one of .csv" in capsys.readouterr().err


def test_every_command_shows_an_example(capsys):
    from discreet.cli.app import HOMES

    for command in HOMES:
        assert run(command, "--help") == 0
        shown = capsys.readouterr().out
        assert f"discreet {command}" in shown.replace("\n", " "), command
        assert "Example" in shown, command


def test_fit_rounds_to_whole_numbers_with_a_seed(folder, capsys):
    keyed()
    assert run("protect", "table.parquet", "--method", "cell-key", *PTABLE,
               "--out", "r.parquet") == 0  # fmt: skip
    assert run("fit", "r.parquet", "--round", "total") == 2
    assert "--seed" in capsys.readouterr().err
    assert run("fit", "r.parquet", "--round", "total", "--seed", "1", "--out", "whole.csv") == 0
    assert pd.read_csv("whole.csv")["count"].dtype.kind == "i"


def test_fit_searches_whole_numbers_and_keeps_released_zeros(folder, capsys):
    keyed()
    assert run("protect", "table.parquet", "--method", "cell-key", *PTABLE,
               "--out", "r.parquet") == 0  # fmt: skip
    whole = ("fit", "r.parquet", "--fitter", "whole-number", "-s", "seed=1", "-s", "max_nonzero=3")
    assert run(*whole, "--zeros", "margins", "--out", "whole.parquet") == 0
    assert "no table has less than" in capsys.readouterr().out
    fitted = dc.facade.read_release("whole.parquet")
    assert (fitted.y > 0).sum() <= 3
    assert fitted.y.dtype.kind == "i"
    assert fitted.statement.says("zeros-kept")
    assert run("fit", "r.parquet", "--zeros", "some") == 2
    assert "zeros must be" in capsys.readouterr().err


CODES = '[town]\nhierarchy = "town.hrc"\n[sex]\ncodes = ["f", "m"]\n'


def coded(folder, *more):
    (folder / "codes.toml").write_text(CODES)
    assert tabulate("--codes", "codes.toml", "--name", "towns", "--edition", "2024", *more) == 0


def test_a_seed_is_refused_with_the_way_out(folder, capsys):
    keyed()
    capsys.readouterr()
    assert run("protect", "table.parquet", "--method", "pram", "--seed", "1") == 2
    shown = capsys.readouterr().err
    assert len(shown.strip().splitlines()) == 1
    for words in ("publication draws from a secret", "--secret", "table.simulate"):
        assert words in shown


def test_methods_that_draw_for_a_whole_table_need_the_secret(folder, capsys):
    keyed()
    capsys.readouterr()
    method = ("protect", "table.parquet", "--method", "small-count-rounding", "-s", "base=3")
    assert run(*method, "--out", "r.parquet") == 2
    assert "--secret keys.secret" in capsys.readouterr().err
    assert run(*method, "--secret", "keys.secret", "--out", "r.parquet") == 0
    assert run(*method, "--secret", "keys.secret", "--out", "again.parquet") == 0
    first, second = dc.facade.read_release("r.parquet"), dc.facade.read_release("again.parquet")
    assert (first.z == second.z).all()


def test_a_second_table_wise_release_needs_again(folder, capsys):
    keyed()
    options = ("--secret", "keys.secret", "--ledger", "book.db", "--out", "r.csv")
    rounding = ("protect", "table.parquet", "--method", "controlled-rounding", *options)
    assert run(*rounding, "-s", "base=3") == 0
    assert run(*rounding, "-s", "base=3") == 0
    capsys.readouterr()
    assert run(*rounding, "-s", "base=5") == 2
    assert "--again" in capsys.readouterr().err
    assert run(*rounding, "-s", "base=5", "--again") == 0


def test_twelve_private_columns_are_counted_by_a_ledger(folder, capsys):
    codes = [str(k) for k in range(12)]  # 12 ** 12 crossed cells would not fit into any memory
    names = [f"v{k}" for k in range(12)]
    lines = [",".join(["id", *names])]
    lines += [",".join(map(str, [i, *((i * (k + 1)) % 12 for k in range(12))])) for i in range(600)]
    (folder / "twelve.csv").write_text("\n".join(lines))
    (folder / "codes.toml").write_text(
        "".join(f'[{n}]\ncodes = {codes}\nother = "drop"\nmissing = "drop"\n' for n in names)
    )
    arguments = ("private", "twelve.csv", "--codes", "codes.toml", "--id", "id", "--epsilon", "1",
                 "--delta", "1e-9", "--by", "v0*v1 + v2*v3 + v4*v5 + v6*v7 + v8*v9 + v10*v11",
                 "--ledger", "book.db", "--budget", "1.1", "--budget-delta", "1e-9",
                 "--out", "synthetic.csv")  # fmt: skip
    assert run(*arguments) == 0, capsys.readouterr().err
    assert (folder / "synthetic.csv").exists()
    assert run(*arguments) == 2  # the budget is spent
    assert "budget" in capsys.readouterr().err


def test_a_lack_of_memory_ends_in_a_message(folder, capsys, monkeypatch):
    def tabulate(*_, **__):
        raise MemoryError("Unable to allocate 25.4 GiB")

    monkeypatch.setattr(Microdata, "tabulate", tabulate)
    assert run("tabulate", "people.parquet", "--by", "sex", "--out", "table.parquet") == 2
    assert "not enough memory (Unable to allocate 25.4 GiB)" in capsys.readouterr().err


def test_a_suppression_that_hides_nothing_says_so_and_draws_nothing(folder, capsys):
    assert run("tabulate", "people.parquet", "--by", "sex", "--out", "table.parquet") == 0
    capsys.readouterr()
    assert run("protect", "table.parquet", "--method", "suppress", "--out", "r.csv") == 0
    said = capsys.readouterr().out
    assert "No cell is sensitive" in said
    assert "Editions are drawn" not in said
    assert run("protect", "table.parquet", "--method", "suppress", "-s", "max=1000",
               "--out", "hidden.csv") == 0  # fmt: skip
    said = capsys.readouterr().out
    assert "No cell is sensitive" not in said
    assert "Editions are drawn" not in said


def test_a_column_of_amounts_is_no_variable_to_recode(folder, capsys):
    rows = [f"U{i};{'nord' if i % 2 else 'sør'};{i},5" for i in range(300)]
    (folder / "firms.csv").write_text("\n".join(["unit;place;turnover", *rows]))
    look = ("check", "data", "firms.csv", "--id", "unit", "--by", "place")
    assert run(*look) == 0
    said = capsys.readouterr().out
    assert "--value turnover or --weight turnover" in said
    assert "id='turnover'" not in said
    assert run(*look, "--value", "turnover") == 0
    assert "recode" not in capsys.readouterr().out  # an amount that is named needs no classes


def test_private_releases_are_paid_for_from_a_budget(folder, capsys):
    coded(folder)
    private = ("protect", "table.parquet", "--method", "discrete-laplace", "-s", "epsilon=0.4")
    ledger = ("--ledger", "book.db", "--budget", "1", "--out", "r.csv")
    assert run(*private, *ledger) == 0
    assert run(*private, "--ledger", "book.db", "--out", "r.csv") == 0
    capsys.readouterr()
    (folder / "r.csv").unlink()
    assert run(*private, *ledger) == 2
    assert "budget" in capsys.readouterr().err
    assert not (folder / "r.csv").exists()
    assert run("ledger", "show", "book.db") == 0
    assert "towns" in capsys.readouterr().out
    assert run("ledger", "show", "book.db", "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["entries"]) >= 2
    assert run(*private, "--budget", "1") == 2
    assert "--ledger" in capsys.readouterr().err
    assert run("ledger", "show", "none.db") == 2
    assert "--ledger none.db" in capsys.readouterr().err


def test_found_codes_are_refused_by_private_methods(folder, capsys):
    assert tabulate() == 0
    assert run("protect", "table.parquet", "--method", "laplace", "-s", "epsilon=1") == 2
    shown = capsys.readouterr().err
    assert "discreet codes" in shown
    assert "--codes codes.toml" in shown


def test_weights_need_a_word_on_what_is_published(folder, capsys):
    dc.Secret.from_file("keys.secret", create=True)
    coded(folder, "--weight", "w", "--mean-weight", 2, "--id", "id", "--secret", "keys.secret")
    noise = ("protect", "table.parquet", "--method", "cell-key", *PTABLE, "--out", "r.csv")
    capsys.readouterr()
    assert run(*noise) == 2
    assert "--unit count" in capsys.readouterr().err
    assert run(*noise, "--unit", "count") == 0
    assert list(pd.read_csv("r.csv").columns) == ["town", "sex", "count"]
    assert run(*noise, "--unit", "weight", "-s", "grid=2") == 0
    assert list(pd.read_csv("r.csv").columns) == ["town", "sex", "weight"]
    assert run(*noise, "--unit", "weigth") == 2
    assert "unit must be" in capsys.readouterr().err


def test_private_weights_need_a_bound(folder, capsys):
    private = ("protect", "table.parquet", "--method", "laplace", "-s", "epsilon=1",
               "--unit", "weight", "--out", "r.csv")  # fmt: skip
    coded(folder, "--weight", "w")
    assert run(*private) == 2
    assert "`--weight w --weight-bound 200`" in capsys.readouterr().err
    coded(folder, "--weight", "w", "--weight-bound", "2")
    assert dc.facade.read_table("table.parquet").data_set.bounds.weight == 2
    assert run(*private) == 0


def test_tables_have_names_that_commands_know(folder, capsys):
    named = ("--table", "By town=town*sex", "--table", "Sexes=sex")
    dc.Secret.from_file("keys.secret", create=True)
    made = ("people.parquet", *named, "--id", "id", "--secret", "keys.secret")
    assert run("tabulate", *made, "--out", "table.parquet", "--json") == 0
    assert json.loads(capsys.readouterr().out)["tables"] == ["By town", "Sexes"]
    assert run("protect", "table.parquet", "--method", "drop-add", "--out", "release.parquet") == 0
    assert run("export", "release.parquet", "--table", "Sexes", "--out", "sexes.csv") == 0
    assert Path("sexes.csv").read_text().splitlines()[0] == '"sex","count"'
    assert run("export", "release.parquet", "--table", "Sex", "--out", "sexes.csv") == 2
    assert run("tabulate", *made, "--by", "sex", "--out", "table.parquet") == 2


def test_persons_with_several_records_are_the_unit(folder, capsys):
    bad_data(person=[k // 4 for k in range(400)])
    coded(folder, "--id", "id", "--person", "person", "--max-records", "2")
    table = dc.facade.read_table("table.parquet")
    assert table.z[table.design.position({})] == 200
    assert run("protect", "table.parquet", "--method", "laplace", "-s", "epsilon=1", "--json") == 0
    assert "one person (person)" in capsys.readouterr().out


def test_a_publication_runs_with_code_lists_an_edition_and_a_ledger(folder, capsys):
    dc.Secret.from_file("keys.secret", create=True)
    (folder / "codes.toml").write_text(CODES)
    (folder / "publication.toml").write_text(
        "[data]\nsource = 'people.parquet'\nid = 'id'\nsecret = 'keys.secret'\n"
        "codes = 'codes.toml'\nname = 'towns'\neditions = 'redrawn'\nledger = 'book.db'\n"
        "[tabulate]\nmargins = 'town*sex'\n[protect]\nmethod = 'safe'\n"
    )
    assert run("publish", "publication.toml", "--edition", "2024") == 0, capsys.readouterr().err
    release = dc.facade.read_release("published/2024/release.parquet")
    parameters = release.statement.steps[0].parameters
    assert parameters.pop("why") == "this method draws for a table as a whole"
    assert parameters == {"name": "towns", "edition": "2024", "keys": "fresh"}
    capsys.readouterr()
    bad_data(sex=["f"] * 400)
    (folder / "published").rename(folder / "lost")
    assert run("publish", "publication.toml", "--edition", "2024") == 2  # of other records
    assert "edition" in capsys.readouterr().err


def test_a_publication_with_a_seed_for_protection_is_refused(folder, capsys):
    (folder / "publication.toml").write_text(
        "[tabulate]\nmargins = 'town'\n[protect]\nmethod = 'pram'\nseed = 1\n"
    )
    assert run("publish", "publication.toml") == 2
    shown = capsys.readouterr().err
    assert "publication draws from a secret" in shown
    assert "[data] secret = 'keys.secret'" in shown


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("say unit='count' or unit='weight'.", "say --unit count or --unit weight."),
        ("accept the risk with again=True.", "accept the risk with --again."),
        ("name the column (`key=...`).", "name the column (`--key`)."),
        ("`people.with_roles(weight='w', person=...)`.", "`--weight w --person`."),
        ("`dc.open(…, id='pid', ledger=…)`.", "`--id pid --ledger`."),
        ("`table.with_secret(secret)`, `release.fit(...)`", None),
        ("weight_bound=200 and max_records= go", "--weight-bound 200 and --max-records go"),
        ("cap=17 stays", "cap=17 stays"),
    ],
)
def test_messages_speak_of_flags(message, shown):
    assert in_flags(message) == (shown or message)


def test_given_keys_are_checked_against_their_convention(folder, capsys):
    bad_data(rkey=stream(1, "keys").integers(256, size=400))
    keys = ("--key", "rkey", "--id", "id")
    assert tabulate(*keys) == 2
    assert "--convention" in capsys.readouterr().err
    assert tabulate(*keys, "--convention", "ons-256") == 0
