"""Records with roles: a query on an engine, and what its columns mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from discreet.design.assembly import Hierarchies, HierarchiesLike, as_hierarchies
from discreet.design.data_set import DataSet, Keys
from discreet.design.formula import Margins
from discreet.design.keys import CONVENTIONS, KeyConvention, convention
from discreet.design.magnitude import LARGEST, Magnitude, Negative
from discreet.design.support import Support
from discreet.errors import DataError, KeysError, ParameterError, UnknownNameError
from discreet.microdata import record_keys
from discreet.microdata.backend import fetch
from discreet.microdata.bounds import changed_bounds, check_bounds
from discreet.microdata.code_list import Outside
from discreet.microdata.key_check import KeyCheck
from discreet.microdata.recode import recode
from discreet.microdata.record_keys import KeysOf, RecordKeys
from discreet.microdata.secret import Secret
from discreet.microdata.show import text_of
from discreet.microdata.sketch import sketch_of
from discreet.microdata.zeros import Rules, moved_rules

if TYPE_CHECKING:
    from discreet.design.table import Table
    from discreet.tabulate.engine import Engine

Editions = Literal["kept", "redrawn"]


@dataclass(frozen=True, eq=False, repr=False)
class Microdata:
    """**Confidential.** Records where they lie, and the roles of their columns.

    Made by `discreet.open`. Nothing is read until a table is asked for, and then the engine that
    holds the records groups them; the records themselves never leave it. The methods return a new
    object and leave this one as it is.

    Attributes:
      table: The records as an Ibis table expression, recodes included.
      backend: The Ibis back end that answers queries.
      origin: What the records came from, for people.
      weight: Column of survey weights.
      key: Column of record keys.
      id: Column that identifies a record.
      convention: What record keys mean.
      hierarchies: Code lists and hierarchies by variable; labels come with them.
      outside: What happens to records outside the code list of a variable, where it says so.
      structural_zeros: Combinations that cannot occur, as {variable: codes}.
      record_keys: Record keys in a side table, joined by id.
      secret: Gives cells without records a key, and noise its randomness.
      data_set: The records' name and edition, how their keys are made, and what bounds one unit.
      ledger: Where the custodian enters what is released.
      opened: The records before any recode; what the ledger compares with other editions.
      key_check: Looks at keys that were given.
      notes: What was done to the records when they were opened.
    """

    table: Any
    backend: Any
    origin: str = "the records"
    weight: str | None = None
    key: str | None = None
    id: str | None = None
    convention: KeyConvention = CONVENTIONS["discreet"]
    hierarchies: Hierarchies = field(default_factory=dict)
    outside: Mapping[str, Outside] = field(default_factory=dict)
    structural_zeros: Rules = ()
    record_keys: RecordKeys | None = None
    secret: Secret | None = None
    data_set: DataSet = field(default_factory=DataSet)
    ledger: Any = None
    opened: Any = None
    key_check: KeyCheck = field(default_factory=KeyCheck)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_spelling(self.columns)
        if self.opened is None:
            object.__setattr__(self, "opened", self.table)
        for name in (self.weight, self.key, self.id, self.person, *self.hierarchies):
            if name is not None and name not in self.columns:
                raise UnknownNameError("column", name, self.columns)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns."""
        return tuple(self.table.columns)

    @property
    def person(self) -> str | None:
        """Column that identifies the unit of protection, when it is not the record."""
        return self.data_set.bounds.person

    @property
    def dimensions(self) -> tuple[str, ...]:
        """Columns that can be tabulated: those that are neither weight, key, id nor person."""
        roles = (self.weight, self.key, self.id, self.person)
        return tuple(c for c in self.columns if c not in roles)

    @property
    def has_keys(self) -> bool:
        """Whether the records have keys."""
        return self.key is not None or self.record_keys is not None

    def keyed(self) -> tuple[Any, str | None]:
        """The records as a query, with the name of their key column if they have keys."""
        if self.record_keys is None:
            return self.table, self.key
        return self.record_keys.join(self.table)

    def with_roles(
        self,
        *,
        weight: str | None = None,
        weight_bound: float | None = None,
        person: str | None = None,
        max_records: int | None = None,
        key: str | None = None,
        id: str | None = None,
        convention: str | KeyConvention | None = None,
    ) -> Microdata:
        """Columns in their roles, and bounds; what is left out stays as it is.

        Bounds are public figures that are chosen without a look at the records. The engine applies
        them to every table: they limit what one unit can change, which private methods rely on.

        Args:
          weight: Column of survey weights, none negative.
          weight_bound: Largest weight of a record; larger weights are cut to it.
          person: Column that identifies the unit of protection, when units have several records.
          max_records: Records of one person that are counted at most, those with the lowest ids;
            one unless said otherwise.
          key: Column of record keys: whole numbers, or fractions in [0, 1).
          id: Column that identifies a record.
          convention: What the keys mean: `"discreet"`, `"ptable"`, `"ons-256"`, ….
        """
        self._check_id(id)
        given = {"weight": weight, "key": key, "id": id}
        changes: dict[str, Any] = {role: c for role, c in given.items() if c is not None}
        bounds = changed_bounds(self.data_set.bounds, weight_bound, person, max_records)
        check_bounds(bounds, weight or self.weight, id or self.id)
        changes["data_set"] = replace(self.data_set, bounds=bounds)
        if key is not None or convention is not None:
            changes["key_check"] = KeyCheck()
        if key is not None:
            changes["data_set"] = replace(changes["data_set"], keys="given")
            changes["record_keys"] = None
        if convention is not None:
            changes["convention"] = _rule(convention)
        return replace(self, **changes)

    def named(self, name: str, edition: str = "1") -> Microdata:
        """The records under the name and edition that releases and the ledger know them by.

        Args:
          name: The name of the data set, the same in all its editions.
          edition: Changes whenever the records do.
        """
        data_set = replace(self.data_set, name=name, edition=edition)
        if data_set.keys == "redrawn" and edition != self.data_set.edition:
            raise KeysError(
                f"the record keys were made for edition {self.data_set.edition!r}; name edition "
                f"{edition!r} first and make the keys then, `people.named(…).with_keys(…)`."
            )
        return replace(self, data_set=data_set)._registered()

    def with_ledger(self, ledger: Any) -> Microdata:
        """The records with the custodian's ledger, in which their edition is entered.

        The records as they were opened are compared with those that were entered before; the
        engine summarises them in one query.

        Args:
          ledger: A `Ledger`.

        Raises:
          LedgerError: The edition was entered with other records or keys, or is too near to an
            earlier one.
        """
        return replace(self, ledger=ledger)._registered()

    def _check_id(self, id: str | None) -> None:
        """A ledger knows the records by their ids, so these are named before it is attached."""
        if self.ledger is not None and id not in (None, self.id):
            raise ParameterError(
                f"the ledger was given the records without {id!r} as their id. Name the id first: "
                f"`dc.open(…, id={id!r}, ledger=…)`."
            )

    def _registered(self) -> Microdata:
        """The same records, known to their ledger if they have one."""
        if self.ledger is not None:
            mark = None if self.secret is None else self.secret.mark
            self.ledger.register_edition(self.data_set, sketch_of(self), mark)
        return self

    def with_hierarchies(
        self, hierarchies: HierarchiesLike | None = None, /, **by_name: Any
    ) -> Microdata:
        """Hierarchies or code lists for some variables: `Hierarchy` objects or files.

        What an earlier code list said about records outside it holds no longer, but records that it
        dropped stay dropped.
        """
        given = as_hierarchies({**(hierarchies or {}), **by_name})
        outside = {name: rule for name, rule in self.outside.items() if name not in given}
        return replace(self, hierarchies={**self.hierarchies, **given}, outside=outside)

    def with_structural_zeros(self, rules: Iterable[Mapping[str, Any]]) -> Microdata:
        """Declare combinations that cannot occur: `{"age": ["0-14"], "marital": ["married"]}`."""
        several = tuple(rules)
        for name in (name for rule in several for name in rule):
            if name not in self.columns:
                raise UnknownNameError("column", name, self.columns)
        return replace(self, structural_zeros=(*self.structural_zeros, *several))

    def recode(
        self, changes: Mapping[str, Any] | None = None, /, *, default: object = None, **by_name: Any
    ) -> Microdata:
        """New codes for some variables.

        A change is a mapping `{old: new}`, the name of a level of the variable's hierarchy, or
        `dc.cut([0, 15, 65])`. Structural zeros follow; a hierarchy stays as far as it still fits.
        A mapping to codes that are not leaves of the hierarchy leaves the variable without one.

        Args:
          changes: By variable, for names that are not plain words.
          default: The new code of whatever a mapping does not list; without it, codes not listed
            stay. Missing values stay missing unless the mapping lists `None`.
          **by_name: By variable.
        """
        data = self
        for variable, change in {**(changes or {}), **by_name}.items():
            data = data._recoded(variable, change, default)
        return data

    def _recoded(self, variable: str, change: object, default: object) -> Microdata:
        if variable not in self.dimensions:
            raise UnknownNameError("variable", variable, self.dimensions)
        before = self.hierarchies.get(variable, ())
        done = recode(self.table, variable, change, before, default)
        others = {name: trees for name, trees in self.hierarchies.items() if name != variable}
        outside = {name: rule for name, rule in self.outside.items() if name != variable}
        table = done.table
        if variable in self.outside and (rule := self.outside[variable].recoded(done)):
            outside[variable], table = rule, rule.inside(table, variable, done.trees)
        return replace(
            self,
            table=table,
            hierarchies={**others, variable: done.trees} if done.trees else others,
            outside=outside,
            structural_zeros=moved_rules(self.structural_zeros, variable, done.moves, before),
        )

    def with_keys(
        self,
        secret: Secret,
        *,
        id: str | None = None,
        convention: str | KeyConvention = "discreet",
        editions: Editions = "kept",
    ) -> Microdata:
        """Record keys from a keyed hash of a stable id, made outside the engine.

        Only the ids are read; keys go back to the engine as a side table. The same id has the same
        key in every file and at every time, so noise drawn from keys is repeatable.

        Args:
          secret: The secret; it never becomes part of a query.
          id: Column of ids, if it is not known yet; none may be missing or occur twice.
          convention: The range of keys, `"discreet"` (32 bits) or a peer's.
          editions: `"kept"`: an id has the same key in all editions, so cells that stay the same
            get the same noise, and a cell in which one record changed shows it. `"redrawn"`: keys
            are made anew for each edition, so that the noise of many editions can be averaged.
        """
        rule = _rule(convention)
        keys_of = self._keys_of(secret, rule, editions)
        name, ids = self._ids(id)
        side = record_keys.side_table(name, ids, keys_of(ids))
        keys = record_keys.lent(self.backend, name, side)
        return self._with_side(keys, rule, editions, secret)

    def with_random_keys(
        self,
        path: str | Path | None = None,
        *,
        id: str | None = None,
        convention: str | KeyConvention = "discreet",
    ) -> Microdata:
        """Record keys drawn from the operating system once, and kept in a file.

        Args:
          path: A Parquet file that only its owner can read. When it exists, its keys are used and
            none are drawn. Without a path the keys end with the program.
          id: Column of ids, if it is not known yet.
          convention: The range of keys.
        """
        if path is not None and Path(path).exists():
            return self.with_stored_keys(path, id=id)
        rule = _rule(convention)
        name, ids = self._ids(id)
        side = record_keys.side_table(name, ids, record_keys.random_keys(len(ids), rule))
        if path is not None:
            record_keys.write(path, side, record_keys.Header(rule))
        return self._with_side(record_keys.lent(self.backend, name, side), rule)

    def store_keys(
        self,
        table: str,
        secret: Secret,
        *,
        id: str | None = None,
        convention: str | KeyConvention = "discreet",
        editions: Editions = "kept",
    ) -> Microdata:
        """Record keys as `with_keys` makes them, stored in a new table beside the records.

        Made once; from then on the keys are used by `with_stored_keys("::table")`. Ids are checked
        by the engine and read batch by batch; the table is there when all keys are.

        Args:
          table: The new table, with its schema or database if that is not the usual one.
          secret: The secret; it never becomes part of a query.
          id: Column of ids, if it is not known yet; none may be missing or occur twice.
          convention: The range of keys.
          editions: Whether keys are `"kept"` over editions or `"redrawn"`, as for `with_keys`.
        """
        rule = _rule(convention)
        keys_of = self._keys_of(secret, rule, editions)
        name = self._id_name(id)
        keys = record_keys.stored(self.backend, self.table, name, table, keys_of, self.origin)
        return self._with_side(keys, rule, editions, secret)

    def with_stored_keys(self, source: Any, *, id: str | None = None) -> Microdata:
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

    def with_secret(self, secret: Secret, *, editions: Editions = "kept") -> Microdata:
        """The custodian's secret: it draws noise, and makes keys where none are and ids are known.

        Args:
          secret: The secret; it never becomes part of a query.
          editions: As for `with_keys`.
        """
        if self.id is not None and not self.has_keys:
            return self.with_keys(secret, convention=self.convention, editions=editions)
        return replace(self, secret=secret)._registered()

    def write_keys(self, path: str | Path) -> Path:
        """Write ids and record keys to a Parquet file that only its owner can read."""
        table, key = self.keyed()
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
            out of the inner cells; the data's own say nothing where inner cells are not held.
          engine: An engine or its name in the registry; Ibis by default.
          value: Column that is summed, a number for every record.
          contributor: Column that says whose a record is; the records' id by default.
          holding: Column of the group a contributor belongs to. Contributors of one holding count
            as one; those without a holding stand for themselves.
          negative: `"refuse"` negative values, or judge contributions by their `"absolute"` value.
          largest: How many of the largest contributions to each cell are kept; a rule on the n
            largest needs n.
        """
        from discreet.tabulate.tabulate import tabulate

        if self.has_keys and self.data_set.keys == "given":
            self.key_check(self)
        return tabulate(
            self,
            margins,
            hierarchies=as_hierarchies(hierarchies),
            support=support,
            structural_zeros=structural_zeros,
            engine=engine,
            of=self._magnitude(value, contributor, holding, negative, largest),
        )

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

    def _keys_of(self, secret: Secret, rule: KeyConvention, editions: Editions) -> KeysOf:
        if editions not in ("kept", "redrawn"):
            raise ParameterError(f"editions must be 'kept' or 'redrawn', got {editions!r}.")
        edition = self.data_set.edition if editions == "redrawn" else None
        return partial(secret.keys_for_ids, rule=rule, edition=edition)

    def _with_side(
        self,
        keys: RecordKeys,
        rule: KeyConvention,
        policy: Keys = "given",
        secret: Secret | None = None,
    ) -> Microdata:
        self._check_id(keys.id)
        return replace(
            self,
            id=keys.id,
            key=None,
            record_keys=keys,
            convention=rule,
            secret=self.secret if secret is None else secret,
            data_set=replace(self.data_set, keys=policy),
            key_check=KeyCheck(),
        )._registered()

    def __repr__(self) -> str:
        return text_of(self)


def _rule(name: str | KeyConvention) -> KeyConvention:
    return convention(name)


def check_spelling(columns: Sequence[str]) -> None:
    """Some engines take names that differ by case for one; a wrong column must not be read."""
    seen: dict[str, str] = {}
    for name in columns:
        other = seen.setdefault(name.casefold(), name)
        if other is not name:
            raise DataError(
                f"columns {other!r} and {name!r} differ by upper and lower case only; rename one."
            )
