"""The ledger itself: what it accepts and what it refuses."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet.accounting import Cost, Total
from discreet.errors import BudgetError, LedgerError, ParameterError
from discreet.ledger import entries
from discreet.ledger.entries import (
    OTHER_DATA,
    Edition,
    LedgerFile,
    Sketch,
    check_changed,
    check_kept_keys,
    edition_text,
)
from discreet.tables.truth import DataSet

AVERAGED = (
    "The noise of several such releases can be averaged away. Make further tables from the first "
    "release with `release.tabulate`"
)
"""What several releases of one edition give away whose noise was drawn for a table as a whole."""


class Ledger:
    """A file in which every release is entered before anybody gets it.

    The ledger is confidential. It holds names, times, costs, digests and sketches, but no true
    count and no secret.

    Promise: an entry is on the disk when the method that made it returns, so that a program that
    is killed afterwards has counted too much and never too little. Several processes can use one
    ledger at once. A method that raises has entered nothing.

    Args:
      path: The file; it is made when it is not there, and only its owner can read it.
      epsilon: The budget of each data set that is entered through this object, kept with the data
        set's name. A data set that has a budget keeps it when none is given. Without a budget,
        costs are entered and nothing is refused.
      delta: δ of the budget, at which ε is computed; costs stated in ρ need one above zero.
      min_changed: By how many records a new edition must differ from every earlier one. The
        number is found by a sketch that never overstates it.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        min_changed: int = 20,
    ) -> None:
        if epsilon is None and delta is not None:
            raise ParameterError(f"a budget needs epsilon, got delta={delta!r} alone.")
        if isinstance(min_changed, bool) or not isinstance(min_changed, int) or min_changed < 0:
            raise ParameterError(
                f"min_changed must be a whole number, zero or more, got {min_changed!r}."
            )
        self.budget = None if epsilon is None else Cost(epsilon, 0.0 if delta is None else delta)
        self.min_changed = min_changed
        self._file = LedgerFile(path)

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
            entries.add_release(db, data_set, len(found) + 1, digest, step)
            return len(found) + 1

    def register_edition(
        self, data_set: DataSet, sketch: Sketch | None, secret_mark: str | None
    ) -> None:
        """Enter an edition of the records, or check that it is the one that was entered.

        What is not known (no sketch, no mark, keys that came with the records) is not checked,
        and added when a later call knows it.

        Args:
          data_set: The records.
          sketch: Sketch of the records.
          secret_mark: The mark of the secret behind the record keys.

        Raises:
          LedgerError: The edition was entered with other records, other keys or another secret;
            or it is new and differs too little from an earlier one.
        """
        keys = None if data_set.keys == "given" else data_set.keys
        with self._file.writing() as db:
            others = entries.editions_of(db, data_set.name)
            before = others.pop(data_set.edition, None)
            now = (before or Edition()).merge(Edition(keys, secret_mark, sketch), data_set)
            if now == before:
                return
            check_kept_keys(now, others, data_set)
            if now.sketch is not None and (before is None or before.sketch is None):
                check_changed(now.sketch, others, data_set, self.min_changed)
            entries.put_edition(db, data_set, now)

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
                together = math.inf if budget is None else total.epsilon_at(budget.delta)
                found.append(
                    {
                        "name": name,
                        "private_releases": total.entries,
                        "epsilon": total.epsilon,
                        "delta": total.delta,
                        "rho": total.rho,
                        "budget": budget and {"epsilon": budget.epsilon, "delta": budget.delta},
                        "epsilon_at_delta": None if math.isinf(together) else together,
                    }
                )
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
                f"data set {name!r} has a budget of {kept}, but this ledger was opened with "
                f"{self.budget}. A budget stays what it was; open the ledger without one."
            )
        return kept


def _check_budget(name: str, before: Total, cost: Cost, budget: Cost) -> None:
    after = before.plus(cost)
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


def summary_line(found: Mapping[str, Any]) -> str:
    """What was spent of a data set's budget."""
    parts = {"ε": found["epsilon"], "δ": found["delta"], "ρ": found["rho"]}
    spent = ", ".join(f"{sign} = {amount:g}" for sign, amount in parts.items() if amount)
    line = f"{found['name']}: {found['private_releases']} private releases"
    line += f" cost {spent} together" if spent else ""
    if found["budget"] is None:
        return f"{line}; no budget."
    budget, together = Cost(**found["budget"]), found["epsilon_at_delta"]
    proved = "no finite ε" if together is None else f"ε = {together:g}"
    return f"{line}; {proved} of a budget of {budget}."


def row_line(row: Mapping[str, Any]) -> str:
    """One entry."""
    line = f"{row['time']}  {row['name']}, edition {row['edition']}: {row['entry']}"
    step = ", ".join(f"{name} {value}" for name, value in row.get("step", {}).items())
    match row["entry"]:
        case "private release":
            return f"{line}, {Cost(row['epsilon'], row['delta'], row['rho'])} ({step})"
        case "release":
            return f"{line} {row['number']} ({step})"
        case "edition":
            return f"{line}, keys {row['keys']}" if row["keys"] else line
    return f"{line} of {row['variables']}"
