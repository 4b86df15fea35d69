"""A first publication of some records, which runs as it is written and is there to be edited."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from discreet.design.formula import table_name
from discreet.errors import DataError, ParameterError
from discreet.facade.microdata import Microdata
from discreet.facade.opening import open as open_records
from discreet.files import write_text
from discreet.publication.plan import Choice, Outlet, Publication
from discreet.records.backend import fetch

_TIMES = ("year", "quarter", "month", "week", "period")
"""Columns that tell periods by their names; records of several are never counted together."""
_MOST_CODES = 40  # categories of a variable that a first table shows
_MOST_TABLES = 5
_SECRET, _LEDGER, _KEYS = "keys.secret", "discreet.db", "keys.parquet"

_ABOVE = {
    "[publication]": "What readers are told, in which formats and languages.",
    "[data]": "Where the records are. The secret is made at first use: keep a copy of it.",
    "[tables.": 'What is crossed, as "region*age" or "region[province]*age", title and footnotes.',
    "[protect]": "`discreet methods` lists others.",
    "[fit]": "Figures add up and are whole. Without this section each is changed by itself.",
}
"""Comments of a draft, above the first section whose heading begins so."""
_BELOW = {
    "[publication]": """\
# source = "Statistical office"
# licence = "CC BY 4.0"
# contact = "mail@example.org"
# footnotes = ["Of all tables."]
# formats = ["xlsx", "csv"]     # also px, json-stat, sdmx-csv, json, parquet, html
# languages = ["en", "nb"]      # labels of the second one stand in texts/nb.toml
# time = "year"                 # editions are periods: each comes with series
""",
    "[data]": """\
# time = "year"                 # a column that tells periods, each of which is an edition
""",
}
"""Entries of a section that are there for the taking: without the sign they count."""
_GATE_HINT = """
# Attacks run before anything leaves the house and stop it by these rules, which are the usual ones:
# [gate]
# provably_fixed = 0
# lift = 0.1
"""


def write_draft(publication: Publication, path: Path) -> Path:
    """Write a publication with comments that say what can be edited."""
    import tomli_w

    lines = [f"# A first publication. `discreet check publication {path.name}` says what is wrong."]
    lines += [""]
    above, spec = dict(_ABOVE), publication.to_dict()
    for line in tomli_w.dumps(spec).splitlines():
        heading = next((name for name in above if line.startswith(name)), None)
        lines += [] if heading is None else [f"# {above.pop(heading)}"]
        given = spec.get(line.strip("[]"), {})
        given = {**given, "time": ""} if publication.time else given  # the records tell it
        free = [hint for hint in _BELOW.get(line, "").splitlines() if hint.split()[1] not in given]
        lines += [line, *free]
    if publication.gate is None:
        lines += _GATE_HINT.splitlines()
    write_text(path, "\n".join(lines) + "\n")
    return path


def draft_publication(
    source: Path, base: Path, codes: Path | None = None, like: Publication | None = None
) -> Publication:
    """A publication of a few two-way tables by cell keys, or of the tables of another one.

    A column that identifies each record makes record keys; where there is none, keys are drawn
    once and kept in a file. A column called year, quarter, month, week or period tells periods.

    Args:
      source: The records.
      base: The folder that the publication's file will lie in; paths are relative to it.
      codes: Code lists.
      like: What is published and how, such as a recipe of version 0.2.
    """
    if not source.is_file():
        raise DataError(f"there is no file {source}.")
    data = open_records(source, codes=codes)
    given = {"source": _relative(source, base), "secret": _SECRET, "ledger": _LEDGER}
    if codes is not None:
        given["codes"] = _relative(codes, base)
    time = next((name for name in data.table.columns if name.lower() in _TIMES), None)
    if time is not None:  # nobody may stand in a table twice
        periods = open_records(source, codes=codes, time=time).periods
        data = open_records(source, codes=codes, time=time, period=periods[-1])
    column = _identifier(data)
    given |= {"random_keys": _KEYS} if column is None else {"id": column}
    given |= {"edition": "1"} if time is None else {"time": time}
    outlet = Outlet(name=source.stem, title=source.stem.replace("_", " ").capitalize())
    if like is not None:
        trees = {name: _relative(Path(file), base) for name, file in like.hierarchies.items()}
        return replace(like, data={**given, **like.data}, outlet=outlet, hierarchies=trees)
    tables = _first_tables(data, source, {column, time})
    return Publication(
        tables,
        Choice("cell-key", {"D": 5, "V": 3, "js": 2}),
        Choice("non-negative"),
        data=given,
        outlet=outlet,
        told={name: {"title": name, "footnotes": []} for name in tables},
    )


def _relative(path: Path, base: Path) -> str:
    """A path as it is named from the publication's folder."""
    try:
        return str(path.resolve().relative_to(base.resolve()))
    except ValueError:
        return str(path.resolve())


def _identifier(data: Microdata) -> str | None:
    """The first column with a value of its own in every record, named like one if several are."""
    table = data.table
    kinds = table.schema()
    names = [n for n in table.columns if kinds[n].is_string() or kinds[n].is_integer()]
    if not names:
        return None
    sums = {f"n{k}": table[name].nunique() for k, name in enumerate(names)}
    found = fetch(data.backend, table.aggregate(n=table.count(), **sums), data.origin).to_pylist()
    (counted,) = found
    own = [name for k, name in enumerate(names) if counted[f"n{k}"] == counted["n"] > 1]
    return next((name for name in own if "id" in name.lower()), own[0] if own else None)


def _first_tables(data: Microdata, source: Path, others: set[str | None]) -> dict[str, str]:
    names = [name for name in data.dimensions if name not in others]
    shown = [term for name in names for term in _terms(data, name)]
    if not shown:
        raise ParameterError(
            f"no column of {source} has 2 to {_MOST_CODES} categories; give code lists (--codes)."
        )
    first, *rest = shown
    pairs = [[first, other] for other in rest[:_MOST_TABLES]] or [[first]]
    return {table_name(tuple(pair)): "*".join(map(_quote, pair)) for pair in pairs}


def _terms(data: Microdata, name: str) -> Iterator[str]:
    """The variable, or the finest of its levels, that has few enough codes to be shown."""
    axis = data.tabulate([(name,)]).design.axes[0]
    if 1 < len(axis) <= _MOST_CODES:
        yield name
        return
    levels = [level for level in axis.levels if 1 < len(level) <= _MOST_CODES]
    yield from (level.name for level in levels[-1:])


def _quote(term: str) -> str:
    name, mark, level = term.partition("[")
    return f"{name if name.isidentifier() else f'`{name}`'}{mark}{level}"
