"""Records as users hold them: recoded, given keys, and tabulated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, Self

from discreet import registry
from discreet.design.formats.tree import quote_codes
from discreet.design.formula import Margins
from discreet.design.support import Support
from discreet.display.bars import shows_progress
from discreet.errors import KeysError, ParameterError, check_known
from discreet.facade.release import Release
from discreet.facade.table import Table
from discreet.progress import notice
from discreet.records import record_keys
from discreet.records.backend import fetch
from discreet.records.code_list import REFUSE
from discreet.records.engine import Engine
from discreet.records.expressions import KeyCheck
from discreet.records.indicators import stack_parts
from discreet.records.periods import list_periods, require_one_period
from discreet.records.recode import moved_rules
from discreet.records.recode import recode as recoded
from discreet.records.record_keys import KeysOf, RecordKeys
from discreet.records.records import UnitRecords
from discreet.records.secret import Secret
from discreet.records.tabulate import tabulate
from discreet.tables.assembly import HierarchiesLike, as_hierarchies
from discreet.tables.editions import CHOICES, EditionMode
from discreet.tables.keys import KeyConvention
from discreet.tables.keys import convention as key_convention
from discreet.tables.magnitude import LARGEST, Magnitude, Negative

DEFAULT_EDITIONS = "phased"
"""The mode of editions unless one is named; how long values are repeated is left to the rule."""


@dataclass(frozen=True, eq=False, repr=False)
class Microdata(UnitRecords):
    """**Confidential.** Records where they lie, and the roles of their columns.

    Made by `discreet.open`. Nothing is read until a table is asked for, and then the engine that
    holds the records groups them; the records themselves never leave it. The methods return a new
    object and leave this one as it is.
    """

    @property
    def periods(self) -> list[str]:
        """The periods of the records in their order, where one column tells them (`time=`)."""
        if not self.time:
            raise ParameterError("periods are told by one column: name it by time= when opening.")
        return list_periods(self.backend, self.table, self.time, self.origin)

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
        check_known("variable", [variable], self.dimensions)
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

    @shows_progress("tabulating")
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
        progress: bool = True,
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
          progress: Whether a bar shows how far the work is; nowhere but in terminals and notebooks.
        """
        self.check_keys()
        if self.time:
            require_one_period(self.backend, self.table, self.time, self.origin)
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
        check_known("column", of.columns, self.columns)
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
        check_known("id column", [name], self.columns)
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
