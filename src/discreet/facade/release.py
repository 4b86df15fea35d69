"""Protected values as users hold them: public ones in a `Release`, an experiment's in a `Trial`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from discreet.arrays import Real
from discreet.design.formula import Margins, Term
from discreet.display.bars import shows_progress
from discreet.errors import DesignError, check_known
from discreet.frames import Frame
from discreet.release.files import save
from discreet.release.formats.write import file_stems, write
from discreet.release.language import Language
from discreet.tables.protected import Experiment, Protected, PublicTable

if TYPE_CHECKING:
    from pathlib import Path

    from discreet.solve.fit import Fitter


@dataclass(frozen=True, eq=False, repr=False)
class Result(Protected):
    """What a release and a trial can do alike: be fitted, be rounded, and tell their noise."""

    makes_whole: ClassVar[bool] = False  # whether fitted counts become whole numbers unasked

    @shows_progress("fitting")
    def fit(
        self,
        fitter: Fitter | str = "auto",
        *,
        zeros: str = "all",
        require: bool = False,
        decimals: bool | None = None,
        progress: bool = True,
    ) -> Self:
        """Recover inner cells from the released ones; the result adds up.

        Cells that are not published have weight zero; the others weigh by their public precision.
        Where a fit does not reach its tolerance, its best table is returned: `fit_result` has the
        certificate, and the statement says that it does not hold.

        Inner cells are those that published levels tell apart: where provinces are published, a
        fit has no municipalities.

        Counts of a release become whole numbers, and published cells their sums, near the fit
        (`round("near")`); the choice follows from public values. What may be negative
        (least squares), weighted counts and crossings too large to round keep their decimals, and
        so do the counts of a trial.

        Args:
          fitter: A fitter, or the name of a registered one with its defaults.
          zeros: Which inner cells may be filled: ``"all"``, or ``"margins"`` for those that do not
            lie in a published cell with released value zero; the others are zero.
          require: Whether a fit that did not reach its tolerance is an error.
          decimals: Whether counts keep the decimals of the fit, for experts; `False` rounds least
            squares as well, where no inner cell is negative.
          progress: Whether a bar shows how far the work is; nowhere but in terminals and notebooks.
        """
        from discreet.release.fitting import fit_cells, to_whole_numbers  # start-up time: Numba

        self._require_whole_release("fitted")
        fitted = fit_cells(self, fitter, zeros=zeros, require=require)
        keeps_decimals = not self.makes_whole if decimals is None else decimals
        return fitted if keeps_decimals else to_whole_numbers(fitted, asked=decimals is False)

    @shows_progress("rounding")
    def round(self, method: str = "margins", *, seed: int, progress: bool = True) -> Self:
        """Round the inner cells down or up to whole numbers; published cells are their sums.

        The seed need not be secret: what is rounded is public already.

        Args:
          method: ``"margins"`` (published cells within one wherever possible), ``"near"`` (most of
            them within one, in less than a second), ``"unbiased"``, ``"total"`` (unbiased, the
            total kept), ``"cube"`` (unbiased, sums kept as far as possible) or ``"multinomial"``
            (decimals cut off and spread, unbiased, the total kept).
          seed: Seed of the random choices.
          progress: Whether a bar shows how far the work is; nowhere but in terminals and notebooks.
        """
        from discreet.release.fitting import round_cells  # start-up time, as for `fit`

        self._require_whole_release("rounded")
        return round_cells(self, method, seed)

    def _require_whole_release(self, done: str) -> None:
        """Refuse one table of a release where all of them must be treated together."""
        if name := getattr(self, "table_name", ""):
            raise DesignError(
                f"{name!r} is one table of a release. Tables agree because they are {done} "
                f"together: take the table from the release that was {done}."
            )

    def standard_errors(self) -> Real:
        """The standard deviation of each published cell's noise; zero where there is none.

        Not a number for known margins whose small counts were rounded.

        Known for differentially private values as they are, and after a least squares fit of
        values that were not cut at zero. Where negative results were set to zero it is that of the
        noise before, which the error does not exceed.
        """
        from discreet.release.uncertainty import standard_errors  # start-up time, as for `fit`

        return standard_errors(self)

    def intervals(self, level: float = 0.95) -> tuple[Real, Real]:
        """Lower and upper confidence limits of each published cell, cut at zero.

        Exact where a value has a single draw of noise: each interval holds the truth with at least
        this probability. After a fit, and for sums of noisy cells, they go by the normal law.

        Args:
          level: Probability that one interval holds the true value.
        """
        from discreet.release.uncertainty import intervals  # start-up time, as for `fit`

        return intervals(self, level)


@dataclass(frozen=True, eq=False, repr=False)
class Release(Result, PublicTable):
    """**Public.** Protected values that may be shown and handed out; never the truth, never keys.

    Made by `Table.protect`. A release of linked tables knows them by name: `release.tables` lists
    them, and `release["Age by region"]` is a release of that table alone, with the same values.
    """

    makes_whole: ClassVar[bool] = True

    @property
    def tables(self) -> dict[str, Sequence[Term]]:
        """The margins of each table by its name, as they were given or made from its variables."""
        return dict(self.design.tables)

    def __getitem__(self, name: str) -> Release:
        """One table of the release: its own variables, the statement of the whole.

        Nothing is drawn again and no budget is spent: the values are those of the release.
        """
        if name == self.table_name and name:
            return self
        check_known("table", [name], self.tables)
        from discreet.release.tabulate import take_part  # start-up time, as for `fit`

        return take_part(self, self.tables[name], name)

    def tabulate(self, margins: Margins) -> Release:
        """A public table of other margins, summed from the released inner cells.

        Without inner cells it gives the margins that were published, with the values they have.

        Where decimals stand in place of suppressed cells, the table's cells are true where shown
        cells give them, and decimals elsewhere.

        Args:
          margins: What the table shows: a formula, or a list of tuples.
        """
        from discreet.release.tabulate import tabulate  # start-up time, as for `fit`

        return tabulate(self, margins)

    def exact_sum(self, cells: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> float | None:
        """The true value of a sum of cells, or `None` where published cells do not give it.

        A release with suppressed cells, or with decimals in their place, gives a sum exactly when
        it is a combination of cells that are shown. One whose values were changed gives none.

        Args:
          cells: Codes by variable, one or a list of them, of the cells to be summed; variables
            left out are totals. Several such cells that do not overlap are given as a list.

        Raises:
          DesignError: The release changes values, so that none of its sums is known to be true.
        """
        from discreet.release.tabulate import exact_sum  # start-up time, as for `fit`

        return exact_sum(self, cells)

    def publish(self, cells: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> float | None:
        """The old name of `exact_sum`."""
        warnings.warn(
            "Release.publish is called exact_sum now; the old name ends with version 0.4.",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.exact_sum(cells)

    def to_microdata(self) -> Frame:
        """Released inner cells as records: a row for each person, with a code for each variable."""
        from discreet.release.tabulate import to_microdata  # start-up time, as for `fit`

        return to_microdata(self)

    def save(self, path: str | Path) -> Path:
        """Write the release to a file, marked public.

        Args:
          path: A name that ends in `.parquet`, or in `.csv` for the published cells as CSV with
            statement and inner cells in files beside it; `discreet.read_release` reads both.
        """
        return save(self, path)

    def write(self, path: str | Path, *, format: str | Sequence[str] = (), **options: Any) -> Path:
        """Write the published cells for other programs, in the format that the name asks for.

        With `format`, the path is a folder: it gets a file for each table and format, a workbook
        with a sheet for each table, and `index.csv`, which lists them.

        Statement and notes are part of every format; those of a CSV file lie beside it, in
        `table.csv-metadata.json`. What `discreet.read_release` reads back, with all that a
        release holds, is written by `save`.

        Args:
          path: A name that ends in `.csv`, `.parquet`, `.xlsx`, `.json`, `.jsonstat.json`,
            `.sdmx.csv`, `.px` or `.html`; a folder where formats are named.
          format: One or several of `"csv"`, `"json-stat"`, `"px"`, `"sdmx-csv"`, `"xlsx"`, ….
          **options: Fields of `discreet.release.formats.write.Options`, such as
            `layout="wide"`, `labels="labels"` or `columns=("sex",)`, and of `About` beside it,
            such as `title=` and `source=`.
        """
        from discreet.release.notes import headed_methods  # start-up time

        if not {"methods", "statement"} & {*options}:
            options["methods"] = headed_methods(self, Language("en"))
        if len(names := [self.table_name] if self.table_name else [*self.tables]) == 1:
            (name,) = names
            options = {"title": name, "name": file_stems([name])[name], **options}
        return write(self, path, format, **options)


@dataclass(frozen=True, eq=False, repr=False)
class Trial(Result, Experiment):
    """**Confidential.** One draw of an experiment, to be measured and thrown away.

    What a seed draws can be drawn again, and many draws together give the truth away; so a trial
    shows itself to the custodian, marked as confidential, and cannot be written or handed out.
    Made by `Table.simulate`.
    """
