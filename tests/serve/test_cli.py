"""`discreet serve` and `discreet demo`, as a newcomer types them."""

import json
import re
import shlex
import signal
import urllib.request

import pytest

import discreet.cli.demo
from discreet.cli import main
from discreet.microdata.secret import Secret
from discreet.serve.app import make_app
from tests.serve.process import started
from tests.serve.test_app import Broken

SMALL = ("--persons", 2_000, "--seed", 3)


def run(*arguments):
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    return stop.value.code


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("demo") / "made here"
    assert run("demo", *SMALL, "--folder", path, "--no-serve") == 0
    return path


def test_the_demo_makes_files_that_only_their_owner_reads(folder):
    names = sorted(p.name for p in folder.iterdir())
    assert names == ["census-2000-3.parquet", "codes", "keys.secret"]
    for name in ("census-2000-3.parquet", "keys.secret"):
        assert (folder / name).stat().st_mode & 0o777 == 0o600


def test_the_demo_check_fetches_a_protected_table(folder, capsys):
    before = {p: p.stat().st_mtime_ns for p in folder.iterdir() if p.is_file()}
    assert run("demo", *SMALL, "--folder", folder, "--check") == 0
    printed = capsys.readouterr().out
    assert "Values were changed by the cell key method" in printed
    last = printed.strip().splitlines()[-1]
    assert last.startswith("checked http://127.0.0.1:")
    assert last.endswith("Region (province) by sex, 27 cells, data, protect:cell-key")
    assert {p: p.stat().st_mtime_ns for p in before} == before


def test_a_failing_check_is_not_a_success(folder, capsys, monkeypatch, source):
    broken = make_app(Broken(source, RuntimeError("no")))
    monkeypatch.setattr(discreet.cli.demo, "site", lambda *_: broken)
    assert run("demo", *SMALL, "--folder", folder, "--check") == 1
    assert "check failed" in capsys.readouterr().out


def test_the_next_commands_run_as_printed(folder, capsys):
    capsys.readouterr()
    assert run("demo", *SMALL, "--folder", folder, "--no-serve") == 0
    commands = re.findall(r"^  discreet (.+)$", capsys.readouterr().out, re.MULTILINE)
    tabulate, protect, serve = map(shlex.split, commands)
    assert run(*tabulate) == 0
    assert run(*protect) == 0
    assert "count" in (folder / "release.csv").read_text().splitlines()[0]
    with started(*serve, "--port", 0) as (process, address):
        url = f"{address}table.json?rows=region[province]&columns=sex"
        with urllib.request.urlopen(url, timeout=30) as response:
            served = json.load(response)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert len(served["cells"]) == 27
    assert (process.returncode, out, err) == (0, "", "")


def test_serve_needs_to_know_what_is_on_offer(folder, capsys):
    census = folder / "census-2000-3.parquet"
    secret = ("--id", "person_id", "--secret", folder / "keys.secret")
    assert run("serve", census, *secret, "--port", 0) == 2
    assert "--by 'region*sex'" in capsys.readouterr().err


def test_serve_says_what_is_missing_before_it_listens(folder, capsys):
    census = folder / "census-2000-3.parquet"
    assert run("serve", census, "--by", "sex", "--port", 0) == 2
    assert "no cell keys" in capsys.readouterr().err
    keys = ("--id", "person_id", "--secret", folder / "keys.secret")
    assert run("serve", census, "--by", "sex", *keys, "--port", 0) == 2
    assert "'sex' were found in the records" in capsys.readouterr().err
    assert run("serve", census, "--by", "sxe", "--port", 0) == 2
    assert "sex" in capsys.readouterr().err
    assert run("serve", census, "--by", "sex", "--max-cells", 0) == 2
    assert "max_cells must be at least 1" in capsys.readouterr().err


def test_serve_follows_a_recipe(folder, tmp_path):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        "[tabulate]\nmargins = 'sex*marital'\n"
        "[protect]\nmethod = 'cell-key'\nparameters = {D = 3, V = 1}\n"
    )
    keys = ("--id", "person_id", "--secret", folder / "keys.secret")
    look = ("--title", "Ours", "--root-path", "/tables", "--port", 0)
    codes = ("--codes", folder / "codes" / "codes.toml")
    options = ("--recipe", recipe, *codes, *keys, *look)
    with started("serve", folder / "census-2000-3.parquet", *options) as (_, address):
        with urllib.request.urlopen(f"{address}limits.json", timeout=30) as response:
            limits = json.load(response)
        with urllib.request.urlopen(f"{address}table.json?rows=sex", timeout=30) as response:
            steps = json.load(response)["statement"]["steps"]
        with urllib.request.urlopen(address, timeout=30) as response:
            front = response.read().decode()
    assert [v["name"] for v in limits["variables"]] == ["sex", "marital"]
    assert steps[1]["parameters"]["D"] == 3
    assert "Ours</title>" in front
    assert 'action="/tables/table"' in front


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    path = tmp_path_factory.mktemp("survey") / "survey.csv"
    lines = [f"{k},{'fm'[k % 2]},{10 + k % 7}.25" for k in range(900)]
    path.write_text("\n".join(["pid,sex,w", *lines]))
    path.with_name("codes.toml").write_text('[sex]\ncodes = ["f", "m"]\n')
    Secret.from_file(path.with_name("keys.secret"), create=True)
    return path


def survey_options(survey):
    here = survey.parent
    keys = ("--id", "pid", "--secret", here / "keys.secret", "--codes", here / "codes.toml")
    return (survey, "--by", "sex", *keys, "--port", 0)


def test_weights_are_served_in_steps_of_a_public_weight(survey):
    options = ("--weight", "w", "--grid", 13, "--name", "survey", "--edition", "2024")
    with started("serve", *survey_options(survey), *options) as (_, address):
        with urllib.request.urlopen(f"{address}table.json?rows=sex", timeout=30) as response:
            found = json.load(response)
        with urllib.request.urlopen(f"{address}table?rows=sex", timeout=30) as response:
            page = response.read().decode()
    assert found["unit"] == "weight"
    assert found["columns"] == ["sex", "weight"]
    assert all(value % 13 == 0 for _, value in found["cells"])
    assert found["statement"]["steps"][0]["parameters"]["edition"] == "2024"
    assert "Weighted counts, protected" in page
    assert "in steps of 13" in page


@pytest.mark.parametrize("options", [("--weight", "w"), ("--grid", 13)])
def test_weights_and_their_grid_go_together(survey, capsys, options):
    assert run("serve", *survey_options(survey), *options) == 2
    assert "--weight and --grid go together" in capsys.readouterr().err


def test_a_method_that_draws_for_each_table_is_not_served(survey, capsys):
    recipe = survey.with_name("recipe.toml")
    recipe.write_text("[tabulate]\nmargins = 'sex'\n[protect]\nmethod = 'safe'\n")
    assert run("serve", *survey_options(survey), "--recipe", recipe) == 2
    assert "average it away" in capsys.readouterr().err
    recipe.write_text("[tabulate]\nmargins = 'sex'\n[protect]\nmethod = 'safe'\nseed = 1\n")
    assert run("serve", *survey_options(survey), "--recipe", recipe) == 2
    assert "publication draws from a secret" in capsys.readouterr().err
