"""Small files of this version, which later versions must open or refuse by a clear text."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import discreet as dc
from recorded import commands, inputs
from recorded.library import NOISE, VARIANTS
from recorded.site import run, serving, write_secret


def write(folder: Path) -> None:
    """Tables, releases, a ledger, and a site with its build and its office's database."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in inputs.TABLES.items():
        table().save(folder / f"table-{name}.parquet")
    releases = {
        "keyed": inputs.hierarchical().protect(NOISE),
        "suppressed": inputs.flat().protect(dc.Suppress()),
        "sums": inputs.magnitude().protect(VARIANTS["suppress p%"]),
        "fitted": inputs.linked().protect(NOISE).fit(dc.NonNegative()),
    }
    for name, release in releases.items():
        release.save(folder / f"release-{name}.parquet")
    releases["keyed"].save(folder / "release-keyed.csv")
    ledger = dc.Ledger(folder / "ledger.db", epsilon=2.0)
    inputs.flat().protect(dc.Safe(), ledger=ledger)
    inputs.flat().protect(dc.DiscreteLaplace(0.5), ledger=ledger)
    _write_site(folder / "site")
    for path in folder.rglob("*.db"):
        with sqlite3.connect(path) as db:
            db.execute("PRAGMA journal_mode = DELETE")
            db.execute("VACUUM")


def _write_site(folder: Path) -> None:
    folder.mkdir()
    inputs.people(60).drop(columns=["income", "tax"]).to_csv(folder / "people.csv", index=False)
    site = commands.SITE.replace('ledger = "site-ledger.db"\n', "")  # one ledger is enough
    texts = {"site.toml": site, "codes.toml": commands.CODES, "query.toml": commands.QUERY}
    for name, text in texts.items():
        (folder / name).write_text(text)
    write_secret(folder / "keys.secret")
    run("build", "site.toml", folder=folder)
    run("token", "add", "ann", "--role", "custodian", "--site", "site.toml", folder=folder)
    with serving("site.toml", folder=folder) as server:
        for address in (
            "/d/people/table?rows=region",
            "/d/people/table.csv?rows=sex",
            "/d/people/table?rows=q",
        ):
            server.ask(address)
    (folder / "keys.secret").unlink()  # no secret is kept in a repository; the test writes it
