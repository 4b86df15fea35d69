"""The five walks of docs/walks.md run as printed, on small invented files."""

import re
import runpy
import shlex
import subprocess

import pytest

from benchmarks.walks import walks, write_files
from discreet.cli import main

WALKS = walks()
DOCUMENT = re.compile(r"cat > (\S+) <<'END'")
IN_A_SHELL = ("sed ",)
ELSEWHERE = ("discreet serve ", "curl ", "kill ")  # tests/serve; `benchmarks.walks` types them


def steps(typed):
    """What is typed, line by line; a document is a pair of its file and its text."""
    lines = iter(typed.splitlines())
    for line in lines:
        if name := DOCUMENT.fullmatch(line):
            yield name[1], "".join(f"{text}\n" for text in iter(lambda: next(lines), "END"))
        else:
            yield line


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


def test_there_are_five_and_each_ends_in_something_public(tmp_path):
    assert len(WALKS) == 5
    ends = ("fitted.csv", "umsatz.xlsx", "synthetic.csv", "curl", "walk.py")
    assert all(end in typed for end, typed in zip(ends, WALKS.values(), strict=True))


def test_a_wrong_command_would_be_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match="--bye"):
        take("discreet tabulate lfs.csv.gz --bye AGE --out table.parquet")
    with pytest.raises(AssertionError, match="nobody runs"):
        take("rm lfs.csv.gz")
