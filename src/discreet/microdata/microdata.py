"""Records with roles: a query on an engine, and what its columns mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.design.assembly import Hierarchies, HierarchiesLike, Support, as_hierarchies
from discreet.design.formula import Margins
from discreet.design.keys import CONVENTIONS, KeyConvention, convention
from discreet.errors import DataError, KeysError, ParameterError, UnknownNameError
from discreet.microdata import record_keys
from discreet.microdata.backend import fetch
from discreet.microdata.recode import recode
from discreet.microdata.record_keys import RecordKeys
from discreet.microdata.secret import Secret
from discreet.microdata.zeros import Rules, moved_rules

if TYPE_CHECKING:
    from discreet.design.table import Table
    from discreet.tabulate.engine import Engine


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
      structural_zeros: Combinations that cannot occur, as {variable: codes}.
      record_keys: Record keys in a side table, joined by id.
      secret: Gives cells without records a key.
    """

    table: Any
    backend: Any
    origin: str = "the records"
    weight: str | None = None
    key: str | None = None
    id: str | None = None
    convention: KeyConvention = CONVENTIONS["discreet"]
    hierarchies: Hierarchies = field(default_factory=dict)
    structural_zeros: Rules = ()
    record_keys: RecordKeys | None = None
    secret: Secret | None = None

    def __post_init__(self) -> None:
        check_spelling(self.columns)
        for name in (self.weight, self.key, self.id, *self.hierarchies):
            if name is not None and name not in self.columns:
                raise UnknownNameError("column", name, self.columns)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns."""
        return tuple(self.table.columns)

    @property
    def dimensions(self) -> tuple[str, ...]:
        """Columns that can be tabulated: those that are neither weight, key nor id."""
        return tuple(c for c in self.columns if c not in (self.weight, self.key, self.id))

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
        key: str | None = None,
        id: str | None = None,
        convention: str | KeyConvention | None = None,
    ) -> Microdata:
        """Columns in their roles; roles left out stay as they are.

        Args:
          weight: Column of survey weights, none negative.
          key: Column of record keys: whole numbers, or fractions in [0, 1).
          id: Column that identifies a record.
          convention: What the keys mean: `"discreet"`, `"ptable"`, `"ons-256"`, ….
        """
        given = {"weight": weight, "key": key, "id": id}
        changes: dict[str, Any] = {role: c for role, c in given.items() if c is not None}
        if key is not None:
            changes["record_keys"] = None
        if convention is not None:
            changes["convention"] = _rule(convention)
        return replace(self, **changes)

    def with_hierarchies(
        self, hierarchies: HierarchiesLike | None = None, /, **by_name: Any
    ) -> Microdata:
        """Hierarchies or code lists for some variables: `Hierarchy` objects or files."""
        given = as_hierarchies({**(hierarchies or {}), **by_name})
        return replace(self, hierarchies={**self.hierarchies, **given})

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
        return replace(
            self,
            table=done.table,
            hierarchies={**others, variable: done.trees} if done.trees else others,
            structural_zeros=moved_rules(self.structural_zeros, variable, done.moves, before),
        )

    def with_keys(
        self, secret: Secret, *, id: str | None = None, convention: str | KeyConvention = "discreet"
    ) -> Microdata:
        """Record keys from a keyed hash of a stable id, made outside the engine.

        Only the ids are read; keys go back to the engine as a side table. The same id has the same
        key in every file and at every time, so noise drawn from keys is repeatable.

        Args:
          secret: The secret; it never becomes part of a query.
          id: Column of ids, if it is not known yet; none may be missing or occur twice.
          convention: The range of keys, `"discreet"` (32 bits) or a peer's.
        """
        rule = _rule(convention)
        name, ids = self._ids(id)
        side = record_keys.side_table(name, ids, secret.keys_for_ids(ids, rule))
        keys = record_keys.lent(self.backend, name, side)
        return replace(self._with_side(keys, rule), secret=secret)

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
            record_keys.write(path, side, rule)
        return self._with_side(record_keys.lent(self.backend, name, side), rule)

    def store_keys(
        self,
        table: str,
        secret: Secret,
        *,
        id: str | None = None,
        convention: str | KeyConvention = "discreet",
    ) -> Microdata:
        """Record keys as `with_keys` makes them, stored in a new table beside the records.

        Made once; from then on the keys are used by `with_stored_keys("::table")`. Ids are checked
        by the engine and read batch by batch; the table is there when all keys are.

        Args:
          table: The new table, with its schema or database if that is not the usual one.
          secret: The secret; it never becomes part of a query.
          id: Column of ids, if it is not known yet; none may be missing or occur twice.
          convention: The range of keys.
        """
        rule = _rule(convention)
        name = self._id_name(id)
        keys_of = partial(secret.keys_for_ids, rule=rule)
        keys = record_keys.stored(self.backend, self.table, name, table, keys_of, self.origin)
        return replace(self._with_side(keys, rule), secret=secret)

    def with_stored_keys(self, source: Any, *, id: str | None = None) -> Microdata:
        """Record keys from a side table.

        Args:
          source: A column of ids and a column `record_key`: a Parquet file, a table beside the
            records (`"::table"`), a frame, or an Ibis table.
          id: Column of ids, if it is not the one beside the keys.
        """
        keys, rule = record_keys.read(self.backend, source, id or self.id)
        record_keys.check_match(self.backend, self.table, keys, self.origin)
        return self._with_side(keys, rule or self.convention)

    def with_zero_keys(self, secret: Secret) -> Microdata:
        """A secret that gives cells without records a key; the records keep theirs."""
        return replace(self, secret=secret)

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
        return record_keys.write(path, side, self.convention)

    def tabulate(
        self,
        margins: Margins,
        *,
        hierarchies: HierarchiesLike | None = None,
        support: Support = "all",
        structural_zeros: Sequence[Mapping[str, Any]] | None = None,
        engine: str | Engine | None = None,
    ) -> Table:
        """Count the records of every published cell, with weights and keys if there are any.

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
        """
        from discreet.tabulate.tabulate import tabulate

        return tabulate(
            self,
            margins,
            hierarchies=as_hierarchies(hierarchies),
            support=support,
            structural_zeros=structural_zeros,
            engine=engine,
        )

    def _ids(self, name: str | None) -> tuple[str, Any]:
        name = self._id_name(name)
        return name, record_keys.distinct_ids(self.backend, self.table, name, self.origin)

    def _id_name(self, name: str | None) -> str:
        name = name or self.id
        if name is None:
            raise ParameterError("record keys need ids: name the column, e.g. id='person'.")
        if name not in self.columns:
            raise UnknownNameError("id column", name, self.columns)
        return name

    def _with_side(self, keys: RecordKeys, rule: KeyConvention) -> Microdata:
        return replace(self, id=keys.id, key=None, record_keys=keys, convention=rule)

    def __repr__(self) -> str:
        lines = [f"Microdata (confidential): {self.origin}"]
        width = max(map(len, self.columns), default=0)
        for name, kind in self.table.schema().items():
            type_name = str(kind.copy(nullable=True))
            lines.append(f"  {name:<{width}}  {type_name:<9} {self._role(name)}".rstrip())
        if self.record_keys is not None:
            lines.append(f"  record keys in a side table, by {self.record_keys.id}")
        if self.has_keys:
            lines.append(f"  key convention: {self.convention.name}")
        if self.structural_zeros:
            lines.append(f"  {len(self.structural_zeros)} rules on structural zeros")
        return "\n".join(lines)

    def _role(self, name: str) -> str:
        roles = {self.id: "id", self.key: "record key", self.weight: "weight"}
        if name in roles:
            return roles[name]
        trees = self.hierarchies.get(name, ())
        return "; ".join(f"{len(t.leaves)} codes in {t.depth} levels" for t in trees)


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
