"""Records with roles: a query on an engine, and what its columns mean."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from discreet.display import Display, Displayed, Grid, align_columns
from discreet.errors import (
    DataError,
    KeysError,
    ParameterError,
    UnknownNameError,
    check_known,
    is_number,
    positive,
    whole,
)
from discreet.records.code_list import Outside
from discreet.records.expressions import KeyCheck
from discreet.records.recode import Rules
from discreet.records.record_keys import RecordKeys
from discreet.records.secret import Secret
from discreet.tables.assembly import Hierarchies, HierarchiesLike, as_hierarchies
from discreet.tables.keys import CONVENTIONS, KeyConvention
from discreet.tables.keys import convention as key_convention
from discreet.tables.sketches import Passage
from discreet.tables.truth import Bounds, DataSet


@dataclass(frozen=True, eq=False, repr=False)
class UnitRecords(Displayed):
    """**Confidential.** Records where they lie, and the roles of their columns.

    What floors pass to each other; users hold `Microdata`, which adds the verbs. Nothing is read
    until a table is asked for, and then the engine that holds the records groups them; the records
    themselves never leave it. The methods return a new object and leave this one as it is.

    Attributes:
      table: The records as an Ibis table expression, recodes included.
      backend: The Ibis back end that answers queries.
      origin: What the records came from, for people.
      weight: Column of survey weights.
      key: Column of record keys.
      id: Column that identifies a record.
      convention: What record keys mean.
      hierarchies: Code lists and hierarchies by variable; labels come with them.
      undeclared: Variables whose list came with a frame as categories, and may have been found.
      outside: What happens to records outside the code list of a variable, where it says so.
      structural_zeros: Combinations that cannot occur, as {variable: codes}.
      record_keys: Record keys in a side table, joined by id.
      secret: Gives cells without records a key, and noise its randomness.
      data_set: The records' name and edition, how their keys are made, and what bounds one unit.
      ledger: Where the custodian enters what is released.
      opened: The records before any recode; what the ledger compares with other editions.
      passage: What passes by itself from one edition to the next: time, and variables that move.
      time: The column of periods, where each period is an edition; empty where there is none.
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
    undeclared: frozenset[str] = frozenset()
    outside: Mapping[str, Outside] = field(default_factory=dict)
    structural_zeros: Rules = ()
    record_keys: RecordKeys | None = None
    secret: Secret | None = None
    data_set: DataSet = field(default_factory=DataSet)
    ledger: Any = None
    opened: Any = None
    passage: Passage = field(default_factory=Passage)
    time: str = ""
    key_check: KeyCheck = field(default_factory=KeyCheck)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_spelling(self.columns)
        if self.opened is None:
            object.__setattr__(self, "opened", self.table)
        passing = (*self.passage.time, *self.passage.moves)
        for name in (self.weight, self.key, self.id, self.person, *self.hierarchies, *passing):
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

    def join_keys(self) -> tuple[Any, str | None]:
        """The records as a query, with the name of their key column if they have keys."""
        if self.record_keys is None:
            return self.table, self.key
        return self.record_keys.join(self.table)

    def check_keys(self) -> None:
        """Refuse keys that came with the records and are predictable."""
        if self.has_keys and self.data_set.keys == "given":
            self.key_check(self)

    def with_roles(
        self,
        *,
        weight: str | None = None,
        weight_bound: float | None = None,
        mean_weight: float | None = None,
        weight_variance: float | None = None,
        person: str | None = None,
        max_records: int | None = None,
        key: str | None = None,
        id: str | None = None,
        convention: str | KeyConvention | None = None,
    ) -> Self:
        """Columns in their roles, and bounds; what is left out stays as it is.

        Bounds are public figures that are chosen without a look at the records. The engine applies
        them to every table: they limit what one unit can change, which private methods rely on.

        Args:
          weight: Column of survey weights, none negative.
          weight_bound: Largest weight of a record; larger weights are cut to it.
          mean_weight: What a record stands for on average, population over sample size; steps of
            weighted counts (`grid=`) are not below it.
          weight_variance: Variance of the weights over their squared mean, as the survey's report
            states it (Kish's design effect of weighting, less one); 0.1 is the most for which
            steps of the mean weight are meant.
          person: Column that identifies the unit of protection, when units have several records.
          max_records: Records of one person that are counted at most, those with the lowest ids;
            one unless said otherwise.
          key: Column of record keys: whole numbers, or fractions in [0, 1).
          id: Column that identifies a record.
          convention: What the keys mean: `"discreet"`, `"ptable"`, `"ons-256"`, ….
        """
        given = {"weight": weight, "key": key, "id": id}
        changes: dict[str, Any] = {role: c for role, c in given.items() if c is not None}
        limits: dict[str, Any] = {"weight": weight_bound, "mean_weight": mean_weight}
        limits |= {"weight_variance": weight_variance, "person": person, "max_records": max_records}
        given_limits = {k: v for k, v in limits.items() if v is not None}
        bounds = replace(self.data_set.bounds, **given_limits)
        check_bounds(bounds, weight or self.weight, id or self.id)
        changes["data_set"] = replace(self.data_set, bounds=bounds)
        if key is not None or convention is not None:
            changes["key_check"] = KeyCheck()
        if key is not None:
            changes["data_set"] = replace(changes["data_set"], keys="given")
            changes["record_keys"] = None
        if convention is not None:
            changes["convention"] = key_convention(convention)
        return replace(self, **changes)

    def named(self, name: str, edition: str = "1") -> Self:
        """The records under the name and edition that releases and the ledger know them by.

        Args:
          name: The name of the data set, the same in all its editions.
          edition: Changes whenever the records do.
        """
        data_set = replace(self.data_set, name=name, edition=edition)
        if data_set.mode.is_by_edition and edition != self.data_set.edition:
            raise KeysError(
                f"the record keys were made for edition {self.data_set.edition!r}; name edition "
                f"{edition!r} first and make the keys then, `people.named(…).with_keys(…)`."
            )
        return replace(self, data_set=data_set)._check_secret()

    def with_ledger(self, ledger: Any) -> Self:
        """The records with the custodian's ledger, in which their tables are entered.

        A table is entered before it is published: `Table.protect` compares it with those of other
        editions, by a sketch that the engine makes of the records.

        Args:
          ledger: A `Ledger`.

        Raises:
          LedgerError: The edition was entered with other keys or another secret, or keys that are
            kept come from another secret than before.
        """
        return replace(self, ledger=ledger)._check_secret()

    def _check_secret(self) -> Self:
        """The same records, with a secret that their ledger, if they have one, takes."""
        if self.ledger is not None:
            mark = None if self.secret is None else self.secret.mark
            self.ledger.check_secret(self.data_set, mark)
        return self

    def with_hierarchies(
        self, hierarchies: HierarchiesLike | None = None, /, **by_name: Any
    ) -> Self:
        """Hierarchies or code lists for some variables: `Hierarchy` objects or files.

        What an earlier code list said about records outside it holds no longer, but records that it
        dropped stay dropped.
        """
        given = as_hierarchies({**(hierarchies or {}), **by_name})
        outside = {name: rule for name, rule in self.outside.items() if name not in given}
        return replace(
            self,
            hierarchies={**self.hierarchies, **given},
            undeclared=self.undeclared - given.keys(),
            outside=outside,
        )

    def with_structural_zeros(self, rules: Iterable[Mapping[str, Any]]) -> Self:
        """Declare combinations that cannot occur: `{"age": ["0-14"], "marital": ["married"]}`."""
        several = tuple(rules) if isinstance(rules, Iterable) else (rules,)
        for rule in several:
            if not isinstance(rule, Mapping):
                raise ParameterError(f"a structural zero is {{variable: codes}}, got {rule!r:.60}.")
        check_known("column", (name for rule in several for name in rule), self.columns)
        return replace(self, structural_zeros=(*self.structural_zeros, *several))

    def __repr__(self) -> str:
        lines = [f"Microdata (confidential): {self.origin}"]
        lines.append(f"  data set {self.data_set.name!r}, edition {self.data_set.edition!r}")
        columns = self._described_columns()
        lines += [f"  {line}" for line in align_columns(columns)] if columns else []
        lines += [f"  {remark}" for remark in self._remarks()]
        return "\n".join(lines)

    def _display(self) -> Display:
        """Columns and their roles; no record."""
        edition = f"{self.data_set.name}, edition {self.data_set.edition}"
        facts = [("records", str(self.origin)), ("data set", edition)]
        columns = Grid.of([("column", "type", "role"), *self._described_columns()])
        return Display("Microdata", "confidential", facts, [columns], self._remarks())

    def _described_columns(self) -> list[tuple[str, str, str]]:
        return [
            (name, str(kind.copy(nullable=True)), self._role_of(name))
            for name, kind in self.table.schema().items()
        ]

    def _remarks(self) -> list[str]:
        said = []
        if self.record_keys is not None:
            said.append(f"record keys in a side table, by {self.record_keys.id}")
        if self.has_keys:
            said.append(f"keys: {self.data_set.keys}, convention {self.convention.name}")
        if self.structural_zeros:
            said.append(f"{len(self.structural_zeros)} rules on structural zeros")
        return said + [f"note: {note}" for note in self.notes]

    def _role_of(self, name: str) -> str:
        bounds = self.data_set.bounds
        most = "" if bounds.weight is None else f", at most {bounds.weight:g}"
        roles = {
            self.id: "id",
            self.key: "record key",
            self.weight: f"weight{most}",
            self.person: f"person, at most {bounds.max_records} records",
        }
        trees = self.hierarchies.get(name, ())
        levels = (f"{len(t.leaves)} codes in {t.depth} level{'s' * (t.depth > 1)}" for t in trees)
        return roles[name] if name in roles else "; ".join(levels)


def check_spelling(columns: Sequence[str]) -> None:
    """Some engines take names that differ by case for one; a wrong column must not be read."""
    seen: dict[str, str] = {}
    for name in columns:
        other = seen.setdefault(name.casefold(), name)
        if other is not name:
            raise DataError(
                f"columns {other!r} and {name!r} differ by upper and lower case only; rename one."
            )


def check_bounds(bounds: Bounds, weight: str | None, id: str | None) -> None:
    """Refuse bounds that mean nothing for records with these columns of weights and ids."""
    if bounds.weight is not None and not (
        is_number(bounds.weight) and 0 < bounds.weight < math.inf
    ):
        raise ParameterError(f"weight_bound must be a number above 0, got {bounds.weight!r}.")
    declared = {"mean_weight": bounds.mean_weight, "weight_variance": bounds.weight_variance}
    for name, given in declared.items():
        if given is not None and (name == "mean_weight" or given != 0):
            positive(name, given)
    for name, given in {"weight_bound": bounds.weight, **declared}.items():
        if given is not None and weight is None:
            raise ParameterError(f"{name}= needs weights: name their column with weight=.")
    whole("max_records", bounds.max_records, 1)
    if bounds.person is None:
        if bounds.max_records > 1:
            raise ParameterError("max_records= needs persons: name their column with person=.")
    elif id is None or id == bounds.person:
        raise ParameterError(
            "person= needs ids that tell the records of one person apart, so that the same ones "
            "are counted every time: name another column with id=."
        )
