"""`discreet check`: records, publications, engines, sites, installations, before anything runs."""

from __future__ import annotations

import importlib.metadata
import re
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from discreet import registry
from discreet.cli.options import (
    FILE_OPTIONS,
    Hierarchies,
    Json,
    RecordOptions,
    answer,
    in_flags,
    with_options,
)
from discreet.display.bars import show_progress
from discreet.errors import DataError, EngineError, MissingDependencyError, ParameterError
from discreet.release.language import FOLDER

_ROLES = ("weight", "key", "id", "codes")
_NAME = re.compile(r"[\w.-]+")
_Report = Annotated[
    Path | None, typer.Option(help="install: the report to be signed off, .md or .html.")
]
_PublicKey = Annotated[
    Path | None,
    typer.Option(help="site: the public key, in PEM, that a site of files is signed with."),
]


@with_options
def check(
    *,
    subject: Annotated[
        Literal["data", "publication", "engine", "site", "install"],
        typer.Argument(help="What is checked: data, publication, engine, site or install."),
    ],
    source: Annotated[
        str | None,
        typer.Argument(
            help="Records, a publication.toml, an engine's address, a site.toml or a site of files."
        ),
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="data: a planned table, as a formula; its size is told.")
    ] = None,
    max_codes: Annotated[
        int, typer.Option(min=1, help="data: codes of a variable beyond which classes are advised.")
    ] = 200,
    value: Annotated[
        list[str] | None,
        typer.Option(help="data: a column of amounts that will be summed; may be repeated."),
    ] = None,
    hierarchy: Hierarchies = None,
    out: _Report = None,
    signed_by: _PublicKey = None,
    records: Annotated[RecordOptions, (*_ROLES, *FILE_OPTIONS)],
    json: Json = False,
) -> None:
    """Look through records, or whether a publication, engine, site or installation does its work.

    What is printed of records is confidential. A publication is read with its records and
    languages, and its tables are counted; nothing is drawn. An engine is tried by counting small
    tables, which it makes under random names and drops; without an address it is DuckDB. An
    installation is tried by golden cases of every method, fitter and synthesizer.

    Example: discreet check data people.csv --id person_id --by "region*sex"

    Example: discreet check data firms.csv --id enterprise --value turnover --by "activity*region"

    Example: discreet check publication publication.toml

    Example: discreet check engine postgresql:///census

    Example: discreet check site site.toml

    Example: discreet check install --out validation.md
    """
    if subject == "data":
        place = _require(source, "the records")
        _check_data(place, by, max_codes, value or [], hierarchy, records, json)
    elif subject == "publication":
        _check_publication(Path(_require(source, "the publication's file")), json)
    elif subject == "engine":
        _check_engine(source, json)
    elif subject == "site":
        path = Path(_require(source, "the site's file"))
        _check_files(path, signed_by, json) if path.is_dir() else _check_site(path, json)
    else:
        _check_install(out, json)


def _require(source: str | None, what: str) -> str:
    if source is None:
        raise ParameterError(f"name {what}; see the examples of --help.")
    return source


def _check_data(
    source: str,
    by: str | None,
    max_codes: int,
    values: list[str],
    hierarchies: list[str] | None,
    records: RecordOptions,
    json: bool,
) -> None:
    from discreet.records import look_through  # start-up time

    numbers = [name for name in (records.weight, records.key, *values) if name]
    data = records.open(source, hierarchies=hierarchies, weight=None, key=None)
    with show_progress():
        findings = look_through(data, by, numbers=numbers, max_codes=max_codes)
    memory = None if findings.size is None else findings.size.memory
    summary = {"side": "confidential", **asdict(findings), "memory": memory}
    answer(summary, json, in_flags(str(findings)))


def _check_publication(path: Path, json: bool) -> None:
    import tomli_w

    from discreet.publication import Publication  # start-up time
    from discreet.publication.drawing import count_edition  # start-up time
    from discreet.publication.wording import wording_faults  # start-up time

    plan = Publication.read(path)
    with show_progress():
        table = count_edition(plan, path.parent)
    faults = wording_faults(plan, path.parent, table.design)
    n = len(table.tables)
    told = f"{n} {'table' if n == 1 else 'tables'}, {table.design.n_published:,} cells"
    lines = [f"{path}: {told}"]
    for code, found in faults.items():
        if found.said or (path.parent / FOLDER / f"{code}.toml").exists():
            lines += [f"{FOLDER}/{code}.toml: {len(found.said) or 'no'} faults", *found.said]
        if found.missing:
            lines += [
                "",
                f"# to be translated, in {FOLDER}/{code}.toml",
                tomli_w.dumps(found.missing),
            ]
    said = {code: list(found.said) for code, found in faults.items()}
    answer({"publication": str(path), "faults": said}, json, "\n".join(lines))
    if broken := [code for code, found in faults.items() if found.said]:
        raise DataError(f"languages do not fit the publication: {', '.join(broken)}.")


def _check_engine(address: str | None, json: bool) -> None:
    from discreet.testing import check_engine  # start-up time

    backend = _backend(address)
    with show_progress():
        report = check_engine(backend)
    summary = {"engine": backend.name, "passed": report.passed, "unsupported": report.unsupported}
    answer(summary, json, f"{backend.name}: {report}")


def _backend(address: str | None) -> Any:
    from discreet.records.connection import scheme_of  # start-up time
    from discreet.records.duckdb import DuckDB  # start-up time

    if address is None:
        return DuckDB.connect()
    if scheme_of(address) in registry.names("connection"):
        return registry.load("connection", str(scheme_of(address)))(address)[0]
    try:
        import ibis
    except ImportError as error:
        raise MissingDependencyError("another engine than DuckDB", "Ibis", "ibis") from error
    try:
        return ibis.connect(address)
    except Exception as error:  # the address may hold a password, so nothing of it is quoted
        raise EngineError(
            f"Ibis cannot connect to this address ({type(error).__name__}). It should look like "
            "postgresql://host/database, snowflake://…, bigquery://…, mssql://…; the engine's own "
            "package is needed as well, `pip install 'ibis-framework[snowflake]'`."
        ) from None


def _check_files(root: Path, signed_by: Path | None, json: bool) -> None:
    from discreet.serve.static.manifest import check_files  # start-up time

    found = check_files(root, signed_by)
    editions = ", ".join(f"{name} ({edition})" for name, edition in found.editions.items())
    signed = "signed" if found.is_signed else "not signed"
    if signed_by is not None and not found.faults:
        signed = f"signed with the key of {signed_by}"
    lines = [
        f"{root}: {editions}",
        f"  {found.files:,} files by discreet {found.version}, {signed}; {found.older:,} more of "
        "the edition before",
        *(f"  {fault}" for fault in found.faults),
    ]
    answer(asdict(found), json, "\n".join(lines))
    if found.faults:
        n = len(found.faults)
        raise DataError(
            f"{root} is not as it was written: {n} fault{'s' if n > 1 else ''}, listed above. Copy "
            "the folder again from where it was made, or build it again."
        )


def _check_site(path: Path, json: bool) -> None:
    try:
        from discreet.serve.build import require_inner  # optional packages
        from discreet.serve.data.inner import current_build  # optional packages
        from discreet.serve.data.live import (  # optional packages
            method_of,
            missing_files,
            open_records,
        )
        from discreet.serve.site.config import read_site  # optional packages
    except ImportError as error:
        raise MissingDependencyError("a table builder", "FastAPI", "serve") from error
    config = read_site(path)
    n = len(config.datasets)
    lines = [f"{path}: {n} data set{'s' if n > 1 else ''}"]
    builds: dict[str, str] = {}
    for dataset in config.datasets:
        (require_inner if dataset.mode == "release-once" else method_of)(dataset.recipe)
        said = "only its entries in the site's file were read"
        build = current_build(config.cache_folder / dataset.name)
        is_served = dataset.mode == "release-once" and build is not None and build.is_dir()
        absent = missing_files(dataset.records, path.parent) if dataset.records else []
        if is_served and absent:  # a machine that serves what was built elsewhere needs neither
            shown = " and no ".join(absent)
            said = f"there is no {shown} here, so neither records nor code lists were checked"
        elif dataset.records is not None:
            data = open_records(dataset.records, path.parent)
            dataset.recipe.tabulate(data)
            said = "its records and code lists were read, and its tables counted"
        if dataset.mode == "release-once":
            builds[dataset.name], told = _check_build(config, dataset.name, build)
            said += f"; {told}"
        lines.append(f"  {dataset.name}: {said}")
    names = [dataset.name for dataset in config.datasets]
    answer({"site": str(path), "datasets": names, "builds": builds}, json, "\n".join(lines))
    broken = [name for name, found in builds.items() if found.startswith(("damaged", "missing"))]
    if broken:
        raise DataError(
            f"builds were damaged or removed after they were written: {', '.join(broken)}. Nothing "
            f"of them is served. Build them again: discreet build {path}."
        )


def _check_build(config: Any, name: str, build: Path | None) -> tuple[str, str]:
    """The state of a build, as a word for programs and a sentence for people."""
    from discreet.serve.build import datasets_to_build  # optional packages
    from discreet.serve.data.inner import damaged_files  # optional packages

    if build is None:
        return "not built", "it is not built"
    if not build.is_dir():
        said = f"its build {build.name} is missing: the pointer names a folder that is gone"
        return "missing", said
    if damaged := damaged_files(build):
        found = f"damaged ({', '.join(damaged)})"
    else:
        is_stale = bool(datasets_to_build(config, [name], stale=True))
        found = "of another recipe, edition, code list or secret" if is_stale else "whole"
    return found, f"its build is {found}"


def _check_install(out: Path | None, json: bool) -> None:
    """Packages with their versions, and every golden case; a report to be signed off."""
    from discreet.testing import check_install  # start-up time

    about = importlib.metadata.metadata("discreet")
    found: dict[str, dict[str, str]] = {}
    for requirement in importlib.metadata.requires("discreet") or []:
        extra = re.search(r"extra == ['\"](\w+)['\"]", requirement)
        named = _NAME.match(requirement)
        if named and named[0] != "discreet" and (extra is None or extra[1] != "dev"):
            found.setdefault(extra[1] if extra else "core", {})[named[0]] = _version(named[0])
    with show_progress():
        validation = check_install()
    lines = [f"discreet {about['Version']}"]
    for part, packages in found.items():
        shown = ", ".join(f"{name} {version}" for name, version in packages.items())
        lines.append(f"  {part}: {shown}")
    for result in validation.results:
        if result.verdict != "same":
            lines.append(f"  {result.case}: {result.verdict}. {result.note}")
    lines.append(f"  {validation.summary}")
    if out is not None:
        lines.append(f"  The report, to be signed off, is in {validation.write(out)}.")
    cases = [asdict(result) for result in validation.results]
    summary = {"version": about["Version"], "packages": found, "cases": cases}
    answer(summary, json, "\n".join(lines))
    if not validation.is_passed:
        raise DataError(
            f"{len(validation.faults)} golden cases differ from those of the release. Install the "
            "versions in constraints.txt and check again before anything is published from here."
        )


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "is not installed"
