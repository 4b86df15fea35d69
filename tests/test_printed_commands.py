"""Every command that is printed, in a page or a help text, is read, and runs where it can here."""

import inspect
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from typer.main import get_command

import discreet as dc
from discreet import registry
from discreet.cli import main
from discreet.cli.app import HOMES, app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
ELSEWHERE = {
    "postgresql://": "a server: tests/engines",
    "discreet check engine": "the battery, case by case: tests/tabulate, tests/engines",
    "https://": "a site elsewhere: tests/serve",
    "discreet serve": "serves until it is stopped: tests/serve",
    "discreet demo": "makes and serves a census: tests/serve, tests/cli",
    "demo/": "files of `discreet demo`",
    "discreet study": "a package of its own: tests/studies",
    "discreet argus": "a batch with its files: tests/protect/suppress",
    "discreet replay": "a saved query: tests/serve",
    "discreet token": "a site with accounts: tests/office",
    "discreet log": "a site with a log: tests/office",
    "discreet build": "a site: tests/serve",
    "attack --url": "a site: tests/attack/test_service.py",
    "-a differencing": "two releases that overlap: tests/attack/test_differencing.py",
    "site.toml": "a site: tests/serve",
    "check site out": "a site of files: tests/serve/static",
    "discreet ledger": "a history of editions: tests/cli, tests/ledger",
    "ledger enter": "a history of editions: tests/ledger",
    "/safe/": "a place outside the folder",
    "publication.toml": "a publication with its records: tests/publication",
    "discreet republish": "the same",
    "discreet swap": "records of households: tests/synthesize",
    "--time year": "a history of editions: tests/ledger",
    "local(1)": "records of households: tests/cli",
    "discreet audit --table": "a pattern of another program: tests/cli",
    "umsatz.csv": "the German file of the page above it: tests/microdata",
    "register.csv": "files of the tutorial, whose Python blocks make them: tests/test_docs.py",
    "counts.parquet": "the same",
    "sums.parquet": "the same",
}
"""What does not run here, and where it is tested instead; it is read like all others."""


def in_pages(pages=PAGES):
    for page in pages:
        for language, block in BLOCK.findall(page.read_text(encoding="utf-8")):
            if page.name == "cli.md" or language in ("python", "py", "toml", "json", "ini"):
                continue
            for line in block.replace("\\\n", " ").splitlines():
                if line.startswith("discreet "):
                    yield re.split(r" # | > | 2>| &$", line)[0].replace("$port", "8000").strip()


def in_help():
    for command in map(registry.load_path, filter(None, HOMES.values())):
        for part in (inspect.getdoc(command) or "").split("\n\n"):
            if part.startswith("Example"):
                text = " ".join(part.split())
                found = re.split(r"(?:^Examples?:| and in whole numbers,) ", text)
                yield from (one for one in found if one)


PRINTED = sorted({" ".join(command.split()) for command in (*in_pages(), *in_help())})
WALKS = [ROOT / "docs" / name for name in ("walks.md", "whole_run.md")]
WALKED = set(in_pages(WALKS))  # tests/test_walks.py runs them in their order
HERE = [c for c in PRINTED if c not in WALKED and not any(sign in c for sign in ELSEWHERE)]


def test_there_are_as_many_as_there_should_be():
    assert len(PRINTED) > 80
    assert len(HERE) > 30


@pytest.mark.parametrize("command", PRINTED)
def test_every_printed_command_is_read(command):
    """Names of commands and options, and kinds of values, are what the program takes."""
    name, *words = shlex.split(command)[1:]
    group = get_command(app)
    context = group.make_context("discreet", ["--version"], resilient_parsing=True)
    found = group.get_command(context, name)
    assert found is not None, f"there is no command {name!r}"
    if name != "study":
        found.make_context(f"discreet {name}", words, parent=None)


def test_a_command_that_is_not_there_would_be_found():
    found = get_command(app).get_command(None, "protect")
    with pytest.raises(Exception, match="--methd"):
        found.make_context("discreet protect", ["table.parquet", "--methd", "safe"])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """What examples take for granted: records, code lists, tables, a release, a recipe."""
    folder = tmp_path_factory.mktemp("printed")
    rng, n = np.random.default_rng(1), 600
    people = pa.table(
        {
            "person_id": np.arange(n),
            "pid": np.arange(n) + n,
            "region": rng.choice(list("ABC"), n),
            "age": rng.choice(["15", "25", "35", "45"], n),
            "sex": rng.choice(["f", "m"], n),
            "party": rng.choice(["left", "right"], n),
        }
    )
    more = {"income": rng.normal(100, 9, n), "tax": rng.normal(30, 5, n)}
    numbers = pa.table({**{c: people[c] for c in ("person_id", "region")}, **more})
    numbers = numbers.append_column("age", pa.array(rng.integers(20, 60, n)))
    pa.csv.write_csv(people, folder / "people.csv")
    pa.parquet.write_table(numbers, folder / "people.parquet")
    domestic, export = rng.integers(1, 90, n) * 1.0, rng.integers(1, 90, n) * 1.0
    firms = {"enterprise": np.arange(n), "activity": rng.choice(list("XY"), n)}
    firms |= {"region": people["region"], "domestic": domestic, "export": export}
    pa.csv.write_csv(pa.table({**firms, "turnover": domestic + export}), folder / "firms.csv")
    columns = ("region", "age", "sex", "party")
    lists = {c: sorted(set(people[c].to_pylist())) for c in columns}
    text = "".join(f"[{c}]\ncodes = {str(v)}\n" for c, v in lists.items())
    (folder / "codes.toml").write_text(text.replace("'", '"'))
    (folder / "recipe.toml").write_text(
        '[tabulate]\nmargins = "region*sex"\n[protect]\nmethod = "cell-key"\n'
    )
    opened = dc.open(people, id="person_id", secret=folder / "keys.secret", name="census",
                     hierarchies={c: dc.Hierarchy.flat(v) for c, v in lists.items()})  # fmt: skip
    tables = {"Age by region": "region*age", "Sex by region": "region*sex*party"}
    table = opened.tabulate(tables)
    table.save(folder / "table.parquet")
    table.protect("cell-key").save(folder / "release.parquet")
    shutil.copy(folder / "release.parquet", folder / "perturbed.parquet")
    sums = dc.open(folder / "firms.csv").tabulate(
        "activity*region", value="turnover", contributor="enterprise"
    )
    sums.save(folder / "sums-of-firms.parquet")
    sums.protect("suppress", rules="p%(10)").save(folder / "hidden.parquet")
    return folder


@pytest.mark.parametrize("command", HERE)
def test_every_printed_command_runs_as_printed(command, files, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "work"
    shutil.copytree(files, folder)
    monkeypatch.chdir(folder)
    if "p%(10)" in command or command.startswith("discreet audit"):  # these are about sums
        shutil.copy("sums-of-firms.parquet", "table.parquet")
        shutil.copy("hidden.parquet", "release.parquet")
    words = shlex.split(command)[1:]
    if words[0] == "compare":  # a hundred draws would take a minute
        words[words.index("--replicates") + 1] = "2"
    if words[0] == "codes":  # drafts a new file
        (folder / "codes.toml").unlink()
    if words[:2] == ["secret", "rotate"]:
        dc.Ledger("discreet.db")
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0, capsys.readouterr().err
