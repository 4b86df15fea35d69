"""Answers of the command line: what is printed, how it ends and which files it writes.

Commands run one after the other in one folder, so that each finds what those before it have made.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from recorded import inputs
from recorded.entry import ROOT, run_forked
from recorded.site import write_secret
from recorded.text import content_text, normalised, sqlite_text

CODES = """
[region]
codes = ["north", "east", "south", "west"]
[sex]
codes = ["f", "m"]
[children]
codes = ["0", "1", "2", "3", "4", "5"]
"""
RECIPE = """
[tabulate]
margins = "region*sex"
[protect]
method = "cell-key"
parameters = {D = 5, V = 3, js = 2}
[fit]
fitter = "non-negative"
"""
SITE = """
title = "Small"
[accounts]
rate = 0
[datasets.people]
title = "People"
[datasets.people.records]
source = "people.csv"
id = "pid"
codes = "codes.toml"
secret = "keys.secret"
ledger = "site-ledger.db"
[datasets.people.recipe.tabulate]
margins = "region*sex"
[datasets.people.recipe.protect]
method = "safe"
"""
QUERY = """
version = 1
url = "http://127.0.0.1:1"
dataset = "people"
edition = "1"
title = "People"
[query]
rows = ["region"]
columns = ["sex"]
"""
PATTERN = """activity,region,status
bread,hills,p
bread,north,s
paper,hills,s
paper,north,s
"""
KEYS = "--id pid --secret keys.secret --codes codes.toml"
FIRMS = "tabulate firms.csv --by activity*region"
SUMS = "--value turnover --contributor enterprise"
DRAWN = "--secret keys.secret"
SAFE = f"--method safe {DRAWN} --ledger ledger.db"
NOISE = "-s D=5 -s V=3 -s js=2"
KEYED = f"--method cell-key {NOISE} {DRAWN}"
BY_REGION = f"--clusters region {DRAWN}"
INCOMES = "synthesize people.parquet --model"
COMMANDS = f"""
tabulate people.csv --by region*sex {KEYS} --out table.parquet
tabulate people.csv --by region*sex+children {KEYS} --name census --edition 2026 --out named.parquet
tabulate people.csv --by region*sex {KEYS} --weight w --out weighted.parquet
tabulate people.csv --by region {KEYS} --support occurring --json --out occurring.parquet
{FIRMS} --out counts.parquet
{FIRMS} {SUMS} --out sums.parquet
{FIRMS} {SUMS} --holding group --largest 2 --json --out held.parquet
tabulate people.csv --by region*sex --hierarchy region=region.hrc --id pid {DRAWN} --out t.parquet
protect table.parquet {KEYED} --out release.csv
protect table.parquet {KEYED} --json --out release.parquet
protect table.parquet {KEYED} --out release.xlsx
protect table.parquet {KEYED}
protect table.parquet {SAFE} --out safe.parquet
protect table.parquet {SAFE} -s min_count=4 --out safe2.parquet
protect table.parquet {SAFE} -s min_count=4 --again --out safe2.parquet
protect table.parquet --method drop-add {DRAWN} --out dropped.px
protect table.parquet --method pram {DRAWN} --out pram.jsonstat.json
protect table.parquet --method controlled-rounding {DRAWN} --out rounded.sdmx.csv
protect table.parquet --method small-count-rounding {DRAWN} --out small.html
protect table.parquet --method quality {NOISE} {DRAWN} --out quality.json
protect table.parquet --method adjust {NOISE} {DRAWN} --out adjusted.parquet
protect weighted.parquet {KEYED} -s grid=10 --unit weight --out weighted.csv
protect weighted.parquet {KEYED} --out weighted2.csv
protect counts.parquet --method suppress -s max=3 --out suppressed.csv
protect counts.parquet --method suppress -s max=3 --out suppressed.parquet
protect sums.parquet --method suppress -s rules=["p%(10)","few-contributors(3)"] --out tax.parquet
protect sums.parquet --method suppress -s rules=dominance --json --out dominated.csv
protect table.parquet --method nothing --out x.csv
protect table.parquet --method cell-key -s E=5 --out x.csv
protect table.parquet --method cell-key -s D --out x.csv
protect table.parquet --method cell-key --out x.doc
protect missing.parquet --method cell-key --out x.csv
protect people.csv --method cell-key --out x.csv
protect release.parquet --method cell-key --out x.csv
protect table.parquet --method discrete-laplace -s epsilon=-1 --out x.csv
protect table.parquet --method safe --out x.csv
protect
fit release.parquet --out fitted.parquet
fit release.csv --fitter non-negative --out fitted.csv
fit release.parquet --fitter least-squares --json
fit release.parquet --fitter whole-number -s seed=1 -s proposals=1e5
fit release.parquet --fitter non-negative --round margins --seed 1 --out whole.csv
fit release.parquet --fitter log-linear --zeros margins
fit release.parquet --round margins
fit release.parquet --round up --seed 1
fit release.parquet --fitter best
fit table.parquet
fit release.parquet --out fitted.txt
{INCOMES} income~age+region --keep region --keep age {DRAWN} --out synthetic.csv
{INCOMES} income+tax~local(age)+shared(sex) --method hybrid {BY_REGION} --json --out hybrid.csv
{INCOMES} income~age --method romm -s lambda_=0.3 {DRAWN} --report synthetic.html --out romm.csv
{INCOMES} income~height {DRAWN} --out x.csv
{INCOMES} income {DRAWN} --out x.csv
{INCOMES} income~age --method magic {DRAWN} --out x.csv
assess table.parquet release.parquet
assess table.parquet release.parquet --sensitive sex --json
assess table.parquet release.parquet -m hellinger-utility -m unchanged-small-cells:small=3
assess table.parquet release.parquet -m nothing
assess table.parquet release.parquet --sensitive height
assess release.parquet table.parquet
audit suppressed.parquet --table counts.parquet
audit suppressed.parquet --json
audit tax.parquet --table sums.parquet --intervals all --lone signs
audit --table counts.parquet --labels pattern.csv --json
audit --labels pattern.csv
audit suppressed.parquet --intervals some
compare table.parquet --method cell-key:D=5,V=3,js=2 --method drop-add --replicates 3 --workers 1
compare table.parquet --method cell-key:D=5,V=3,js=2 --replicates 3 --workers 1 --json
compare table.parquet
compare table.parquet --method none
publish --convert recipe.toml --draft people.csv publication.toml
publish publication.toml --json
publish missing.toml
publish wrong.toml
export release.parquet --out out.px --title People --source Office --footnote Invented
export release.parquet --out out.xlsx --layout wide --labels both
export release.csv --out out.jsonstat.json
export tax.parquet --out out.sdmx.csv --dataflow EXAMPLE:TURNOVER(1.0)
export release.parquet --out out.html --json
export release.parquet --out out.doc
export table.parquet --out out.csv
export release.parquet
ptable --D 5 --V 3 --js 2 --out ptable.csv
ptable --D 5 --V 3 --js 2 --out ptable.json --json
ptable --D 3 --V 2 --variant ptable --pstay 0.5
ptable --D 2 --V 20
ptable --D 3 --V 2 --variant other
ptable --D x --V 2
assess table.parquet release.parquet --ptable ptable.csv
keys people.csv --id pid {DRAWN} --out keys.parquet
keys people.csv --id pid {DRAWN} --edition 2 --editions redrawn --json --out keys2.parquet
keys people.csv --id sex {DRAWN} --out keys3.parquet
keys people.csv --id nobody {DRAWN} --out keys3.parquet
tabulate people.csv --by region --id pid --keys keys.parquet --out keyed.parquet
codes people.csv --id pid --weight w --out drafted.toml
codes people.csv --id pid --max-codes 3 --json --out drafted2.toml
codes people.csv --id pid --out drafted.toml
codes missing.csv --out drafted3.toml
ledger show ledger.db
ledger show ledger.db --json
ledger show missing.db
ledger burn ledger.db
build site.toml --plan
build site.toml --plan --json
build site.toml
build site.toml --stale
build site.toml --only nobody
build site.toml --again --json
build missing.toml
build wrong.toml
replay query.toml --site site.toml
replay query.toml --site site.toml --out replayed.px
replay query.toml --site site.toml --json --out replayed.csv
replay wrong.toml --site site.toml
replay query.toml
serve people.csv
serve missing.toml
serve people.csv --by region --weight w {KEYS}
serve site.toml --by region
token list --site site.toml
token revoke ann --site site.toml
token add --site site.toml
log usage --site site.toml
log usage --site site.toml --json
log export --site site.toml --out log.csv
log forget --site site.toml
log forget --site site.toml --days 400
study list
study list --json
study run nothing
tabulate people.csv --by region*height {KEYS} --out x.parquet
tabulate people.csv --by region*( {KEYS} --out x.parquet
tabulate people.csv --by age {KEYS} --out x.csv
tabulate missing.csv --by region --out x.parquet
tabulate people.csv --by region --codes short.toml --out x.parquet
tabulate people.csv --by region --weight sex --out x.parquet
tabulate people.csv --by region --secret weak.secret --id pid --out x.parquet
tabulate people.csv --by region --encoding utf-16 --out x.parquet
tabulate people.csv --out x.parquet
tabulat people.csv
--version
--nothing
"""


def answers(only: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Every command; a part is answered only when everything before it has run as well."""
    if "commands".startswith(only) or any(start.startswith("commands") for start in only):
        with tempfile.TemporaryDirectory(prefix="recordings-") as place:
            yield from _all(Path(place))


def _all(folder: Path) -> Iterator[tuple[str, str]]:
    _write_inputs(folder)
    yield "commands/help", _run("--help", folder)
    listed = re.findall(r"(?m)^  ([a-z]+) ", run_forked(["--help"], folder).stdout)
    for name in listed:
        yield f"commands/{name} --help", _run(f"{name} --help", folder)
    for line in COMMANDS.strip().splitlines():
        yield f"commands/{line}", _run(line, folder)


def _write_inputs(folder: Path) -> None:
    people = inputs.people()
    people.to_csv(folder / "people.csv", index=False)
    people.to_parquet(folder / "people.parquet", index=False)
    inputs.firms().to_csv(folder / "firms.csv", index=False)
    texts = {
        "codes.toml": CODES,
        "short.toml": '[region]\ncodes = ["north"]\n',
        "recipe.toml": RECIPE,
        "wrong.toml": "titel = 3\n",
        "site.toml": SITE,
        "query.toml": QUERY,
        "pattern.csv": PATTERN,
        "weak.secret": "abc\n",
        "region.hrc": "up\n@north\n@east\ndown\n@south\n@west\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    write_secret(folder / "keys.secret")


def _run(line: str, folder: Path) -> str:
    """Exit code, both streams, and the files that are new or changed."""
    before = _times(folder)
    done = run_forked(line.split(), folder)
    parts = [f"exit {done.code}", "-- stdout", done.stdout, "-- stderr", done.stderr]
    after = _times(folder)
    for name in sorted(name for name in after if after[name] != before.get(name)):
        parts.append(f"-- {name} {(folder / name).stat().st_mode & 0o777:o}")
        parts.append(_file(folder / name))
    return _without_source_lines(normalised("\n".join(parts), folder))


def _times(folder: Path) -> dict[str, int]:
    found = (p for p in folder.rglob("*") if p.is_file() and not p.name.endswith(("-wal", "-shm")))
    return {str(p.relative_to(folder)): p.stat().st_mtime_ns for p in found}


def _file(path: Path) -> str:
    content = path.read_bytes()
    if content[:15] == b"SQLite format 3":
        return _without_salt(sqlite_text(path))
    return content_text(content, path.name)


def _without_salt(text: str) -> str:
    """Without what an office draws at random when its database is made."""
    return re.sub(r"(INSERT INTO \"?(?:salts?|keys?|secrets?)\"? VALUES\().*", r"\1<RANDOM>)", text)


def _without_source_lines(text: str) -> str:
    """Without the places in the sources that a traceback names."""
    return re.sub(rf'File "{re.escape(str(ROOT))}[^"]*", line \d+', "File <SOURCE>", text)
