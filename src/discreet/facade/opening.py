"""Open records: what is said of them, where they are, and what the custodian keeps of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from discreet.errors import ParameterError, paths, texts
from discreet.facade.microdata import DEFAULT_EDITIONS, Microdata
from discreet.ledger import Ledger
from discreet.progress import notice
from discreet.records.code_list import CodeLists
from discreet.records.periods import at_period
from discreet.records.secret import Secret, secret_of
from discreet.records.sources import (
    OpenedRecords,
    code_lists_of,
    find_source,
    has_decimals,
    keyed_source,
    name_of,
)
from discreet.records.text_form import TextForm
from discreet.signatures import takes_options
from discreet.tables.assembly import Hierarchies, HierarchiesLike, as_hierarchies
from discreet.tables.editions import EditionMode
from discreet.tables.keys import KeyConvention
from discreet.tables.keys import convention as key_convention
from discreet.tables.sketches import Passage
from discreet.tables.truth import DataSet

FILE_OPTIONS = ("encoding", "decimal", "delimiter", "thousands", "header", "metadata")
"""What can be said of a file, by the names that `open` and the commands give it."""


@dataclass(frozen=True, kw_only=True)
class OpenOptions:
    """What `open` is told of records beside where they are.

    Args:
      key: Column of record keys.
      weight: Column of survey weights.
      id: Column that identifies a record.
      codes: A file of code lists, which also says what happens to records outside them
        (`discreet codes` drafts one); see `CodeLists.read`.
      hierarchies: By variable: a `Hierarchy`, several of them, or a file.
      declared: Variables whose categories in the frame are the public code list, whoever is in the
        records; private methods and the table builder rely on it.
      keys: Record keys in a side table: a Parquet file, a table beside the records (`"::name"`), a
        frame or an Ibis table.
      table: Table of a database, when `source` does not name it.
      convention: What the keys mean.
      name: Name of the data set, the same in all its editions; by default that of the file or
        table.
      edition: Changes whenever the records do; the period by default, or `"1"`.
      secret: A secret or its file, which is made when it is first used, and never a second time
        for the same data. It makes record keys from the ids; beside keys that are there, or
        without ids, it serves noise alone.
      editions: How editions are drawn with keys that the secret makes, as for
        `Microdata.with_keys`.
      churn: Declared share of the records that change from one edition to the next, such as 0.01.
        The default mode follows from it.
      planned: Declared number of editions.
      ledger: The custodian's `Ledger`, or its file; tables are entered there before they are
        published, and compared with those of other editions.
      random_keys: A Parquet file of keys that are drawn once: ids and keys, or without `id` a copy
        of the records with a key each. When it exists, its keys are used.
      encoding: Encoding of a CSV file. What is not said of such a file is found in its beginning,
        and a notice says what was found.
      decimal: Decimal sign of the numbers in a CSV file, `"."` or `","`.
      delimiter: What stands between the values of a CSV file.
      thousands: What stands between the thousands of its numbers; `""` for nothing.
      header: The line of a CSV file, or the row of a sheet, with the names of the columns; 1 by
        default.
      metadata: The `.rda` file that describes a file of fixed width, if it does not lie beside it
        under the same name.
      time: The column that says which period a record is of. Each period is an edition: one of
        them is chosen by `period`, and records of several are not counted together. Several
        columns, in a list, tell a time without being periods. A ledger leaves all of them out of
        account when it compares editions.
      period: The period whose records are opened, by its code in the column of time.
      moves: By column how far it moves from one edition to the next: `{"age": 1}`. A ledger moves
        it back, by the number in the edition's name.
      units: What the records are of, as public statements call them: `"enterprises"`. People, or
        contributors of sums, when absent.
    """

    key: str | None = None
    weight: str | None = None
    id: str | None = None
    codes: str | Path | CodeLists | None = None
    hierarchies: HierarchiesLike | None = None
    declared: Sequence[str] = ()
    keys: Any = None
    table: str | None = None
    convention: str | KeyConvention = "discreet"
    name: str | None = None
    edition: str | None = None
    secret: str | Path | Secret | None = None
    editions: str = DEFAULT_EDITIONS
    churn: float | None = None
    planned: int | None = None
    ledger: Any = None
    random_keys: str | Path | None = None
    encoding: str | None = None
    decimal: str | None = None
    delimiter: str | None = None
    thousands: str | None = None
    header: int | None = None
    metadata: str | Path | None = None
    time: str | Sequence[str] = ()
    period: str | None = None
    moves: Mapping[str, int] | None = None
    units: str = ""

    def __post_init__(self) -> None:
        if self.period is not None and not isinstance(self.time, str):
            raise ParameterError("period= chooses records by a column: name it by time=.")
        EditionMode.parse(self.editions)
        names = ("key", "weight", "id", "table", "encoding", "delimiter")
        texts(**{name: getattr(self, name) for name in names})
        paths(
            metadata=self.metadata,
            random_keys=self.random_keys,
            codes=None if isinstance(self.codes, CodeLists) else self.codes,
            secret=None if isinstance(self.secret, Secret) else self.secret,
            ledger=None if isinstance(self.ledger, Ledger) else self.ledger,
        )

    def code_lists(self) -> CodeLists:
        """The declared codes; none are no code lists."""
        if self.codes is None:
            return CodeLists({}, {})
        return code_lists_of(self.codes, self.hierarchies or {})

    def text_form(self, trees: Hierarchies) -> TextForm:
        """What is said of a text file, and which of its columns hold numbers, ids and codes."""
        decimals = [name for name in trees if has_decimals(trees[name])]
        return TextForm(
            numbers=[name for name in (self.key, self.weight) if name],
            kept=[*([self.id] if self.id else []), *decimals],
            coded=list(trees),
            **{option: getattr(self, option) for option in FILE_OPTIONS},
        )

    def microdata(
        self, found: OpenedRecords, trees: Hierarchies, lists: CodeLists, name: str
    ) -> Microdata:
        """The records in their roles."""
        roles = (self.weight, self.key, self.id)
        categories = {v: tree for v, tree in found.lists.items() if v not in roles}
        said = _said_declared(self.declared, categories)
        data = Microdata(
            found.records,
            found.backend,
            found.origin,
            weight=self.weight,
            key=self.key,
            id=self.id,
            convention=key_convention(self.convention),
            hierarchies={**categories, **trees},
            undeclared=frozenset(categories) - said - trees.keys(),
            data_set=DataSet(
                name,
                self.edition or self.period or "1",
                churn=self.churn,
                planned=self.planned,
                units=self.units,
            ),
            notes=found.notes,
            passage=lists.passage.join(Passage(self.time, self.moves or {})),
            time=self.time if isinstance(self.time, str) else "",
        )
        return replace(data, table=lists.inside(data.table), outside=lists.outside)

    def with_custody(self, data: Microdata) -> Microdata:
        """The records with the keys, the secret and the ledger that the custodian keeps."""
        if self.keys is not None:
            data = data.with_stored_keys(self.keys, id=self.id)
        elif self.random_keys is not None and self.id is not None:
            convention = key_convention(self.convention)
            data = data.with_random_keys(self.random_keys, convention=convention)
        ledger = Ledger(self.ledger) if isinstance(self.ledger, (str, Path)) else self.ledger
        if self.secret is not None:
            named = data.data_set
            marks = () if ledger is None else ledger.secret_marks(named.name)
            has_keys = data.has_keys and named.keys != "given"
            secret = secret_of(self.secret, named.name, marks=marks, has_keys=has_keys)
            data = data.with_secret(secret, editions=self.editions)
        return data if ledger is None else data.with_ledger(ledger)


@takes_options(OpenOptions)
def open(source: Any, options: OpenOptions) -> Microdata:  # noqa: D417  see its class
    """Records with roles.

    Codes in CSV files are text, so `01` stays `01`; only weights and keys are read as numbers. In a
    column of whole numbers alone, of which some are blank or written as `47` and others as `47.0`,
    both are the code `47`; a note says so. A code list that has `47.0` among its codes prevents it.
    Codes are declared by `codes` or by `hierarchies`. Categories of a pandas categorical or a
    polars enum are a code list too, but they are often collected from the records, so they count
    as declared only for the variables in `declared`. Other codes are found in the records.

    Args:
      source: A Parquet or CSV file, a pattern or a folder of Parquet files, a DuckDB file
        (`"file.duckdb::table"`), a PostgreSQL server (`"postgresql://host/database::table"`), a
        Spark cluster (`"spark://host:7077::table"`), session or frame, an Arrow, pandas or polars
        frame, or an Ibis table of any back end.
    """
    lists = options.code_lists()
    trees = {**as_hierarchies(options.hierarchies), **lists.hierarchies}
    found = find_source(source, options.table, options.text_form(trees))
    for note in found.notes:
        notice(f"{found.origin}: {note}.")
    if options.period is not None:
        column = str(options.time)
        records = at_period(found.backend, found.records, column, options.period, found.origin)
        found = found._replace(records=records)
    if options.random_keys is not None and options.id is None:
        others, rule = options.key or options.keys, key_convention(options.convention)
        found, key, rule = keyed_source(found, options.random_keys, others, rule)
        options = replace(options, key=key, convention=rule)
    name = name_of(source, found.origin) if options.name is None else options.name
    return options.with_custody(options.microdata(found, trees, lists, name))


def _said_declared(declared: Sequence[str], categories: Mapping[str, Any]) -> frozenset[str]:
    """The variables whose categories are said to be public; others have none to speak of."""
    several = [declared] if isinstance(declared, str) else declared
    if not isinstance(several, Collection) or not all(isinstance(name, str) for name in several):
        raise ParameterError(f"declared= takes names of variables, got {declared!r:.60}.")
    named = frozenset(several)
    for name in sorted(named - categories.keys()):
        raise ParameterError(
            f"declared= is for categories that come with a frame, and {name!r} has no categories: "
            "its codes are read from the records. Declare them with codes= or hierarchies=."
        )
    return named
