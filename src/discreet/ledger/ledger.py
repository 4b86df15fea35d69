"""The ledger itself: what it accepts and what it refuses."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from discreet.accounting import Change, Cost, Relation, Total
from discreet.errors import BudgetError, LedgerError, ParameterError, whole
from discreet.ledger import editions, entries
from discreet.ledger.entries import (
    OTHER_DATA,
    Edition,
    budget_text,
    check_kept_keys,
    edition_text,
    labels_text,
    row_line,
    summary_line,
)
from discreet.ledger.file import LedgerFile
from discreet.tables.sketches import RecordSketches, SketchedTable, tables_of
from discreet.tables.truth import DataSet, TrueTable

AVERAGED = (
    "The noise of several such releases can be averaged away. Make further tables from the first "
    "release with `release.tabulate`"
)
"""What several releases of one edition give away whose noise was drawn for a table as a whole."""


class Ledger:
    """A file in which every release is entered before anybody gets it.

    The ledger is confidential, as the tables are: it holds names, times, costs, digests, sketches
    of tables and the key of these. It holds no secret and no record, but whoever has the file can
    test a guess of a table's counts against its sketch.

    Promise: an entry is on the disk when the method that made it returns, so that a program that
    is killed afterwards has counted too much and never too little. Several processes can use one
    ledger at once. A method that raises has entered nothing.

    Args:
      path: The file; it is made when it is not there, and only its owner can read it.
      epsilon: The budget of each data set that is entered through this object, kept with the data
        set's name. A data set that has a budget keeps it when none is given. Without a budget,
        costs are entered and nothing is refused.
      delta: δ of the budget, at which ε is computed; costs stated in ρ need one above zero.
      relation: What the budget is for: one unit `"add-remove"` (added or removed), `"replace"`
        (replaced by another) or `"known"` (replaced by one that leaves all known margins as they
        are). Costs of other relations are converted where a theorem allows it, and refused where
        none does: known margins have no finite ε for a unit that is added or removed.
      min_changed: By how many records each table of a new edition must differ from that of every
        earlier one. The number is found by sketches that never overstate it.
      create: Whether a file that is not there is made.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        relation: Change = "add-remove",
        min_changed: int = 20,
        create: bool = True,
    ) -> None:
        if epsilon is None and delta is not None:
            raise ParameterError(f"a budget needs epsilon, got delta={delta!r} alone.")
        neighbours = Relation(relation)
        self.budget = None
        if epsilon is not None:
            self.budget = Cost(epsilon, 0.0 if delta is None else delta, relation=neighbours)
        self.min_changed = whole("min_changed", min_changed, 0)
        self._file = LedgerFile(path, create=create)

    @property
    def path(self) -> Path:
        """Where the ledger is."""
        return self._file.path

    def spend(self, data_set: DataSet, cost: Cost, step: Mapping[str, object]) -> None:
        """Enter what a private release costs, before anybody gets the release.

        Args:
          data_set: The records; all editions of one name share one budget.
          cost: The cost of the release.
          step: What was done, as plain public data.

        Raises:
          BudgetError: The budget does not suffice.
          LedgerError: The data set has another budget than this ledger was opened with.
        """
        with self._file.writing() as db:
            budget = self._kept_budget(db, data_set.name)
            if budget is not None:
                _check_budget(data_set.name, entries.total_of(db, data_set.name), cost, budget)
            entries.add_cost(db, data_set, cost, step)

    def spent(self, name: str) -> Total:
        """What all private releases of a data set cost together, in all its editions."""
        with self._file.reading() as db:
            return entries.total_of(db, name)

    def budget_of(self, name: str) -> Cost | None:
        """The budget that is kept with a data set's name."""
        with self._file.reading() as db:
            return entries.budget_of(db, name)

    def register_release(
        self,
        data_set: DataSet,
        digest: str,
        step: Mapping[str, object],
        *,
        again: bool = False,
        risk: str = AVERAGED,
    ) -> int:
        """Enter a release whose noise no ε accounts for; returns its number in the edition.

        By key, all tables under one law of noise are one release; a method that draws for a table
        as a whole makes a release of each table.

        Args:
          data_set: The records.
          digest: Tells this release from others; the same release can be entered many times.
          step: What was done, as plain public data.
          again: Allow a release that differs from the first one of this edition.
          risk: What several such releases give away, and what to do instead.

        Raises:
          LedgerError: A different release of this edition was entered before.
        """
        with self._file.writing() as db:
            found = entries.releases_of(db, data_set)
            if digest in found:
                return found[digest]
            if found and not again:
                raise LedgerError(
                    f"{edition_text(data_set)} has a release already, and this one differs from "
                    f"it. {risk}, or accept the risk with again=True."
                )
            if not again and editions.was_stopped(
                entries.decisions_of(db, data_set.name), data_set
            ):
                raise LedgerError(
                    f"attacks stopped a release of {edition_text(data_set)}. Drawing until one "
                    "passes chooses by the records: change the method or the tables, and draw "
                    "anew with again=True."
                )
            entries.add_release(db, data_set, len(found) + 1, digest, step)
            return len(found) + 1

    def register_edition(
        self,
        data_set: DataSet,
        tables: Sequence[SketchedTable],
        secret_mark: str | None,
        records: RecordSketches | None = None,
    ) -> None:
        """Enter tables of an edition before they are published, or check that they are entered.

        What is not known (no mark, keys that came with the records) is not checked, and added when
        a later call knows it.

        Args:
          data_set: The records.
          tables: The tables; an edition is entered with at least one.
          secret_mark: The mark of the secret behind the record keys.
          records: Sketches of the records by their keys, where they have keys.

        Raises:
          LedgerError: The edition was withdrawn, or entered with other records, other keys or
            another secret; or one of its tables is held: it differs too little from that of
            another edition, or cannot be compared with it. Nothing is entered then.
        """
        if not tables:
            raise ParameterError("an edition is entered with its tables; none was given.")
        keys = None if data_set.keys == "given" else data_set.keys
        with self._file.writing() as db:
            decided = entries.decisions_of(db, data_set.name)
            editions.check_open(decided, data_set)
            others = entries.editions_of(db, data_set.name)
            before = others.pop(data_set.edition, None)
            if before is not None and not entries.is_released(db, data_set):
                before = replace(before, keys=None)  # another mode, as long as nobody has a table
            now = (before or Edition()).merge(Edition(keys, secret_mark), data_set)
            check_kept_keys(now, others, data_set, editions.rotated_marks(decided))
            if now != before:
                entries.put_edition(db, data_set, now)
            editions.enter_tables(db, data_set, tables, records, self.min_changed)

    def enter(self, table: TrueTable) -> None:
        """Enter the tables of a confidential table, as its publication does.

        With it the tables of an edition that was published elsewhere, or before there was a
        ledger, become known, so that the next edition can be compared with them.
        """
        data_set = table.data_set
        tables = tables_of(table.design, table.z, table.passage, data_set.edition)
        mark = None if table.sketches is None else table.sketches.secret_mark
        if table.secret is not None:
            mark = table.secret.mark
        self.register_edition(data_set, tables, mark, table.sketches)

    def secret_marks(self, name: str) -> set[str]:
        """Marks of the secrets that editions of a data set were entered with."""
        with self._file.reading() as db:
            return {e.mark for e in entries.editions_of(db, name).values() if e.mark}

    def check_secret(self, data_set: DataSet, secret_mark: str | None) -> None:
        """Refuse a secret that is not the one of this edition, or of the keys that are kept.

        Raises:
          LedgerError: The edition was entered with another secret or with other keys, or a secret
            of kept keys was lost.
        """
        keys = None if data_set.keys == "given" else data_set.keys
        with self._file.reading() as db:
            others = entries.editions_of(db, data_set.name)
            before = others.pop(data_set.edition, Edition())
            if not entries.is_released(db, data_set):
                before = replace(before, keys=None)
            now = before.merge(Edition(keys, secret_mark), data_set)
            decided = entries.decisions_of(db, data_set.name)
            check_kept_keys(now, others, data_set, editions.rotated_marks(decided))

    def accept(self, data_set: DataSet, labels: Sequence[str], reason: str) -> None:
        """Let a table pass that is held, by a decision of the custodian that is entered.

        Args:
          data_set: The edition to be published.
          labels: The variables of the table, as the refusal names them.
          reason: Why it may pass.
        """
        about = labels_text(sorted(labels))
        with self._file.writing() as db:
            entries.add_decision(db, data_set, editions.ACCEPTED, about, _reason(reason))

    def withdraw(self, data_set: DataSet, reason: str) -> None:
        """Enter that an edition was withdrawn: nothing more is released of it.

        Who has seen it has seen it, so other editions are compared with it as before.
        """
        self._decide(data_set, editions.WITHDRAWN, "", reason)

    def correct(self, data_set: DataSet, by: str, reason: str) -> None:
        """Enter that another edition takes the place of a published one.

        A correction is an edition like others: its tables are held where they differ from those
        of the first one by too few records.

        Args:
          data_set: The edition that was published.
          by: The name of the edition that takes its place.
          reason: What was wrong.
        """
        if by == data_set.edition:
            raise ParameterError(f"a correction has a name of its own, got {by!r} again.")
        self._decide(data_set, editions.CORRECTED, by, reason)

    def stop(self, data_set: DataSet, what: str, reason: str, number: int = 0) -> None:
        """Enter that attacks stopped a publication before anybody got it.

        Args:
          data_set: The edition that was to be published.
          what: What was judged: `"method"`, or the `"release"` that was drawn.
          reason: What was found.
          number: The number of a release that was entered for this publication alone. Nobody has
            seen it, so later ones are not counted after it, and say nothing of it.
        """
        with self._file.writing() as db:
            if number:
                entries.forget_release(db, data_set, number)
            entries.add_decision(db, data_set, editions.STOPPED, what, _reason(reason))

    def release_numbers(self, data_set: DataSet) -> frozenset[int]:
        """Numbers of the releases of an edition that no ε accounts for."""
        with self._file.reading() as db:
            return frozenset(entries.releases_of(db, data_set).values())

    def pass_unjudged(self, data_set: DataSet, what: str, reason: str) -> None:
        """Enter that a publication goes on although attacks on it did not finish.

        Args:
          data_set: The edition to be published.
          what: What was not judged.
          reason: Why it may pass.
        """
        with self._file.writing() as db:
            entries.add_decision(db, data_set, editions.UNJUDGED, what, _reason(reason))

    def rotate(self, old_mark: str, new_mark: str, reason: str) -> list[str]:
        """Enter that a secret was exchanged; returns the data sets whose kept keys it made."""
        with self._file.writing() as db:
            query = "SELECT DISTINCT name FROM editions WHERE mark = ? ORDER BY name"
            found = [name for (name,) in db.execute(query, (old_mark,))]
            for name in found:
                about = f"{old_mark}>{new_mark}"
                entries.add_decision(
                    db, DataSet(name, "all"), editions.ROTATED, about, _reason(reason)
                )
            return found

    def _decide(self, data_set: DataSet, decision: str, about: str, reason: str) -> None:
        with self._file.writing() as db:
            known = entries.editions_of(db, data_set.name)
            if data_set.edition not in known:
                listed = ", ".join(map(repr, sorted(known))) or "none"
                raise LedgerError(
                    f"the ledger has no {edition_text(data_set)}; its editions are {listed}."
                )
            editions.check_open(entries.decisions_of(db, data_set.name), data_set)
            entries.add_decision(db, data_set, decision, about, _reason(reason))

    def register_counts(self, data_set: DataSet, variables: str, digest: str) -> None:
        """Enter the counts of a table, or check that they are those that were entered.

        Args:
          data_set: The records.
          variables: What the table counts.
          digest: Digest of the counts.

        Raises:
          LedgerError: Other counts of these variables were entered for this edition.
        """
        with self._file.writing() as db:
            before = entries.counts_of(db, data_set, variables)
            if before is None:
                entries.add_counts(db, data_set, variables, digest)
            elif before != digest:
                raise LedgerError(
                    f"{edition_text(data_set)} was entered with other counts of these variables. "
                    f"{OTHER_DATA}"
                )

    def rows(self) -> list[dict[str, Any]]:
        """Every entry as a plain dict, oldest first."""
        with self._file.reading() as db:
            return entries.all_rows(db)

    def summary(self) -> list[dict[str, Any]]:
        """For each data set, its totals and budget as plain data; ε is absent where not finite."""
        with self._file.reading() as db:
            found = []
            for name in entries.names(db):
                total, budget = entries.total_of(db, name), entries.budget_of(db, name)
                line = {"name": name, "private_releases": total.entries, **_together(total, budget)}
                found.append({**line, "relation_unsaid": entries.unsaid_of(db, name)})
            return found

    def text(self) -> str:
        """The ledger for people: totals by data set, then every entry."""
        title = f"{self.path} (confidential)"
        return "\n".join([title, *map(summary_line, self.summary()), *map(row_line, self.rows())])

    def __repr__(self) -> str:
        budget = "" if self.budget is None else f", {self.budget}"
        return f"Ledger({str(self.path)!r}{budget})"

    def _kept_budget(self, db: sqlite3.Connection, name: str) -> Cost | None:
        """The budget of a data set; the first that is given is kept."""
        kept = entries.budget_of(db, name)
        if kept is None and self.budget is not None:
            entries.add_budget(db, name, self.budget)
            return self.budget
        if self.budget not in (None, kept):
            raise LedgerError(
                f"data set {name!r} has a budget of {budget_text(kept)}, but this ledger was "
                f"opened with {budget_text(self.budget)}. A budget stays what it was; open the "
                "ledger without one."
            )
        return kept


def _reason(given: str) -> str:
    if not given.strip():
        raise ParameterError("a decision is entered with its reason; give one, e.g. 'wrong codes'.")
    return given.strip()


def _check_budget(name: str, before: Total, cost: Cost, budget: Cost) -> None:
    after = before.plus(cost)
    try:
        after = after.under(budget.relation.change)
    except LedgerError as error:
        raise BudgetError(
            f"the budget of data set {name!r} is {budget_text(budget)}, and the costs do not add "
            f"up to one: {error}"
        ) from None
    if after.is_within(budget):
        return
    if after.rho and not budget.delta:
        raise BudgetError(
            f"a cost of {cost} has no finite ε without δ, and the budget of data set {name!r} is "
            f"{budget}. Use a method that spends ε, or a ledger with a delta."
        )
    raise BudgetError(
        f"this release costs {cost}. Together with the {before.entries} before it, data set "
        f"{name!r} would have spent ε = {after.epsilon_at(budget.delta):g} at δ = {budget.delta:g} "
        f"(sum of δ: {after.delta:g}); its budget is {budget}. Ask for a release that costs less, "
        "or make the table from an earlier release, which costs nothing."
    )


def _together(total: Total, budget: Cost | None) -> dict[str, Any]:
    """Sums as plain data: for each relation apart, and for the strongest that all of them have."""
    apart = [{**_sums(part), "releases": part.entries} for part in total.by_relation.values()]
    found: dict[str, Any] = {"by_relation": apart, "budget": None, "epsilon_at_delta": None}
    try:
        found |= _sums(total)
    except LedgerError:  # the units differ: there is no sum
        found |= {"epsilon": None, "delta": None, "rho": None, "relation": None}
    if budget is not None:
        kept = {"epsilon": budget.epsilon, "delta": budget.delta}
        found["budget"] = {**kept, "relation": budget.relation.change}
        try:
            proved = total.under(budget.relation.change).epsilon_at(budget.delta)
        except LedgerError:
            proved = math.inf
        found["epsilon_at_delta"] = None if math.isinf(proved) else proved
    return found


def _sums(total: Total) -> dict[str, Any]:
    amounts = {"epsilon": total.epsilon, "delta": total.delta, "rho": total.rho}
    return {**amounts, "relation": total.relation.to_json()}
