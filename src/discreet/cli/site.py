"""Commands of the table builder: serve, build, replay."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.options import (
    UNWEIGHTED,
    Accept,
    Again,
    Hierarchies,
    Json,
    LedgerFile,
    MeanWeight,
    RecordOptions,
    Weight,
    answer,
    editions_line,
    say,
    with_options,
)
from discreet.design.formula import Margins
from discreet.design.formula import margins as crossings
from discreet.display.bars import show_progress
from discreet.errors import ParameterError, check_known
from discreet.facade.microdata import Microdata
from discreet.files import written_whole
from discreet.progress import notice
from discreet.publication import Choice, Publication
from discreet.release.formats.write import Writer, files_of, writer_named
from discreet.serve import require_web
from discreet.serve.data.dataset import Dataset, DatasetInfo
from discreet.serve.policy.policy import Policy
from discreet.serve.site.config import DatasetConfig, ServerConfig, SiteConfig, read_site
from discreet.tables.protected import WEIGHT

if TYPE_CHECKING:
    from discreet.serve.site.site import SiteHolder
    from discreet.serve.static.build import StaticSite

DEFAULT_METHOD = Choice("cell-key", {"D": 5, "V": 3, "js": 2})
ONCE = Choice("safe", {})
ON_THE_FLY = (
    "Tables are made on the fly: the noise of a cell follows from its records, so that crossings "
    "of ever more variables single out people who are alone in a cell, and most of what is said of "
    "them then is right; sums around a cell can be averaged. Without --on-the-fly the records are "
    "released once, and all tables are sums of one protected table."
)
_StaticFolder = Annotated[
    Path | None,
    typer.Option(help="Also write the site as files into this folder; builds what is stale."),
]
_WithParquet = Annotated[
    bool, typer.Option("--parquet", help="With --static: the whole protected tables for programs.")
]
_SigningKey = Annotated[
    Path | None,
    typer.Option(help="With --static: an Ed25519 key in PEM that signs the list of files."),
]
_MOST_CROSSED = 3  # variables of the tables that a release is kept near to, where none are named
_SETTINGS = {f.name: f for f in (*fields(ServerConfig), *fields(Policy))}


def _option(name: str) -> Any:
    setting = _SETTINGS[name]
    help = f"{setting.metadata['help']} [default: {setting.default}]"
    return typer.Option(help=help, show_default=False)


@dataclass(frozen=True)
class BuilderOptions:
    """Where the builder answers, its heading, and its limits."""

    host: Annotated[str | None, _option("host")] = None
    port: Annotated[int | None, _option("port")] = None
    root_path: Annotated[str | None, _option("root_path")] = None
    workers: Annotated[int | None, _option("workers")] = None
    title: Annotated[str | None, typer.Option(help="Heading of the pages.")] = None
    max_variables: Annotated[int | None, _option("max_variables")] = None
    max_cells: Annotated[int | None, _option("max_cells")] = None

    @property
    def place(self) -> dict[str, Any]:
        """Settings of the server."""
        return {name: getattr(self, name) for name in ("host", "port", "root_path", "workers")}

    @property
    def limits(self) -> dict[str, Any]:
        """Settings of the policy."""
        return {"max_variables": self.max_variables, "max_cells": self.max_cells}


@with_options
def serve(
    *,
    source: Annotated[str, typer.Argument(help="A site.toml; or records, a file or a database.")],
    recipe: Annotated[Path | None, typer.Option(help="A recipe.toml; else SAFE.")] = None,
    by: Annotated[str | None, typer.Option(help="What is on offer, e.g. 'region*age*sex'.")] = None,
    hierarchy: Hierarchies = None,
    records: Annotated[RecordOptions, UNWEIGHTED],
    ledger: LedgerFile = None,
    weight: Weight = None,
    mean_weight: MeanWeight = None,
    grid: Annotated[
        float | None, typer.Option(help="Publish weighted counts in steps of this public weight.")
    ] = None,
    on_the_fly: Annotated[
        bool,
        typer.Option(
            "--on-the-fly",
            help="Make tables by cell keys when they are asked for; tells more of single people.",
        ),
    ] = False,
    builder: BuilderOptions,
) -> None:
    """Let visitors put protected tables together in their browser, until Ctrl-C.

    Records are released once: all tables are sums of one protected table.

    Example: discreet serve site.toml

    Example: discreet serve people.csv --by "region*age*sex" --codes codes.toml --id person_id
    --secret keys.secret

    Example: discreet serve survey.csv --by "region*sex" --codes codes.toml --id person_id
    --secret keys.secret --weight w --mean-weight 90
    --grid 100
    """
    require_web()
    given = replace(records, weight=weight, mean_weight=mean_weight)
    path = Path(source) if source.endswith(".toml") else None
    with show_progress():
        if path is not None:
            others = {"recipe": recipe, "by": by, "grid": grid, "title": builder.title}
            others["on_the_fly"] = on_the_fly or None
            opened = {**vars(given), "hierarchies": hierarchy, "ledger": ledger}
            _refuse_options({**opened, **builder.limits, **others})
            holder, server = _open_site(path, builder.place)
        else:
            data = given.open(source, hierarchies=hierarchy, ledger=ledger)
            chosen = plan(data, recipe, by, grid, on_the_fly=on_the_fly)
            policy = _change_settings(Policy(), builder.limits)
            name = builder.title or "Table builder"
            server = _change_settings(ServerConfig(), builder.place)
            holder = site(data, chosen, policy, name, on_the_fly=on_the_fly)
    if on_the_fly:
        notice(ON_THE_FLY)
    run_site(holder, server, path)


def _open_site(path: Path, place: dict[str, Any]) -> tuple[SiteHolder | None, ServerConfig]:
    """A site by its file; several workers read it for themselves, so that it is only tried here."""
    from discreet.serve.site.start import load_site, require_working  # start-up time

    server = _change_settings(read_site(path).server, place)
    if server.workers == 1:
        return load_site(path), server
    require_working(path)  # in a process that ends: what it holds would stay in this one
    return None, server


def run_site(holder: SiteHolder | None, server: ServerConfig, path: Path | None = None) -> None:
    """Answer for a site until Ctrl-C; one that has a file follows it, and workers read it."""
    from discreet.serve.app import make_app  # start-up time
    from discreet.serve.office.office import Office  # start-up time
    from discreet.serve.run import (  # start-up time
        address_of,
        listen,
        serve_by_workers,
        serve_until_stopped,
    )
    from discreet.serve.site.start import SiteWatcher  # start-up time

    if path is None and server.workers > 1:
        raise ParameterError("several workers need a site they can read: write a site.toml.")
    listening = listen(server.host, server.port)
    say(f"The table builder answers at {address_of(listening)} (stop it with Ctrl-C).")
    if path is not None and (holder is None or server.workers > 1):
        serve_by_workers(path, listening, server.workers, server.root_path)
        return
    if holder is None:
        raise ParameterError("there is no site to answer for.")
    with ExitStack() as at_the_end:  # in reverse: the watcher stops before the office closes
        office = None
        if path is not None:
            office = Office.open(holder.current.config)
            at_the_end.callback(office.close)
            office.run_jobs(path, holder)
            at_the_end.callback(SiteWatcher(holder, path).start().stop)
        serve_until_stopped(make_app(holder, office), listening, server.root_path)


def plan(
    data: Microdata,
    recipe: Path | None,
    by: str | None,
    grid: float | None = None,
    *,
    on_the_fly: bool = False,
) -> Publication:
    """How tables are made, and what is on offer: `by`, the recipe's margins, or the code lists."""
    if recipe is not None:
        if grid is not None:
            raise ParameterError("the recipe says how weights are published; leave out --grid.")
        found = Publication.read(recipe)
        return found if by is None else found.of(by)
    names = [name for name in data.hierarchies if name in data.dimensions]
    most = 1 if on_the_fly else min(_MOST_CROSSED, len(names))
    offered = crossings(names, order=most, lower=not on_the_fly) if names else []
    if by is None and not offered:
        raise ParameterError(
            "nothing says which variables are on offer. Name them with --by 'region*sex', or in "
            "the margins of a recipe, or give code lists with --codes."
        )
    return _default_plan(by or offered, data.weight is not None, grid, on_the_fly)


def _default_plan(
    margins: Margins, has_weights: bool, grid: float | None, on_the_fly: bool
) -> Publication:
    """SAFE, or cell keys on the fly; weighted counts by cell keys, in inner cells if once."""
    if has_weights != (grid is not None):
        raise ParameterError(
            "--weight and --grid go together: --grid is the public weight that one step of noise "
            "stands for (population over sample size). Leave out both to count records."
        )
    if grid is None:
        return Publication(margins, DEFAULT_METHOD if on_the_fly else ONCE)
    summed = {} if on_the_fly else {"margins": "summed"}
    parameters = {**DEFAULT_METHOD.parameters, "grid": grid, **summed}
    return Publication(margins, replace(DEFAULT_METHOD, parameters=parameters), unit=WEIGHT)


def site(
    data: Microdata, recipe: Publication, policy: Policy, title: str, *, on_the_fly: bool
) -> SiteHolder:
    """A site of one data set that is released once, or served on the fly."""
    from discreet.serve.build import inner_table, require_offered  # start-up time
    from discreet.serve.data.inner import InnerSource  # start-up time
    from discreet.serve.data.live import LiveSource, names_of  # start-up time
    from discreet.serve.data.source import Source  # start-up time
    from discreet.serve.site.site import Site, SiteHolder  # start-up time

    if on_the_fly:
        source: Source = LiveSource(recipe, data)
    else:
        require_offered(recipe, data)
        source = InnerSource(inner_table(recipe, data), names_of(recipe))

    name = re.sub(r"[^a-z0-9]+", "-", data.data_set.name.lower()).strip("-") or "data"
    dataset = Dataset(name, DatasetInfo(title=title), source, policy)
    return SiteHolder(Site(SiteConfig(title=title), {name: dataset}))


def _refuse_options(given: dict[str, Any]) -> None:
    for name, value in given.items():
        if value is not None:
            option = name.replace("_", "-").replace("hierarchies", "hierarchy")
            raise ParameterError(
                f"--{option} goes with records; a site's file says it itself. Leave it out."
            )


def _change_settings(settings: Any, given: dict[str, Any]) -> Any:
    known = {f.name for f in fields(settings)}
    return replace(settings, **{k: v for k, v in given.items() if k in known and v is not None})


_NO_LEDGER = (
    "data set {!r} names no ledger, so an edition that differs from an earlier one by a single "
    "person is not noticed, and whoever compares both learns about this person. Name one beside "
    "its records, ledger = 'ledger.db', or by --ledger."
)


def build(
    site: Annotated[Path, typer.Argument(help="The site's file, a site.toml.")],
    only: Annotated[
        list[str] | None, typer.Option("--only", help="A data set; may be repeated.")
    ] = None,
    stale: Annotated[
        bool, typer.Option("--stale", help="Leave out data sets that are built already.")
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what the build takes, and stop.")
    ] = False,
    static: _StaticFolder = None,
    parquet: _WithParquet = False,
    sign: _SigningKey = None,
    again: Again = False,
    accept: Accept = "",
    ledger: LedgerFile = None,
    as_json: Json = False,
) -> None:
    """Protect the data sets that are released once, so that `discreet serve` can answer.

    Attacks run first where a recipe has a `gate`, and stop what breaks its rules. With --static the
    builder needs no server: any file server hands the folder out.

    Example: discreet build site.toml

    Example: discreet build site.toml --only census --plan

    Example: discreet build site.toml --ledger discreet.db

    Example: discreet build site.toml --static out
    """
    from discreet.serve.build import (  # start-up time
        datasets_to_build,
        open_records_of,
        plan_build,
    )

    config = read_site(site)
    if (parquet or sign) and static is None:
        raise ParameterError(
            "--parquet and --sign go with --static: name the folder of the site's files."
        )
    if static is not None:
        stale, config = True, _static_config(config, only or ())
    done = []
    for dataset in datasets_to_build(config, only or (), stale=stale):
        data = open_records_of(config, dataset, ledger)
        needs = plan_build(dataset, data)
        if not as_json:
            say(needs.text)
        if plan:
            done.append({"name": needs.name, "inner": needs.inner, "memory": needs.memory})
        else:
            done.append(_build_dataset(config, dataset, data, accept, again))
    written = None if plan or static is None else _write_static(config, static, parquet, sign)
    _say_what_was_built(done, written, as_json, "" if plan else "Every data set is built.")


def _say_what_was_built(
    done: list[dict[str, Any]], written: StaticSite | None, as_json: bool, otherwise: str
) -> None:
    built = [d for d in done if "cells" in d]
    lines = [
        f"{d['name']}: {d['cells']:,} protected cells. {d['editions']}".rstrip() for d in built
    ]
    told: dict[str, Any] = {"datasets": done}
    if written is not None:
        told["static"] = {**vars(written), "root": str(written.root)}
        lines.append(
            f"{written.files:,} files in {written.root}, {written.bytes / 1e6:,.1f} MB. Look at "
            f"them: python -m http.server --directory {shlex.quote(str(written.root))}"
        )
    text = "\n".join(lines) or otherwise
    if as_json or text:
        answer(told, as_json, text)


def _build_dataset(
    config: SiteConfig, dataset: DatasetConfig, data: Microdata, accept: str, again: bool
) -> dict[str, Any]:
    """Build one data set; what is said of it."""
    from discreet.serve.build import build  # start-up time

    if data.ledger is None:
        notice(_NO_LEDGER.format(dataset.name))
    with show_progress():
        built = build(config, dataset, data, again=again, accept=accept)
    mode = editions_line(built.statement)
    return {"name": built.name, "edition": built.edition, "cells": built.cells, "editions": mode}


def _static_config(config: SiteConfig, only: Sequence[str]) -> SiteConfig:
    """The part of a site that becomes files; refused before anything is built."""
    from discreet.serve.static.offer import require_static  # start-up time

    require_web()
    known = [d.name for d in config.datasets]
    check_known("data set", only, known)
    chosen = tuple(d for d in config.datasets if not only or d.name in only)
    require_static(config, chosen)
    return replace(config, datasets=chosen)


def _write_static(config: SiteConfig, out: Path, parquet: bool, sign: Path | None) -> StaticSite:
    from discreet.serve.static.build import write_static  # start-up time

    with show_progress():
        return write_static(config, out, parquet=parquet, sign=sign)


def replay(
    query: Annotated[Path, typer.Argument(help="A saved query, query.toml.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File to write, e.g. table.xlsx; CSV is printed if none."),
    ] = None,
    site: Annotated[
        Path | None, typer.Option(help="A site.toml to make the table from, without a server.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="Address of a site; the one in the saved query if absent.")
    ] = None,
    token: Annotated[
        str, typer.Option(envvar="DISCREET_TOKEN", help="Token, for sites with accounts.")
    ] = "",
    json: Json = False,
) -> None:
    """Make the table of a saved query again; figures are those of the edition of today.

    Example: discreet replay query.toml --out table.xlsx

    Example: discreet replay query.toml --url https://tables.office.example --out table.csv

    Example: discreet replay query.toml --site site.toml --out table.px
    """
    from discreet.serve.api.saved import (  # start-up time
        SavedQuery,  # start-up time
        replay_by_site,
        replay_by_url,
    )
    from discreet.serve.site.start import load_site  # start-up time

    if site is not None and url is not None:
        raise ParameterError("give --site or --url, not both: a table comes from one place.")
    saved = SavedQuery.read(query)
    made = None if site is None else load_site(site).current

    def content(writer: Writer) -> bytes:
        if made is None:
            return replay_by_url(saved, url or saved.url, writer, token)
        return replay_by_site(saved, made, writer, "" if out is None else out.name)

    if out is None:
        sys.stdout.write(content(writer_named("csv")).decode("utf-8"))
        return
    # All contents before the first file: a fault leaves no half of a table behind.
    contents = {target: content(writer) for target, writer in files_of(out)}
    for target, made_of_it in contents.items():
        with written_whole(target) as temporary:
            temporary.write_bytes(made_of_it)
    size = len(contents[out])
    summary = {"file": str(out), "side": "public", "dataset": saved.dataset, "bytes": size}
    answer(summary, json, f"{out}: {saved.title or saved.dataset}, {size:,} bytes.")
