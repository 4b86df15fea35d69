"""`discreet demo`: an invented census, a protected table of it, and the table builder on top."""

from __future__ import annotations

import shlex
import tomllib
import urllib.request
from contextlib import suppress
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode

import typer

from discreet.cli.options import say, write_rows
from discreet.cli.site import DEFAULT_METHOD, run_site
from discreet.demo import hierarchies, opened, structural_zeros, write_parquet
from discreet.design.formula import margins
from discreet.design.hierarchy import Hierarchy
from discreet.display.bars import show_progress
from discreet.errors import DataError, ParameterError
from discreet.facade.microdata import Microdata
from discreet.files import OWNER_ONLY, read_toml, write_text
from discreet.progress import report
from discreet.protect.options import GRIDS
from discreet.publication import Publication
from discreet.records.secret import Secret
from discreet.serve import require_web
from discreet.serve.site.config import read_site

if TYPE_CHECKING:
    from discreet.serve.site.site import SiteHolder

FIRST_TABLE = "region[province]*sex"
_CHECKED = {"rows": "region[province]", "columns": "sex"}
_SECONDS = 60
_SAMPLED = 0.022  # of the people, by the design of the survey
CODES, SITE, STATIC_SITE = "codes.toml", "site.toml", "static.toml"


def demo(
    persons: Annotated[int, typer.Option(help="Number of people in the census.")] = 100_000,
    seed: Annotated[int, typer.Option(help="Draws the people; the country stays.")] = 1,
    folder: Annotated[Path, typer.Option(help="Where the files go.")] = Path("demo"),
    port: Annotated[
        int | None, typer.Option(help="Port of the table builder; 8000 or any free one by default.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Fetch one table and stop.")] = False,
    no_serve: Annotated[bool, typer.Option("--no-serve", help="Stop after the table.")] = False,
    static: Annotated[
        bool, typer.Option("--static", help="The builder as files alone, from a plain file server.")
    ] = False,
) -> None:
    """Make an invented census, protect a table of it, and serve the table builder until Ctrl-C.

    Example: discreet demo --persons 1000000 --port 8080
    """
    if check or not no_serve:
        require_web()
    with show_progress():
        people = prepare_census(folder, persons, seed)
        first = Publication(FIRST_TABLE, DEFAULT_METHOD).run(people)
    say(f"{people.origin}: {persons:,} people of an invented country\n\n{first}\n")
    if not check:
        say(_next_commands(folder, people.origin))
    if check or not no_serve:
        from discreet.serve.site.start import load_site  # start-up time

        if static:
            _show_files(folder, port, check=check)
            return
        _build(folder / SITE)
        with show_progress():
            holder = load_site(folder / SITE)
        _check(holder) if check else _serve(holder, folder / SITE, port)


def prepare_census(folder: Path, persons: int, seed: int) -> Microdata:
    """The census with keys, and the site's file; files that are already there are used again."""
    import tomli_w

    if folder.exists() and not folder.is_dir():
        raise ParameterError(f"{folder} is a file; --folder names a folder.")
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{kind}-{persons}-{seed}.parquet" for kind in ("census", "survey")]
    for path in files:
        if not path.exists():
            _write_people(path, persons, seed)
    _write_code_lists(folder / "codes", hierarchies())
    site = demo_site(files[0].name, files[1].name, persons, round(persons * _SAMPLED))
    write_text(folder / SITE, tomli_w.dumps(site))
    return opened(files[0]).with_keys(Secret.from_file(folder / "keys.secret", create=True))


def _write_people(path: Path, persons: int, seed: int) -> None:
    is_sample = path.name.startswith("survey")
    done, expected = 0, persons * (_SAMPLED if is_sample else 1)

    def show(rows: int) -> None:
        nonlocal done
        done += rows
        report("making people", done / expected)

    write_parquet(path, persons, seed, sample=is_sample, progress=show).chmod(OWNER_ONLY)


def _write_code_lists(folder: Path, trees: dict[str, Hierarchy]) -> None:
    """The code lists as files, for the commands to try, and the file that names them all."""
    import tomli_w

    folder.mkdir(exist_ok=True)
    for name, tree in trees.items():
        write_rows(tree.to_parent_child(), folder / f"{name}.csv")
    lists = {name: {"hierarchy": f"{name}.csv"} for name in trees}
    write_text(folder / CODES, tomli_w.dumps(lists))


def _build(path: Path) -> None:
    """Build what the site needs and has not."""
    from discreet.serve.build import (  # start-up time
        build,
        datasets_to_build,
        open_records_of,
        plan_build,
    )

    config = read_site(path)
    for dataset in datasets_to_build(config, stale=True):
        data = open_records_of(config, dataset)
        say(f"Building {plan_build(dataset, data).text}.")
        with show_progress():
            build(config, dataset, data, again=False)


def _show_files(folder: Path, port: int | None, *, check: bool) -> None:
    """Write the demo's census as files, and hand them out by a server that knows nothing else."""
    import tomli_w

    from discreet.serve.static.build import write_static  # start-up time

    site = read_toml(folder / SITE)
    census = site["datasets"]["census"]
    # Files cannot keep what a rule on figures refuses; SAFE has protected every table already.
    census["policy"] = {}
    text = tomli_w.dumps({**site, "datasets": {"census": census}})
    write_text(folder / STATIC_SITE, text)
    _build(folder / STATIC_SITE)
    with show_progress():
        written = write_static(read_site(folder / STATIC_SITE), folder / "static", parquet=True)
    say(f"{written.files:,} files in {written.root}, {written.bytes / 1e6:,.1f} MB")
    handler = partial(SimpleHTTPRequestHandler, directory=str(written.root))
    with _file_server(handler, port) as server:
        address = f"http://127.0.0.1:{server.server_address[1]}/"
        if check:
            Thread(target=server.serve_forever, daemon=True).start()
            with urllib.request.urlopen(f"{address}index.html", timeout=_SECONDS) as response:
                say(f"checked {address}index.html: {len(response.read()):,} bytes")
            server.shutdown()
            return
        say(f"A plain file server hands them out at {address} (stop it with Ctrl-C).")
        with suppress(KeyboardInterrupt):
            server.serve_forever()


def _file_server(handler: Any, port: int | None) -> ThreadingHTTPServer:
    """A server on a port, or on the usual one or any that is free."""
    for wanted in (8000, 0) if port is None else (port,):
        try:
            return ThreadingHTTPServer(("127.0.0.1", wanted), handler)
        except OSError as error:
            why = error.strerror
    raise DataError(f"cannot listen on port {port}: {why}.")


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
        ["build", folder / SITE],
        ["serve", folder / SITE],
    ]
    lines = (shlex.join(["discreet", *map(str, command)]) for command in commands)
    return "\n".join(["Next, try:", *(f"  {line}" for line in lines), ""])


def _serve(holder: SiteHolder, path: Path, port: int | None) -> None:
    server = holder.current.config.server
    try:
        run_site(holder, server if port is None else replace(server, port=port), path)
    except DataError:  # the usual port is taken; one that was asked for is not exchanged
        if port is not None:
            raise
        run_site(holder, replace(server, port=0), path)


def _check(holder: SiteHolder) -> None:
    """Fetch one protected table over HTTP and say what came."""
    from discreet.serve.app import make_app  # start-up time
    from discreet.serve.run import serving  # start-up time

    with serving(make_app(holder)) as address:
        url = f"{address}d/census/table.csv?{urlencode(_CHECKED)}"
        try:
            with urllib.request.urlopen(url, timeout=_SECONDS) as response:
                lines = response.read().decode("utf-8-sig").splitlines()
        except (OSError, ValueError) as error:
            say(f"check failed: {url} did not answer with a table ({error}).")
            raise typer.Exit(1) from error
    say(f"checked {url}: {len(lines) - 1} cells")


_ENOUGH = 50_000  # people, for the sparsity of areas to say something


def demo_site(census: str, survey: str, persons: int, sampled: int) -> dict[str, Any]:
    """What the demo's `site.toml` says.

    Args:
      census: The file of the census, beside the site's.
      survey: The file of the survey.
      persons: Number of people in the census.
      sampled: About how many of them answered the survey.
    """
    text = files("discreet.cli").joinpath("demo_site.toml").read_text(encoding="utf-8")
    site = tomllib.loads(text)
    people, sample = site["datasets"]["census"], site["datasets"]["survey"]
    people["description"] = people["description"].format(persons=persons)
    people["policy"]["max_sparsity"] = 0.5 if persons >= _ENOUGH else 1.0
    mean = persons / max(sampled, 1)
    sample["records"]["mean_weight"] = round(mean, 1)
    sample["recipe"]["protect"]["parameters"]["grid"] = next(
        g for g in GRIDS if g >= round(mean, 1)
    )
    _complete(people, census, order=3)
    _complete(sample, survey, order=1)
    return site


def _complete(dataset: dict[str, Any], file: str, order: int) -> None:
    """Name the records, the crossings of so many variables, and what cannot occur among them."""
    names = dataset["recipe"]["tabulate"]["margins"]
    used = {name.partition("[")[0] for name in names}
    dataset["records"]["source"] = file
    dataset["records"]["structural_zeros"] = [
        {variable: sorted(codes) for variable, codes in rule.items()}
        for rule in structural_zeros()
        if used >= rule.keys()
    ]
    dataset["recipe"]["tabulate"]["margins"] = [list(term) for term in margins(names, order=order)]
