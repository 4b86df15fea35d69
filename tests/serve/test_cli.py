"""`discreet serve` and `discreet demo`, as a newcomer types them."""

import csv
import io
import json
import re
import shlex
import signal
import urllib.request

import pytest

from discreet import Secret
from discreet.serve import InnerSource
from discreet.serve import run as serving
from tests.commands import run
from tests.serve.client import Client
from tests.serve.process import started

SMALL = ("--persons", 2_000, "--seed", 3)


def fetched(url):
    with urllib.request.urlopen(url, timeout=30) as response:
        return response.read().decode("utf-8-sig")


def cells(url):
    """The cells of a table as a file, by the names of its columns."""
    return list(csv.DictReader(io.StringIO(fetched(url))))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("demo") / "made here"
    assert run("demo", *SMALL, "--folder", path, "--no-serve") == 0
    return path


def test_the_demo_makes_files_that_only_their_owner_reads(folder):
    names = sorted(p.name for p in folder.iterdir())
    files = ["census-2000-3.parquet", "survey-2000-3.parquet", "keys.secret"]
    assert names == sorted([*files, "codes", "site.toml"])
    for name in files:
        assert (folder / name).stat().st_mode & 0o777 == 0o600


def test_the_demo_check_fetches_a_protected_table(folder, capsys):
    files = [*folder.glob("*.parquet"), folder / "keys.secret"]
    before = {p: p.stat().st_mtime_ns for p in files}
    assert run("demo", *SMALL, "--folder", folder, "--check") == 0
    printed = capsys.readouterr().out
    assert "Each figure was changed by a small random amount." in printed
    last = printed.strip().splitlines()[-1]
    assert last.startswith("checked http://127.0.0.1:")
    assert last.endswith("/d/census/table.csv?rows=region%5Bprovince%5D&columns=sex: 27 cells")
    assert {p: p.stat().st_mtime_ns for p in before} == before


def test_the_demo_builds_what_it_needs_once(folder, capsys):
    assert run("demo", *SMALL, "--folder", folder, "--check") == 0
    capsys.readouterr()
    assert run("demo", *SMALL, "--folder", folder, "--check") == 0
    assert "Building" not in capsys.readouterr().out
    assert run("build", folder / "site.toml", "--stale") == 0
    assert "Every data set is built." in capsys.readouterr().out
    assert run("build", folder / "site.toml", "--plan") == 0
    assert "inner cells" in capsys.readouterr().out


def test_the_demo_is_files_as_well(folder, capsys):
    assert run("demo", *SMALL, "--folder", folder, "--static", "--check") == 0
    assert "index.html" in capsys.readouterr().out
    assert run("check", "site", folder / "static") == 0
    assert "census (2026)" in capsys.readouterr().out


def test_a_site_that_needs_a_server_is_no_site_of_files(folder, tmp_path, capsys):
    assert run("build", folder / "site.toml", "--static", tmp_path / "out") == 2
    assert "'survey' makes its tables on the fly" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert run("build", folder / "site.toml", "--parquet") == 2
    assert "--parquet and --sign go with --static" in capsys.readouterr().err


def test_a_build_without_a_ledger_says_what_is_not_noticed(folder, caplog):
    assert run("build", folder / "site.toml") == 0
    assert "names no ledger" in caplog.text


def test_a_failing_check_is_not_a_success(folder, capsys, monkeypatch):
    monkeypatch.setattr(InnerSource, "cube", lambda *_: 1 / 0)
    assert run("demo", *SMALL, "--folder", folder, "--check") == 1
    assert "check failed" in capsys.readouterr().out


def test_the_next_commands_run_as_printed(folder, capsys):
    capsys.readouterr()
    assert run("demo", *SMALL, "--folder", folder, "--no-serve") == 0
    commands = re.findall(r"^  discreet (.+)$", capsys.readouterr().out, re.MULTILINE)
    tabulate, protect, serve, build, serve_site = map(shlex.split, commands)
    assert run(*tabulate) == 0
    assert run(*protect) == 0
    assert "count" in (folder / "release.csv").read_text().splitlines()[0]
    assert run(*build) == 0
    for command, name in ((serve, "census-2000-3"), (serve_site, "census")):
        with started(*command, "--port", 0) as (process, address):
            url = f"{address}d/{name}/table.csv?rows=region[province]&columns=sex"
            served = cells(url)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=20)
        assert len(served) == 27
        assert (process.returncode, out, err) == (0, "", "")


def test_serve_needs_to_know_what_is_on_offer(folder, capsys):
    census = folder / "census-2000-3.parquet"
    secret = ("--id", "person_id", "--secret", folder / "keys.secret")
    assert run("serve", census, *secret, "--port", 0) == 2
    assert "--by 'region*sex'" in capsys.readouterr().err


def test_serve_says_what_is_missing_before_it_listens(folder, capsys):
    census = folder / "census-2000-3.parquet"
    codes = ("--codes", folder / "codes" / "codes.toml")
    assert run("serve", census, "--by", "sex", *codes, "--port", 0) == 2
    assert "publication draws from a secret" in capsys.readouterr().err
    assert run("serve", census, "--by", "sex", *codes, "--port", 0, "--on-the-fly") == 2
    assert "no cell keys" in capsys.readouterr().err
    keys = ("--id", "person_id", "--secret", folder / "keys.secret")
    assert run("serve", census, "--by", "sex", *keys, "--port", 0) == 2
    assert "'sex' were found in the records" in capsys.readouterr().err
    assert run("serve", census, "--by", "sxe", "--port", 0) == 2
    assert "sex" in capsys.readouterr().err
    assert run("serve", census, "--by", "sex", "--max-cells", 0) == 2
    assert "max_cells must be at least 1" in capsys.readouterr().err


def test_serve_follows_a_recipe(folder, tmp_path, capsys):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        "[tabulate]\nmargins = 'sex*marital'\n"
        "[protect]\nmethod = 'cell-key'\nparameters = {D = 3, V = 1}\n"
    )
    keys = ("--id", "person_id", "--secret", folder / "keys.secret")
    look = ("--title", "Ours", "--root-path", "/tables", "--port", 0)
    codes = ("--codes", folder / "codes" / "codes.toml")
    options = ("--recipe", recipe, *codes, *keys, *look)
    assert run("serve", folder / "census-2000-3.parquet", *options) == 2
    assert "--on-the-fly" in capsys.readouterr().err
    options = (*options, "--on-the-fly")
    with started("serve", folder / "census-2000-3.parquet", *options) as (_, address):
        limits = json.loads(fetched(f"{address}api/v1/limits"))
        page = fetched(f"{address}d/census-2000-3/table?rows=sex")
    assert limits["title"] == "Ours"
    assert "Ours" in page
    assert 'href="/tables/d/census-2000-3/' in page


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


@pytest.fixture
def listening(survey, monkeypatch):
    """What `discreet serve` would answer at its socket, in this process."""

    def listen(*options):
        found = []

        def take(app, socket, _):
            found.append(app)
            socket.close()

        monkeypatch.setattr(serving, "serve_until_stopped", take)
        assert run("serve", *survey_options(survey), *options) == 0
        return Client(*found)

    return listen


def test_weights_are_served_in_steps_of_a_public_weight(listening):
    about = ("--name", "survey", "--edition", "2024")
    asked = listening("--weight", "w", "--mean-weight", 13, "--grid", 15, *about)
    found = asked.get("/d/survey/table.csv?rows=sex").content.decode("utf-8-sig")
    page = asked.get("/d/survey/table?rows=sex").text
    assert all(int(cell["weight"]) % 15 == 0 for cell in csv.DictReader(io.StringIO(found)))
    assert "2024" in page
    assert "in steps of 15" in page


@pytest.mark.parametrize("options", [(), ("--on-the-fly",)], ids=["once", "on the fly"])
def test_records_are_released_once_unless_on_the_fly_is_said(listening, caplog, options):
    """Once, all figures are sums of one table; on the fly, they need not be, and it is said."""
    page = listening(*options).get("/d/survey/table?rows=sex").text
    assert ("cell key method" in page) == bool(options)
    assert ("single out people" in caplog.text) == bool(options)


@pytest.mark.parametrize("options", [("--weight", "w"), ("--grid", 13)])
def test_weights_and_their_grid_go_together(survey, capsys, options):
    assert run("serve", *survey_options(survey), *options) == 2
    assert "--weight and --grid go together" in capsys.readouterr().err


def test_a_method_that_draws_for_each_table_is_not_served(survey, capsys):
    recipe = survey.with_name("recipe.toml")
    recipe.write_text("[tabulate]\nmargins = 'sex'\n[protect]\nmethod = 'safe'\n")
    given = (*survey_options(survey), "--recipe", recipe, "--on-the-fly")
    assert run("serve", *given) == 2
    assert "average it away" in capsys.readouterr().err
    recipe.write_text("[tabulate]\nmargins = 'sex'\n[protect]\nmethod = 'safe'\nseed = 1\n")
    assert run("serve", *given) == 2
    assert "publication draws from a secret" in capsys.readouterr().err


def test_a_site_says_itself_what_options_say_of_records(folder, capsys):
    assert run("serve", folder / "site.toml", "--by", "sex") == 2
    assert "--by goes with records" in capsys.readouterr().err
    census = folder / "census-2000-3.parquet"
    keys = ("--id", "person_id", "--secret", folder / "keys.secret")
    codes = ("--codes", folder / "codes" / "codes.toml")
    assert run("serve", census, "--by", "sex", *keys, *codes, "--workers", 2) == 2
    assert "site.toml" in capsys.readouterr().err
