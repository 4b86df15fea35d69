"""Records as users hold them: recoded, given keys, and tabulated."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, Self

from discreet import registry
from discreet.design.formats.tree import quote_codes
from discreet.design.formula import Margins
from discreet.design.support import Support
from discreet.errors import KeysError, ParameterError, UnknownNameError, paths, texts
from discreet.facade.release import Release
from discreet.facade.table import Table
from discreet.ledger import Ledger
from discreet.progress import notice
from discreet.records import record_keys
from discreet.records.backend import fetch
from discreet.records.code_list import REFUSE, CodeLists
from discreet.records.engine import Engine
from discreet.records.expressions import KeyCheck
from discreet.records.indicators import stack_parts
from discreet.records.recode import moved_rules
from discreet.records.recode import recode as recoded
from discreet.records.record_keys import KeysOf, RecordKeys
from discreet.records.records import UnitRecords
from discreet.records.secret import Secret, secret_of
from discreet.records.sources import (
    code_lists_of,
    find_source,
    has_decimals,
    keyed_source,
    name_of,
)
from discreet.records.tabulate import tabulate
from discreet.records.text_form import TextForm
from discreet.tables.assembly import HierarchiesLike, as_hierarchies
from discreet.tables.editions import CHOICES, EditionMode
from discreet.tables.keys import KeyConvention
from discreet.tables.keys import convention as key_convention
from discreet.tables.magnitude import LARGEST, Magnitude, Negative
from discreet.tables.sketches import Passage
from discreet.tables.truth import DataSet

DEFAULT_EDITIONS = "phased"
"""The mode of editions unless one is named; how long values are repeated is left to the rule."""


@dataclass(frozen=True, eq=False, repr=False)
class Microdata(UnitRecords):
    """**Confidential.** Records where they lie, and the roles of their columns.

    Made by `discreet.open`. Nothing is read until a table is asked for, and then the engine that
    holds the records groups them; the records themselves never leave it. The methods return a new
    object and leave this one as it is.
    """

    def recode(
        self, changes: Mapping[str, Any] | None = None, /, *, default: object = None, **by_name: Any
    ) -> Self:
        """New codes for some variables.

        A change is a mapping `{old: new}`, the name of a level of the variable's hierarchy,
        `dc.cut([0, 15, 65])`, or what is left of a date: `"year"`, `"quarter"`, `"month"`,
        `"age on 2024-12-31"`. Structural zeros follow; a hierarchy stays as far as it still fits.
        A mapping to codes that are not leaves of the hierarchy leaves the variable without one.

        Args:
          changes: By variable, for names that are not plain words.
          default: The new code of whatever a mapping does not list; without it, codes not listed
            stay. Missing values stay missing unless the mapping lists `None`.
          **by_name: By variable.
        """
        data = self
        if not isinstance(changes or {}, Mapping):
            raise ParameterError(
                f"recodes are given by variable, {{name: …}}; got {changes!r:.60}."
            )
        for variable, change in {**(changes or {}), **by_name}.items():
            data = data._recode_variable(variable, change, default)
        return data

    def _recode_variable(self, variable: str, change: object, default: object) -> Self:
        if variable not in self.dimensions:
            raise UnknownNameError("variable", variable, self.dimensions)
        before = self.hierarchies.get(variable, ())
        done = recoded(self.table, variable, change, before, default)
        others = {name: trees for name, trees in self.hierarchies.items() if name != variable}
        outside = {name: rule for name, rule in self.outside.items() if name != variable}
        table = done.table
        if variable in self.outside and (rule := self.outside[variable].after_recode(done)):
            outside[variable], table = rule, rule.inside(table, variable, done.trees)
        return replace(
            self,
            table=table,
            hierarchies={**others, variable: done.trees} if done.trees else others,
            outside=outside,
            structural_zeros=moved_rules(self.structural_zeros, variable, done.moves, before),
        )

    def with_parts(
        self, total: str, parts: Sequence[str] | None = None, *, name: str = "indicator"
    ) -> Self:
        """A value as the sum of others, such as turnover of domestic turnover and exports.

        Tables then have one more variable, `indicator`, whose total is the value and whose
        categories are the parts: `tabulate("indicator*activity", value="turnover")`. Suppression
        and audits know the equation between them, and rules hold for each indicator.

        Args:
          total: The value; where it is a column, its parts must add up to it in every record.
          parts: Columns of its parts; by default those with its name in front,
            `turnover_domestic`.
          name: Name of the new variable.
        """
        return stack_parts(self, total, parts, name)

    def with_keys(
        self,
        secret: Secret,
        *,
        id: str | None = None,
        convention: str | KeyConvention = "discreet",
        editions: str = DEFAULT_EDITIONS,
    ) -> Self:
        """Record keys from a keyed hash of a stable id, made outside the engine.

        Only the ids are read; keys go back to the engine as a side table. The same id has the same
        key in every file and at every time, so noise drawn from keys is repeatable.

        Args:
          secret: The secret; it never becomes part of a query.
          id: Column of ids, if it is not known yet; none may be missing or occur twice.
          convention: The range of keys, `"discreet"` (32 bits) or a peer's.
          editions: How the next edition is drawn. `"phased"`: values are repeated and drawn afresh
            every m-th edition, `"phased:4"` for every fourth. `"fresh"`: every edition has keys
            of its own, whose noise can be averaged. `"renewed:0.05"`: a share of the records draws
            new keys. `"kept"`: an id has the same key for ever, so that a cell in which one record
            changed shows it. What each gives away is measured in `docs/editions.md`.
        """
        rule = key_convention(convention)
        keys_of = self._keys_of(secret, rule, editions)
        name, ids = self._ids(id)
        side = record_keys.side_table(name, ids, keys_of(ids))
        keys = record_keys.lend(self.backend, name, side)
        return self._with_side(keys, rule, editions, secret)

    def with_random_keys(
        self,
        path: str | Path | None = None,
        *,
        id: str | None = None,
        convention: str | KeyConvention = "discreet",
    ) -> Self:
        """Record keys drawn from the operating system once, and kept in a file.

        Args:
          path: A Parquet file that only its owner can read. When it exists, its keys are used and
            none are drawn. Without a path the keys end with the program.
          id: Column of ids, if it is not known yet.
          convention: The range of keys.
        """
        if path is not None and Path(path).exists():
            return self.with_stored_keys(path, id=id)
        rule = key_convention(convention)
        name, ids = self._ids(id)
        side = record_keys.side_table(name, ids, record_keys.random_keys(len(ids), rule))
        if path is not None:
            record_keys.write(path, side, record_keys.Header(rule))
        return self._with_side(record_keys.lend(self.backend, name, side), rule)

    def store_keys(
        self,
        table: str,
        secret: Secret,
        *,
        id: str | None = None,
        convention: str | KeyConvention = "discreet",
        editions: str = DEFAULT_EDITIONS,
    ) -> Self:
        """Record keys as `with_keys` makes them, stored in a new table beside the records.

        Made once; from then on the keys are used by `with_stored_keys("::table")`. Ids are checked
        by the engine and read batch by batch; the table is there when all keys are.

        Args:
          table: The new table, with its schema or database if that is not the usual one.
          secret: The secret; it never becomes part of a query.
          id: Column of ids, if it is not known yet; none may be missing or occur twice.
          convention: The range of keys.
          editions: The mode of editions, as for `with_keys`.
        """
        rule = key_convention(convention)
        keys_of = self._keys_of(secret, rule, editions)
        name = self._id_name(id)
        keys = record_keys.store(self.backend, self.table, name, table, keys_of, self.origin)
        return self._with_side(keys, rule, editions, secret)

    def with_stored_keys(self, source: Any, *, id: str | None = None) -> Self:
        """Record keys from a side table.

        Args:
          source: A column of ids and a column `record_key`: a Parquet file, a table beside the
            records (`"::table"`), a frame, or an Ibis table.
          id: Column of ids, if it is not the one beside the keys.
        """
        keys, header = record_keys.read(self.backend, source, id or self.id)
        header.check_edition(self.data_set.edition)
        record_keys.check_match(self.backend, self.table, keys, self.origin)
        return self._with_side(keys, header.convention or self.convention, header.keys)

    def with_secret(self, secret: Secret, *, editions: str = DEFAULT_EDITIONS) -> Self:
        """The custodian's secret: it draws noise, and makes keys where none are and ids are known.

        Args:
          secret: The secret; it never becomes part of a query.
          editions: As for `with_keys`.
        """
        if self.id is not None and not self.has_keys:
            return self.with_keys(secret, convention=self.convention, editions=editions)
        return replace(self, secret=secret)._check_secret()

    def write_keys(self, path: str | Path) -> Path:
        """Write ids and record keys to a Parquet file that only its owner can read."""
        table, key = self.join_keys()
        if key is None or self.id is None:
            raise KeysError(
                "there are no keys to write; name the id column and make keys first, e.g. "
                "`people.with_keys(secret, id='person')`."
            )
        query = table.select(table[self.id], table[key].name(record_keys.RECORD_KEY))
        side = fetch(self.backend, query, self.origin)
        policy, edition = self.data_set.keys, self.data_set.edition
        return record_keys.write(path, side, record_keys.Header(self.convention, policy, edition))

    def tabulate(
        self,
        margins: Margins,
        *,
        hierarchies: HierarchiesLike | None = None,
        support: Support = "all",
        structural_zeros: Sequence[Mapping[str, Any]] | None = None,
        engine: str | Engine | None = None,
        value: str | None = None,
        contributor: str | None = None,
        holding: str | None = None,
        negative: Negative = "refuse",
        largest: int = LARGEST,
        inner: bool = True,
    ) -> Table:
        """Count the records of every published cell, with weights and keys if there are any.

        With `value=` the table has magnitudes as well, `table.contributions`: for every published
        cell the sum, the number of contributors and the largest contributions with whose they are.
        A contribution is all that one contributor gives to a cell, over all its records; where the
        data have weights, the sum of weight times value. Contributions of zero do not count.

        The engine groups the records once, on all variables together, or once for each largest
        margin when the full crossing would be much larger than what is asked; the table then has
        no inner cells. Missing values are a category of their own, `(missing)`.

        Args:
          margins: What is published: a formula, `"region*age + sex"`, or a list of tuples.
          hierarchies: More hierarchies, or other ones than the data's.
          support: Which combinations are inner cells: `"all"`, or `"occurring"` in the records.
          structural_zeros: Combinations that cannot occur, instead of the data's. They are left
            out of the inner cells, and published cells that hold nothing else do not exist.
          engine: An engine or its name in the registry; the records' own database by default.
          value: Column that is summed, a number for every record.
          contributor: Column that says whose a record is; the records' id by default.
          holding: Column of the group a contributor belongs to. Contributors of one holding count
            as one; those without a holding stand for themselves.
          negative: `"refuse"` negative values, or judge contributions by their `"absolute"` value.
          largest: How many of the largest contributions to each cell are kept; a rule on the n
            largest needs n.
          inner: Whether inner cells are held where there are not too many. Methods that look noise
            up by cell keys do without; memory then grows with the published cells alone.
        """
        self.check_keys()
        table = tabulate(
            self,
            margins,
            hierarchies=as_hierarchies(hierarchies),
            support=support,
            structural_zeros=structural_zeros,
            engine=engine,
            of=self._magnitude(value, contributor, holding, negative, largest),
            inner=inner,
        )
        return Table.wrap(table)

    def private(
        self,
        margins: Margins | None = None,
        *,
        epsilon: float,
        delta: float | None = None,
        ledger: Any = None,
        seed: int = 1,
        **options: Any,
    ) -> Release:
        """Private tables and records of them, within a budget, in one call.

        The margins are counted, get noise from the operating system that is worth `epsilon`, or
        `epsilon` and `delta`, and records are fitted to them: `release.to_microdata()` are
        synthetic records, `release.tabulate("a*b")` is any further table of these. The crossing of
        all variables is never formed, so a dozen columns and more will do. All codes must be
        declared.

        Args:
          margins: What is measured, `["a*b", "c*d"]`; by default all pairs of variables that have a
            declared code list.
          epsilon: What the tables cost, for one unit added or removed.
          delta: Where it is given, Gaussian noise, which is less for many margins; otherwise
            discrete Laplace noise.
          ledger: The custodian's `Ledger`, or its file, with the budget of the data set.
          seed: Seed of the search for records; it works on public values.
          **options: Further parameters of `DiscreteGaussian` or `DiscreteLaplace`: `split`,
            `known`, ….
        """
        if margins is None:
            known = [v for v in self.dimensions if v in self.hierarchies.keys() - self.undeclared]
            margins = list(combinations(known or self.dimensions, 2)) or known
        elif not isinstance(margins, (str, Mapping)) and all(isinstance(m, str) for m in margins):
            margins = " + ".join(map(str, margins))
        refusing = [v for v, o in self.outside.items() if REFUSE in (o.other, o.missing)]
        if refusing:
            notice(
                f"code lists refuse records outside them ({quote_codes(refusing)}). An error would "
                "tell that such a record exists: choose 'drop' or a code for other and missing."
            )
        name = "discrete-laplace" if delta is None else "discrete-gaussian"
        budget = {"epsilon": epsilon, **({} if delta is None else {"delta": delta})}
        # Values below zero are kept until the fit: cut to zero, they would add people who are not.
        chosen = {"nonnegative": False, **budget, **options}
        release = self.tabulate(margins).protect(name, ledger=ledger, **chosen)
        return release.fit(registry.build("fitter", "from-margins", {"seed": seed}))

    def _magnitude(
        self,
        value: str | None,
        contributor: str | None,
        holding: str | None,
        negative: Negative,
        largest: int,
    ) -> Magnitude | None:
        """What is summed, and whose it is; nothing unless a value is named."""
        who = contributor or self.id
        if value is None:
            if contributor or holding:
                raise ParameterError(
                    "contributor= and holding= say whose a value is; name the value as well, "
                    "e.g. value='turnover'."
                )
            return None
        if who is None:
            raise ParameterError(
                f"value={value!r} needs to know whose each record is: name the column, e.g. "
                "contributor='enterprise'. Where every record is a contributor of its own, name "
                "the column that identifies it."
            )
        of = Magnitude(value, who, holding, negative, largest)
        for name in of.columns:
            if name not in self.columns:
                raise UnknownNameError("column", name, self.columns)
        return of

    def _ids(self, name: str | None) -> tuple[str, Any]:
        name = self._id_name(name)
        return name, record_keys.distinct_ids(self.backend, self.table, name, self.origin)

    def _id_name(self, name: str | None) -> str:
        name = name or self.id
        if name is None:
            raise ParameterError(
                "record keys need ids: name the column, e.g. id='person'. Records without ids get "
                "keys in a copy of their file: `dc.open(…, random_keys='with-keys.parquet')`."
            )
        if name not in self.columns:
            raise UnknownNameError("id column", name, self.columns)
        return name

    def _keys_of(self, secret: Secret, rule: KeyConvention, editions: str) -> KeysOf:
        mode = EditionMode.parse(editions)
        if mode.kind == "given":
            raise ParameterError(f"the mode of editions must be {CHOICES}, got {editions!r}.")
        edition = self.data_set.edition
        return partial(secret.keys_for_ids, rule=rule, edition=edition, mode=mode)

    def _with_side(
        self,
        keys: RecordKeys,
        rule: KeyConvention,
        policy: str = "given",
        secret: Secret | None = None,
    ) -> Self:
        return replace(
            self,
            id=keys.id,
            key=None,
            record_keys=keys,
            convention=rule,
            secret=self.secret if secret is None else secret,
            data_set=replace(self.data_set, keys=policy),
            key_check=KeyCheck(),
        )._check_secret()


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


def open(
    source: Any,
    *,
    key: str | None = None,
    weight: str | None = None,
    id: str | None = None,
    codes: str | Path | CodeLists | None = None,
    hierarchies: HierarchiesLike | None = None,
    declared: Sequence[str] = (),
    keys: Any = None,
    table: str | None = None,
    convention: str | KeyConvention = "discreet",
    name: str | None = None,
    edition: str = "1",
    secret: str | Path | Secret | None = None,
    editions: str = DEFAULT_EDITIONS,
    churn: float | None = None,
    planned: int | None = None,
    ledger: Any = None,
    random_keys: str | Path | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    delimiter: str | None = None,
    thousands: str | None = None,
    header: int | None = None,
    metadata: str | Path | None = None,
    time: str | Sequence[str] = (),
    moves: Mapping[str, int] | None = None,
    units: str = "",
) -> Microdata:
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
      edition: Changes whenever the records do.
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
      time: Columns that say which time a record is of. A ledger leaves them out of account when it
        compares editions.
      moves: By column how far it moves from one edition to the next: `{"age": 1}`. A ledger moves
        it back, by the number in the edition's name.
      units: What the records are of, as public statements call them: `"enterprises"`. People, or
        contributors of sums, when absent.
    """
    texts(key=key, weight=weight, id=id, table=table, encoding=encoding, delimiter=delimiter)
    paths(
        metadata=metadata,
        random_keys=random_keys,
        codes=None if isinstance(codes, CodeLists) else codes,
        secret=None if isinstance(secret, Secret) else secret,
        ledger=None if isinstance(ledger, Ledger) else ledger,
    )
    lists = None if codes is None else code_lists_of(codes, hierarchies or {})
    trees = {**as_hierarchies(hierarchies), **({} if lists is None else lists.hierarchies)}
    kept = [name for name in (id, *trees) if name and (name == id or has_decimals(trees[name]))]
    form = TextForm(
        numbers=[c for c in (key, weight) if c],
        kept=kept,
        coded=list(trees),
        encoding=encoding,
        decimal=decimal,
        delimiter=delimiter,
        thousands=thousands,
        header=header,
        metadata=metadata,
    )
    found = find_source(source, table, form)
    for note in found.notes:
        notice(f"{found.origin}: {note}.")
    if random_keys is not None and id is None:
        found, key, convention = keyed_source(
            found, random_keys, key or keys, key_convention(convention)
        )
    categories = {v: t for v, t in found.lists.items() if v not in (weight, key, id)}
    said = _said_declared(declared, categories)
    passage = Passage((time,) if isinstance(time, str) else tuple(time), moves or {})
    data = Microdata(
        found.records,
        found.backend,
        found.origin,
        weight=weight,
        key=key,
        id=id,
        convention=key_convention(convention),
        hierarchies={**categories, **trees},
        undeclared=frozenset(categories) - said - trees.keys(),
        data_set=DataSet(
            name_of(source, found.origin) if name is None else name,
            edition,
            churn=churn,
            planned=planned,
            units=units,
        ),
        notes=found.notes,
        passage=passage if lists is None else lists.passage.joined(passage),
    )
    if lists is not None:
        data = replace(data, table=lists.inside(data.table), outside=lists.outside)
    if keys is not None:
        data = data.with_stored_keys(keys, id=id)
    elif random_keys is not None and id is not None:
        data = data.with_random_keys(random_keys, convention=key_convention(convention))
    if isinstance(ledger, (str, Path)):
        ledger = Ledger(ledger)
    if secret is not None:
        marks = () if ledger is None else ledger.secret_marks(data.data_set.name)
        has_keys = data.has_keys and data.data_set.keys != "given"
        found_secret = secret_of(secret, data.data_set.name, marks=marks, has_keys=has_keys)
        data = data.with_secret(found_secret, editions=editions)
    return data if ledger is None else data.with_ledger(ledger)
