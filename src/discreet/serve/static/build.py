"""A site as a folder of files that any file server can hand out, and no other program is needed."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet import __version__
from discreet.errors import DataError
from discreet.progress import report
from discreet.serve.data.inner import InnerSource
from discreet.serve.site.start import start_site
from discreet.serve.static.cells import CellWriter, parquet_of, public_table
from discreet.serve.static.compiler import compile_templates
from discreet.serve.static.folder import SiteFolder
from discreet.serve.static.manifest import seal
from discreet.serve.static.offer import require_static
from discreet.serve.static.rules import (
    dataset_rules,
    picture_name,
    site_rules,
    text_rules,
    to_json,
)
from discreet.serve.web.drawing import readable, style_of
from discreet.serve.web.frame import templates
from discreet.serve.web.pages import DRAWN_IN, STATIC

if TYPE_CHECKING:
    from discreet.serve.data.dataset import Dataset
    from discreet.serve.site.config import SiteConfig
    from discreet.serve.site.site import Site

FORMAT = 1
START, CLIENT, SCRIPT = "start.js", "client.js", "builder.js"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'"
)
_SHELL = """<!doctype html>
<html lang="{language}">
<head>
  <meta charset="utf-8">
  <meta http-equiv="Content-Security-Policy" content="{policy}">
  <meta name="referrer" content="no-referrer">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>{title}</title>
  <script type="module" src="{up}start.js"></script>
</head>
<body>
  <noscript><main><h1>{title}</h1><p>{noscript}</p></main></noscript>
</body>
</html>
"""
_IMPORT = re.compile(r'^import (?:\* as (\w+)|(\{[^}]*\})) from "(\.[^"]+)";$', re.MULTILINE)
_EXPORT = re.compile(
    r"^export (?=(?:async )?(?:const|function|class) (\w+|\[[\w, ]+\]))", re.MULTILINE
)
_OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
_NO_SCRIPT = "The tables of this site are put together in the browser, which needs JavaScript."


@dataclass(frozen=True)
class StaticSite:
    """A site of files: its folder, its data sets, and how many files and bytes it has."""

    root: Path
    datasets: tuple[str, ...]
    files: int
    bytes: int


def write_static(
    config: SiteConfig, out: Path, *, parquet: bool = False, sign: Path | None = None
) -> StaticSite:
    """Write a site as files; its data sets have been built.

    Args:
      config: The site.
      out: The folder.
      parquet: Whether all cells of each data set lie beside it for programs: they tell crossings
        of more variables than pages do.
      sign: An Ed25519 key in PEM to sign the manifest with.

    Raises:
      ParameterError: Something in the site's file needs a server.
    """
    require_static(config, config.datasets)
    return write_site(start_site(config), out, parquet=parquet, sign=sign)


def write_site(
    site: Site, out: Path, *, parquet: bool = False, sign: Path | None = None
) -> StaticSite:
    """Write the files of a site. What visitors open first, `site.json`, is exchanged last."""
    folder, config = SiteFolder(out), site.config
    told = site_rules(site, __version__)
    languages = {code: site.language(code).texts for code in config.languages}
    told["texts"] = {
        code: folder.write_hashed(to_json(text_rules(texts)), "json")
        for code, texts in languages.items()
    }
    told["datasets"] = {name: _put_dataset(site, name, folder, parquet) for name in site.datasets}
    app = _app_files(site)
    place = folder.put_app(app)
    for path in _shell_paths(site):
        folder.put_plain(path, _shell(site, path))
    folder.put_plain(START, client_file(START))

    def told_of(name: str) -> list[str]:
        return [f"{place}/{name}", _integrity(app[name])]

    rules = folder.write_hashed(to_json(told), "json")
    head: dict[str, Any] = {"format": FORMAT, "version": __version__, "app": place, "site": rules}
    editions = {name: _edition(dataset) for name, dataset in site.datasets.items()}
    head |= {
        "client": told_of(CLIENT),
        "styles": [told_of("style.css"), told_of("theme.css")],
        "script": told_of(SCRIPT),
    }
    seal(folder, head, editions, sign)
    sizes = [size for _, size in folder.written.values()]
    return StaticSite(out, tuple(site.datasets), len(sizes) + 1, sum(sizes))


def _edition(dataset: Dataset) -> dict[str, Any]:
    """What the manifest says of a data set."""
    told = {"title": dataset.title, "edition": dataset.edition, "updated": dataset.updated}
    return {**told, "statement": dataset.statement.to_json()}


def _put_dataset(site: Site, name: str, folder: SiteFolder, parquet: bool) -> dict[str, Any]:
    report(f"writing {name}", 0.0)
    dataset = site.datasets[name]
    source = dataset.source
    if not isinstance(source, InnerSource) or dataset.measures:
        raise DataError(f"data set {name!r} is not released once, and files hold nothing else.")
    cells = CellWriter(dataset, source.table).write(folder)
    rules = {
        code: folder.write_hashed(
            to_json(dataset_rules(_in_language(site, name, code), source.table)), "json"
        )
        for code in site.config.languages
    }
    table = parquet_of(public_table(dataset, source.table)) if parquet else None
    report(f"writing {name}", 1.0)
    return {
        "rules": rules,
        "cells": folder.write_hashed(to_json(cells), "json"),
        "parquet": None if table is None else folder.write_hashed(table, "parquet"),
        "edition": dataset.edition,
        "title": dataset.title,
    }


def _in_language(site: Site, name: str, code: str) -> Dataset:
    return site.in_language(code).datasets[name]


def _app_files(site: Site) -> dict[str, bytes]:
    """What the browser runs, and how pages look."""
    modules = {**client_files(), "templates.js": compile_templates(templates()).encode()}
    found = {CLIENT: bundle_modules(modules).encode()}
    found["style.css"] = (STATIC / "style.css").read_bytes()
    found[SCRIPT] = (STATIC / SCRIPT).read_bytes()
    accent = site.config.accent
    found["theme.css"] = style_of(accent).encode()
    drawn = (STATIC / "icon.svg").read_text(encoding="utf-8")
    found["icon.svg"] = drawn.replace(DRAWN_IN, readable(accent)).encode()
    if site.config.logo:
        path = site.config.folder / site.config.logo
        try:
            found[picture_name(site.config.logo)] = path.read_bytes()
        except OSError as error:
            raise DataError(f"cannot read the site's logo {path}: {error.strerror}.") from error
    return found


@cache
def client_files() -> Mapping[str, bytes]:
    """The modules of the client, but for what starts them, by their paths."""
    found: dict[str, bytes] = {}

    def collect(folder: Traversable, before: str) -> None:
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
            if entry.is_dir():
                collect(entry, f"{before}{entry.name}/")
            elif entry.name.endswith(".js") and entry.name != START:
                found[before + entry.name] = entry.read_bytes()

    collect(files("discreet.serve") / "client", "")
    return found


def client_file(name: str) -> bytes:
    """A file of the client."""
    return (files("discreet.serve") / "client" / name).read_bytes()


def _integrity(content: bytes) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(content).digest()).decode()}"


def _shell_paths(site: Site) -> list[str]:
    of_datasets = [
        f"d/{name}/{page}index.html" for name in site.datasets for page in ("", "about/", "table/")
    ]
    return ["index.html", "about/index.html", *of_datasets]


def _shell(site: Site, path: str) -> bytes:
    """The page of a path before the browser has drawn it."""
    return _SHELL.format(
        language=escape(site.config.languages[0]),
        policy=_POLICY,
        title=escape(site.title),
        up="../" * path.count("/"),
        noscript=_NO_SCRIPT,
    ).encode()


def bundle_modules(files: Mapping[str, bytes]) -> str:
    """One module that exports all of `files` as `modules`: visitors ask once, and threads run it.

    A module becomes a function that is run once and returns what it exports; those that it needs
    come before it. The modules write imports and exports in one way each, and anything else is
    refused.
    """
    order = module_order(files)
    parts = [_closed(name, files[name].decode(), order) for name in order]
    listed = ", ".join(f'"{name}": m{k}' for k, name in enumerate(order))
    return "".join([*parts, f"export const modules = {{ {listed} }};\n"])


def _closed(name: str, text: str, order: list[str]) -> str:
    """A module as a function that is run at once, and what it returned as a constant."""
    body = _IMPORT.sub(lambda found: _constant(found, name, order), text)
    exported = ", ".join(found.strip("[]") for found in _EXPORT.findall(body))
    body = _EXPORT.sub("", body)
    if other := _OTHER.search(body):
        raise DataError(f"{name}: pages of files know no import or export such as {other[0]!r}.")
    head, tail = f"const m{order.index(name)} = (() => {{", f"return {{ {exported} }};"
    return f"// {name}\n{head}\n{body}\n{tail}\n}})();\n"


def _constant(found: re.Match[str], name: str, order: list[str]) -> str:
    """An import as a constant of what another module returned."""
    place = order.index(_resolve_path(name, found[3]))
    return f"const {found[1] or found[2].replace(' as ', ': ')} = m{place};"


def module_order(files: Mapping[str, bytes]) -> list[str]:
    """The modules, each after those that it needs."""
    found: list[str] = []

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise DataError(f"modules need each other: {' → '.join([*above, name])}.")
        if name not in found:
            for _, _, needed in _IMPORT.findall(files[name].decode()):
                visit(_resolve_path(name, needed), (*above, name))
            found.append(name)

    for name in sorted(files):
        visit(name, ())
    return found


def _resolve_path(name: str, needed: str) -> str:
    """The path of a module that another one names."""
    parts = name.split("/")[:-1]
    for part in needed.split("/"):
        parts = parts[:-1] if part == ".." else parts if part == "." else [*parts, part]
    return "/".join(parts)
