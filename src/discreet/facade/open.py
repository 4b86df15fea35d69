"""One way to open records, wherever they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from discreet.facade.microdata import Editions, Microdata
from discreet.ledger import Ledger
from discreet.microdata.code_list import CodeLists
from discreet.microdata.secret import Secret
from discreet.microdata.sources import (
    code_lists_of,
    declared_categories,
    find_source,
    has_decimals,
    keyed_source,
    name_of,
)
from discreet.microdata.text_file import TextForm
from discreet.progress import notice
from discreet.tables.assembly import HierarchiesLike, as_hierarchies
from discreet.tables.data_set import DataSet
from discreet.tables.keys import KeyConvention
from discreet.tables.keys import convention as key_convention


def open(
    source: Any,
    *,
    key: str | None = None,
    weight: str | None = None,
    id: str | None = None,
    codes: str | Path | CodeLists | None = None,
    hierarchies: HierarchiesLike | None = None,
    keys: Any = None,
    table: str | None = None,
    convention: str | KeyConvention = "discreet",
    name: str | None = None,
    edition: str = "1",
    secret: str | Path | Secret | None = None,
    editions: Editions = "kept",
    ledger: Any = None,
    random_keys: str | Path | None = None,
    encoding: str | None = None,
    decimal: str = ".",
) -> Microdata:
    """Records with roles.

    Codes in CSV files are text, so `01` stays `01`; only weights and keys are read as numbers. In a
    column of whole numbers alone, of which some are blank or written as `47` and others as `47.0`,
    both are the code `47`; a note says so. A code list that has `47.0` among its codes prevents it.
    Codes are declared by `codes`, by `hierarchies`, or by the frame (categories of a pandas
    categorical or a polars enum); those of other variables are found in the records.

    Args:
      source: A Parquet or CSV file, a pattern or a folder of Parquet files, a DuckDB file
        (`"file.duckdb::table"`), a PostgreSQL server (`"postgresql://host/database::table"`), a
        Spark cluster (`"spark://host:7077::table"`), session or frame, an Arrow, pandas or polars
        frame, or an Ibis table of any back end.
      key: Column of record keys.
      weight: Column of survey weights.
      id: Column that identifies a record.
      codes: A file of code lists, which also says what happens to records outside them
        (`discreet codes` drafts one); see `CodeLists.read`.
      hierarchies: By variable: a `Hierarchy`, several of them, or a file.
      keys: Record keys in a side table: a Parquet file, a table beside the records (`"::name"`), a
        frame or an Ibis table.
      table: Table of a database, when `source` does not name it.
      convention: What the keys mean.
      name: Name of the data set, the same in all its editions; by default that of the file or
        table.
      edition: Changes whenever the records do.
      secret: A secret or its file, which is made when it does not exist. It makes record keys from
        the ids; beside keys that are there, or without ids, it serves noise alone.
      editions: Whether keys made by the secret are `"kept"` over editions or `"redrawn"`, as for
        `Microdata.with_keys`.
      ledger: The custodian's `Ledger`, or its file; the edition is entered there.
      random_keys: A Parquet file of keys that are drawn once: ids and keys, or without `id` a copy
        of the records with a key each. When it exists, its keys are used.
      encoding: Encoding of a CSV file, UTF-8 by default; `"cp1252"` for files of older Windows
        programs.
      decimal: Decimal sign of weights and keys in a CSV file.
    """
    lists = None if codes is None else code_lists_of(codes, hierarchies or {})
    trees = {**as_hierarchies(hierarchies), **({} if lists is None else lists.hierarchies)}
    kept = [name for name in (id, *trees) if name and (name == id or has_decimals(trees[name]))]
    form = TextForm([c for c in (key, weight) if c], kept, encoding, decimal)
    found = find_source(source, table, form)
    for note in found.notes:
        notice(f"{found.origin}: {note}.")
    if random_keys is not None and id is None:
        found, key, convention = keyed_source(
            found, random_keys, key or keys, key_convention(convention)
        )
    declared = {v: t for v, t in declared_categories(source).items() if v not in (weight, key, id)}
    data = Microdata(
        found.records,
        found.backend,
        found.origin,
        weight=weight,
        key=key,
        id=id,
        convention=key_convention(convention),
        hierarchies={**declared, **trees},
        data_set=DataSet(name_of(source, found.origin) if name is None else name, edition),
        notes=found.notes,
    )
    if lists is not None:
        data = replace(data, table=lists.inside(data.table), outside=lists.outside)
    if keys is not None:
        data = data.with_stored_keys(keys, id=id)
    elif random_keys is not None and id is not None:
        data = data.with_random_keys(random_keys, convention=key_convention(convention))
    if secret is not None:
        data = _with_secret(data, secret, editions)
    return data if ledger is None else data.with_ledger(_ledger(ledger))


def _with_secret(data: Microdata, secret: str | Path | Secret, editions: Editions) -> Microdata:
    found = secret if isinstance(secret, Secret) else Secret.from_file(secret, create=True)
    return data.with_secret(found, editions=editions)


def _ledger(ledger: Any) -> Any:
    return Ledger(ledger) if isinstance(ledger, (str, Path)) else ledger
