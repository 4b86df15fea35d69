"""The confidential table as users hold it: made from frames, protected, tried out and saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

from discreet.design.formula import Margins, Term
from discreet.design.support import Support
from discreet.display.bars import shows_progress
from discreet.facade.release import Release, Trial
from discreet.protect.publish import publish, simulate
from discreet.release.files import CSV, read_csv
from discreet.tables import storage
from discreet.tables.assembly import HierarchiesLike
from discreet.tables.from_frames import (
    CountColumns,
    cells_to_table,
    contributions_to_table,
    published_to_table,
)
from discreet.tables.keys import KeyConvention
from discreet.tables.magnitude import LARGEST, Magnitude, Negative
from discreet.tables.protected import Method, PublicTable
from discreet.tables.sketches import Passage
from discreet.tables.storage import save_table
from discreet.tables.truth import Bounds, DataSet, TrueTable


@dataclass(frozen=True, eq=False, repr=False)
class Table(TrueTable):
    """**Confidential.** A design with true published values, and inner ones where they are known.

    Made by `Microdata.tabulate`, or from a frame of counts, of published cells or of contributions.
    """

    @classmethod
    def wrap(cls, table: TrueTable) -> Self:
        """A table with the same contents."""
        return cls(**{f.name: getattr(table, f.name) for f in fields(TrueTable)})

    @classmethod
    def from_counts(
        cls,
        frame: Any,
        count: str,
        margins: Margins,
        *,
        key: str | None = None,
        weight: str | None = None,
        mean_weight: float | None = None,
        hierarchies: HierarchiesLike | None = None,
        support: Support = "all",
        structural_zeros: Sequence[Mapping[str, Any]] = (),
        convention: str | KeyConvention = "discreet",
        declared: bool | Sequence[str] = False,
        name: str = "unnamed",
        edition: str = "1",
        time: str | Sequence[str] = (),
        moves: Mapping[str, int] | None = None,
        editions: str = "given",
    ) -> Self:
        """A table from a frame of inner cells: a row per combination, with its count.

        Combinations that are absent have count zero; rows of the same combination are summed. Rows
        that are totals of others, by the code list, by name and by their sums, are left out; what
        could be either is refused.

        Args:
          frame: Any data frame or Arrow table.
          count: Column of counts.
          margins: What is published: a formula, or a list of tuples.
          key: Column of cell keys (whole numbers of the convention, or fractions).
          weight: Column of weight sums.
          mean_weight: What a record stands for on average, population over sample size.
          hierarchies: By variable: a `Hierarchy`, several of them, or a file.
          support: Which combinations are inner cells: `"all"`, those `"occurring"`, or those
            `"listed"` (the occurring ones and the zeros that have a row).
          structural_zeros: Combinations that cannot occur, as {variable: codes}.
          convention: What the keys mean.
          declared: Variables whose codes in the frame are the public code list, or `True` for all
            of them. Codes of hierarchies are declared anyway; others, categories of a frame among
            them, count as found in the records, which differentially private methods refuse.
          name: Name of the data set.
          edition: Its edition.
          time: Variables of time, which a ledger leaves out when it compares editions.
          moves: By variable how far it moves in an edition, as for `discreet.open`.
          editions: Whether the keys are `"kept"` over editions or `"fresh"` in each, where that is
            known.
        """
        table = cells_to_table(
            frame,
            margins,
            CountColumns(count, key, weight),
            hierarchies=hierarchies,
            support=support,
            structural_zeros=structural_zeros,
            convention=convention,
            declared=declared,
        )
        data_set = DataSet(name, edition, editions, Bounds(mean_weight=mean_weight))
        return cls.wrap(replace(table, data_set=data_set, passage=Passage(time, moves or {})))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        margins: Margins,
        *,
        count: str = "count",
        key: str | None = None,
        hierarchies: HierarchiesLike | None = None,
        convention: str | KeyConvention = "discreet",
        adds_up: bool = True,
    ) -> Self:
        """A table from a frame of *published* cells, the inverse of `to_pandas` and its friends.

        Totals carry the total's code. The inner cells stay unknown unless they are published.

        Args:
          frame: Any data frame or Arrow table.
          margins: What is published: a formula, or a list of tuples.
          count: Column of counts.
          key: Column of cell keys.
          hierarchies: As for `from_counts`.
          convention: What the keys mean.
          adds_up: Whether cells are the sums of finer ones, which is checked. Tables that are meant
            not to add up are protected cell by cell alone: by cell-key, drop-add or pram.

        Raises:
          DataError: Cells do not add up; the message names them with both sums, and is
            confidential.
        """
        table = published_to_table(
            frame,
            margins,
            count=count,
            key=key,
            hierarchies=hierarchies,
            convention=convention,
            adds_up=adds_up,
        )
        return cls.wrap(table)

    @classmethod
    def from_contributions(
        cls,
        frame: Any,
        margins: Margins,
        *,
        value: str,
        contributor: str,
        holding: str | None = None,
        weight: str | None = None,
        negative: Negative = "refuse",
        largest: int = LARGEST,
        hierarchies: HierarchiesLike | None = None,
        support: Support = "all",
        structural_zeros: Sequence[Mapping[str, Any]] = (),
        declared: bool | Sequence[str] = False,
        name: str = "unnamed",
        edition: str = "1",
        units: str = "",
    ) -> Self:
        """A table of magnitudes from a frame of contributions: rows with a value and whose it is.

        Rows of one contributor in one cell are one contribution. Counts are numbers of rows.

        Args:
          frame: Any data frame or Arrow table.
          margins: What is published: a formula, or a list of tuples.
          value: Column that is summed.
          contributor: Column that says whose a row is.
          holding: Column of groups; contributors of one holding count as one.
          weight: Column of weights; contributions are then sums of weight times value.
          negative: `"refuse"` negative values, or judge contributions by their `"absolute"` value.
          largest: How many of the largest contributions to each cell are kept.
          hierarchies: As for `from_counts`.
          support: As for `from_counts`.
          structural_zeros: As for `from_counts`.
          declared: As for `from_counts`.
          name: Name of the data set.
          edition: Its edition.
          units: What the rows are of, as public statements call them: `"enterprises"`.
        """
        table = contributions_to_table(
            frame,
            margins,
            Magnitude(value, contributor, holding, negative, largest),
            weight=weight,
            hierarchies=hierarchies,
            support=support,
            structural_zeros=structural_zeros,
            declared=declared,
        )
        return cls.wrap(replace(table, data_set=DataSet(name, edition, units=units)))

    @property
    def tables(self) -> dict[str, Sequence[Term]]:
        """The margins of each table by its name, as they were given or made from its variables."""
        return dict(self.design.tables)

    @shows_progress("protecting")
    def protect(
        self,
        method: Method | str,
        *,
        unit: str | None = None,
        ledger: Any = None,
        again: bool = False,
        previous: PublicTable | Sequence[PublicTable] | None = None,
        publish_parameters: bool = True,
        progress: bool = True,
        **parameters: Any,
    ) -> Release:
        """Protect the table for publication.

        Noise comes from the custodian's secret or from the operating system, never from a seed.

        Args:
          method: A method, or the name of a registered one.
          unit: What is published, `"count"` or `"weight"`; must be said when the table has weights.
          ledger: A `Ledger`, or its file, that the release is entered in; the data's own when
            absent.
          again: Whether a table-wise release may differ from the one that was registered before
            for this edition. Several of them can be averaged.
          previous: The release of the edition before, or several. Phased editions repeat its
            values until they are due (a ledger remembers them itself), and suppression hides again
            what it hid rather than other cells.
          publish_parameters: Whether the statement tells the parameters of noise by key, such as D,
            V and js. Protection must not rest on keeping them: measures and attacks know them.
          progress: Whether a bar shows how far the work is; nowhere but in terminals and notebooks.
          **parameters: Parameters of a method that is given by name.
        """
        made = publish(
            self,
            method,
            parameters,
            unit=unit,
            ledger=ledger,
            again=again,
            previous=previous,
            publish_parameters=publish_parameters,
        )
        return Release.wrap(made)

    @shows_progress("simulating")
    def simulate(
        self,
        method: Method | str,
        *,
        seed: int,
        unit: str | None = None,
        progress: bool = True,
        **parameters: Any,
    ) -> Trial:
        """Protect the table as an experiment: keys, secret and noise are drawn from a seed.

        The result can be fitted, rounded, measured and attacked, but not published.

        Args:
          method: A method, or the name of a registered one.
          seed: Seed of the experiment.
          unit: As for `protect`.
          progress: Whether a bar shows how far the work is; nowhere but in terminals and notebooks.
          **parameters: Parameters of a method that is given by name.
        """
        return Trial.wrap(simulate(self, method, parameters, seed=seed, unit=unit))

    def save(self, path: str | Path) -> Path:
        """Write the table to a Parquet file that only its owner can read, marked confidential.

        Args:
          path: A name that ends in `.parquet`.
        """
        return save_table(self, path)


def read(path: str | Path) -> Table | Release:
    """A table or a release, as the file is marked."""
    if _is_csv(path):
        return read_release(path)
    found = storage.load(path)
    return Release.wrap(found) if isinstance(found, PublicTable) else Table.wrap(found)


def read_table(path: str | Path) -> Table:
    """A confidential table."""
    return Table.wrap(storage.load_table(path))


def read_release(path: str | Path) -> Release:
    """A public release; a confidential file is refused.

    Args:
      path: A Parquet file, or a CSV file with its statement beside it.
    """
    return Release.wrap(read_csv(path) if _is_csv(path) else storage.load_release(path))


def _is_csv(path: str | Path) -> bool:
    return str(path).lower().endswith(CSV)
