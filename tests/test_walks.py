"""The walks of docs/walks.md and docs/whole_run.md run as printed, on small invented files."""

import csv
import json
import runpy
import shlex
import subprocess

import pyarrow.parquet as pq
import pytest

from benchmarks.walks import PAGE, steps, walks, with_figures, write_files
from benchmarks.whole_run import WHOLE
from discreet.cli import main

WALKS = walks()
IN_A_SHELL = ("sed ",)
ELSEWHERE = ("discreet serve ", "curl ", "kill ")  # tests/serve; `benchmarks.walks` types them


def take(step):
    if isinstance(step, tuple):
        with open(step[0], "w", encoding="utf-8") as file:
            file.write(step[1])
    elif step.startswith("discreet ") and not step.startswith(ELSEWHERE):
        with pytest.raises(SystemExit) as ended:
            main(shlex.split(step)[1:])
        assert ended.value.code == 0, step
    elif step.startswith("python "):
        runpy.run_path(step.split()[1])
    elif step.startswith(IN_A_SHELL):
        subprocess.run(["bash", "-c", step], check=True)
    else:
        assert step.startswith(ELSEWHERE), f"nobody runs {step!r}"


@pytest.mark.parametrize("name", WALKS)
def test_a_walk_runs_as_printed(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, None, rows=400)
    for step in steps(WALKS[name]):
        take(step)


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    """The folder of the whole run, after its last command."""
    folder = tmp_path_factory.mktemp("office")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for typed in walks(WHOLE).values():
            for step in steps(typed):
                take(step)
    return folder


def test_the_whole_run_runs_as_printed(office):
    for name in ("published/2025", "published/2026-r1", "turnover/2025", "turnover/2026", "again"):
        assert list((office / name).glob("*.xlsx")), name
    assert "N3" in (office / "published" / "2026" / "note.en.md").read_text(encoding="utf-8")


def test_the_site_of_the_whole_run_shows_what_was_published(office):
    head = json.loads((office / "out" / "site.json").read_text(encoding="utf-8"))
    told = json.loads((office / "out" / head["site"]).read_text(encoding="utf-8"))
    assert told["datasets"]["census"]["edition"] == "2026-r1"
    cells = pq.read_table(office / "out" / told["datasets"]["census"]["parquet"]).to_pylist()
    on_site = {tuple(map(str, cell.values())) for cell in cells}
    assert len(on_site) == 32
    assert on_site <= published(office, "2026-r1")
    assert not on_site <= published(office, "2026")


def published(office, edition):
    """The cells of an edition's table, totals included."""
    path = office / "published" / edition / "age-and-sex.csv"
    with path.open(encoding="utf-8-sig") as file:
        return {tuple(row.values()) for row in csv.DictReader(file)}


def test_a_second_publication_needs_a_folder_of_its_own(office, monkeypatch, capsys):
    monkeypatch.chdir(office)
    told = (office / "turnover.toml").read_text(encoding="utf-8")
    (office / "other.toml").write_text(told.replace("folder =", "log ="), encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["publish", "other.toml"])
    assert ended.value.code != 0
    assert "an edition of the publication 'census'" in capsys.readouterr().err


def test_there_are_five_and_each_ends_in_something_public(tmp_path):
    assert len(WALKS) == 5
    ends = ("fitted.csv", "umsatz.xlsx", "synthetic.csv", "curl", "walk.py")
    assert all(end in typed for end, typed in zip(ends, WALKS.values(), strict=True))


def test_what_was_measured_goes_into_the_table_of_the_page():
    page = PAGE.read_text(encoding="utf-8")
    rows = [[name, 5, f"{k}.25", "1.5"] for k, name in enumerate(WALKS)]
    written = with_figures(page, rows)
    old, new = page.splitlines(), written.splitlines()
    changed = [line for before, line in zip(old, new, strict=True) if before != line]
    assert [line.split("|")[2:5] for line in changed] == [
        [f" {figure} " for figure in row[1:]] for row in rows
    ]
    assert with_figures(written, rows) == written
    with pytest.raises(ValueError, match="0 rows for the walk 'none'"):
        with_figures(page, [["none", 1, "1", "1"]])


def test_a_wrong_command_would_be_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match="--bye"):
        take("discreet tabulate lfs.csv.gz --bye AGE --out table.parquet")
    with pytest.raises(AssertionError, match="nobody runs"):
        take("rm lfs.csv.gz")
