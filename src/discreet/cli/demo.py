"""`discreet demo`: an invented census, a protected table of it, and the table builder on top."""

from __future__ import annotations

import json
import shlex
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode

import typer

from discreet.cli.common import progress_bar, say
from discreet.cli.serve import DEFAULT_METHOD, plan, site
from discreet.errors import DataError
from discreet.files import OWNER_ONLY
from discreet.recipe import Recipe
from discreet.serve.settings import Settings

if TYPE_CHECKING:
    from fastapi import FastAPI

    from discreet.design.hierarchy import Hierarchy
    from discreet.microdata.microdata import Microdata

FIRST_TABLE = "region[province]*sex"
_CHECKED = {"rows": "region[province]", "columns": "sex"}
_SECONDS = 60
CODES = "codes.toml"


def demo(
    persons: Annotated[int, typer.Option(help="Number of people in the census.")] = 100_000,
    seed: Annotated[int, typer.Option(help="Draws the people; the country stays.")] = 1,
    folder: Annotated[Path, typer.Option(help="Where the files go.")] = Path("demo"),
    port: Annotated[
        int | None, typer.Option(help="Port of the table builder; 8000 or any free one by default.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Fetch one table and stop.")] = False,
    no_serve: Annotated[bool, typer.Option("--no-serve", help="Stop after the table.")] = False,
) -> None:
    """Make an invented census, protect a table of it, and serve the table builder until Ctrl-C.

    Example: discreet demo --persons 1000000 --port 8080
    """
    from discreet.serve.run import require_web

    require_web()
    with progress_bar():
        people = prepared(folder, persons, seed)
        first = Recipe(FIRST_TABLE, DEFAULT_METHOD).run(people)
    say(f"{people.origin}: {persons:,} people of an invented country\n\n{first}\n")
    if not check:
        say(_next_commands(folder, people.origin))
    if check or not no_serve:
        with progress_bar():
            app = site(people, plan(people, None, None), Settings(title="Census of Tarvenia"))
        _check(app) if check else _serve(app, port)


def prepared(folder: Path, persons: int, seed: int) -> Microdata:
    """The census with keys; files that are already there are used again."""
    from discreet.demo import hierarchies, opened
    from discreet.microdata.secret import Secret

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"census-{persons}-{seed}.parquet"
    if not path.exists():
        _write_census(path, persons, seed)
    _write_code_lists(folder / "codes", hierarchies())
    return opened(path).with_keys(Secret.from_file(folder / "keys.secret", create=True))


def _write_census(path: Path, persons: int, seed: int) -> None:
    from discreet.demo import write_parquet
    from discreet.progress import report

    done = 0

    def show(rows: int) -> None:
        nonlocal done
        done += rows
        report("making people", done / persons)

    write_parquet(path, persons, seed, progress=show).chmod(OWNER_ONLY)


def _write_code_lists(folder: Path, trees: dict[str, Hierarchy]) -> None:
    """The code lists as files, for the commands to try, and the file that names them all."""
    import tomli_w
    from pyarrow import csv

    from discreet.files import written_whole

    folder.mkdir(exist_ok=True)
    for name, tree in trees.items():
        with written_whole(folder / f"{name}.csv") as temporary:
            csv.write_csv(tree.to_parent_child(), temporary)
    lists = {name: {"hierarchy": f"{name}.csv"} for name in trees}
    with written_whole(folder / CODES) as temporary:
        temporary.write_text(tomli_w.dumps(lists), encoding="utf-8")


def _next_commands(folder: Path, census: str) -> str:
    """Commands that run as they are printed."""
    lists = ["--codes", folder / "codes" / CODES]
    keys = ["--id", "person_id", "--secret", folder / "keys.secret"]
    table, release = folder / "table.parquet", folder / "release.csv"
    noise = ["--method", "cell-key", "-s", "D=5", "-s", "V=3", "-s", "js=2"]
    commands = [
        ["tabulate", census, "--by", "region*age", *lists, *keys, "--out", table],
        ["protect", table, *noise, "--out", release],
        ["serve", census, "--by", "region*age*sex", *lists, *keys],
    ]
    lines = (shlex.join(["discreet", *map(str, command)]) for command in commands)
    return "\n".join(["Next, try:", *(f"  {line}" for line in lines), ""])


def _serve(app: FastAPI, port: int | None) -> None:
    from discreet.serve.run import address_of, listen, serve_until_stopped

    host = Settings().host
    try:
        listening = listen(host, Settings().port if port is None else port)
    except DataError:
        if port is not None:
            raise
        listening = listen(host, 0)
    say(f"The table builder answers at {address_of(listening)} (stop it with Ctrl-C).")
    serve_until_stopped(app, listening)


def _check(app: FastAPI) -> None:
    """Fetch one protected table over HTTP and say what came."""
    from discreet.serve.run import serving

    with serving(app) as address:
        url = f"{address}table.json?{urlencode(_CHECKED)}"
        try:
            with urllib.request.urlopen(url, timeout=_SECONDS) as response:
                found: dict[str, Any] = json.load(response)
        except (OSError, ValueError) as error:
            say(f"check failed: {url} did not answer with a table ({error}).")
            raise typer.Exit(1) from error
    steps = ", ".join(step["name"] for step in found["statement"]["steps"])
    say(f"checked {url}: {found['title']}, {len(found['cells'])} cells, {steps}")
