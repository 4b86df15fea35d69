"""The next edition: which mode it is drawn in and why, and which values are repeated.

Nothing here depends on the records: the rule reads declared figures (churn, planned editions), the
design and the law of the noise, and a value is due by the place of its edition and a keyed hash of
its cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.arrays import Mask, Whole
from discreet.design.base import Design
from discreet.digests import digest
from discreet.errors import KeysError, LedgerError, ParameterError
from discreet.ledger import Ledger
from discreet.ledger.editions import EarlierValues, PublishedValues
from discreet.noise.matrix import TransitionMatrix
from discreet.noise.series import Tables, leaver_claims, unchanged_recovered
from discreet.protect.cells import definitions
from discreet.protect.sentences import follows_truth
from discreet.tables.editions import DRAWS_NOTHING, EditionMode
from discreet.tables.protected import Protected, PublicTable
from discreet.tables.statement import plain_data
from discreet.tables.truth import TrueTable

RIGHT = 0.95
"""Share of right claims beyond which no further edition is allowed."""
ASSUMED_CHURN = 0.05  # where none is declared: values are then drawn afresh, and none is stale
ASSUMED_EDITIONS = 2  # where no number is declared: there will be a second one
USUAL_VARIANCE = 3.0  # of the noise, for methods that have no law
OLDEST = 12  # a value is repeated in at most so many editions: a year of months
_CELL = 30.0  # records of the cell whose age is bounded by the rule
_SEEN = 40  # editions that the bound on claims about leavers looks at
_TRIED = (2, 3, 4, 6, 8, 12, 16, 24, 40, 60, 120)


@dataclass(frozen=True)
class EditionPlan:
    """How an edition is drawn, why, and what the series then tells; public."""

    mode: EditionMode  # the mode, with its number
    why: str  # the reason in a few words
    tables: Tables  # cells of each table that a person stands in
    churn: float  # share of the records that change between editions, declared or assumed
    editions: int  # number of editions that the figures are about
    law: TransitionMatrix | None  # the law of the noise, where the method has one
    repeats: str = ""  # what is repeated: single cells, the whole release, or nothing
    is_late: bool = False  # whether values of an earlier edition are shown

    @property
    def line(self) -> str:
        """One line for the custodian."""
        return f"editions are drawn {self.mode}: {self.why}"

    @property
    def plain(self) -> str:
        """The same for everybody: that figures can be old."""
        return _OLDER if self.is_late else ""

    @property
    def text(self) -> str:
        """What the statement says of further editions."""
        said = _MEANING[self.mode.kind].format(every=self.mode.every, share=self.mode.share)
        if self.repeats:
            said += f" {self.repeats}"
        if self.law is None:
            return said
        counted, facts = _mode_of_figures(self.mode), (self.tables, self.churn, self.editions)
        figures = leaver_claims(counted, self.law, *facts)
        cells = unchanged_recovered(counted, self.law, self.editions)
        return (
            f"{said} An attack was modelled that compares {self.editions} editions, between which "
            f"{self.churn:.1%} of the records change each time. Of its claims about who left, "
            f"about {figures[0]:.0%} are right, and {figures[1]:.0%} of the surest tenth; of mere "
            f"guesses, {self.churn:.1%} are. It finds {cells:.0%} of the small counts that stay "
            "the same; guessing without a table finds 40%."
        )


_OLDER = "Some figures are those of an earlier edition, and off by what has changed since."
_MEANING = {
    "kept": "Record keys are kept over editions: a cell whose records did not change gets the same "
    "noise, and a cell in which a single record changed shows that it did.",
    "given": "Record keys came with the records. Where they are kept over editions, a cell whose "
    "records did not change gets the same noise, and a cell in which a single record changed shows "
    "that it did; the figures here suppose so.",
    "fresh": "Every edition is drawn afresh: the noise of a cell that stays the same can be "
    "averaged over editions.",
    "renewed": "A share of {share:g} of the records draws a new key for every edition, by a keyed "
    "coin, so that a changed value need not mean a changed record.",
    "phased": "A published value is repeated and drawn afresh every {every} editions; which values "
    "are due does not depend on the records, and a value can be up to {every} editions old.",
}


def plan_edition(table: TrueTable, method: Any) -> EditionPlan:
    """The mode of this edition.

    The mode that the records were opened with holds. Where they leave it to the rule, values are
    repeated as long as age allows: a cell of 30 records of which a share :math:`r` changes each
    time is off by :math:`30 r (m - 1)` in variance after `m` editions, which may reach a third of
    the noise's variance. If the editions that are planned are then more than are allowed, values
    are repeated longer, up to 12 times. Methods that draw for a table as a whole are drawn afresh,
    unless `phased:m` is named.
    """
    data, law = table.data_set, getattr(getattr(method, "method", method), "law", None)
    law = law if isinstance(law, TransitionMatrix) else None
    churn, planned = data.churn or ASSUMED_CHURN, data.planned or ASSUMED_EDITIONS
    tables, mode = tables_of(table.design), data.mode
    if follows_truth(method):
        mode, why = EditionMode("fresh"), DRAWS_NOTHING
    elif method.source != "keys" and mode.kind != "phased":
        mode, why = EditionMode("fresh"), "this method draws for a table as a whole"
    elif mode.kind == "given":
        why = "the record keys came with the records"
    elif mode.kind != "phased" or mode.every is not None:
        why = "named when the records were opened"
    elif not _is_by_cell(method):
        mode, why = EditionMode("fresh"), "this method draws for a table as a whole"
    else:
        every = choose_every(law, tables, churn, planned)
        mode = EditionMode("fresh") if every == 1 else EditionMode("phased", every=every)
        how = "declared" if data.churn else "assumed, none declared"
        why = f"{churn:.1%} of the records change between editions ({how}), {planned} editions"
    return EditionPlan(mode, why, tables, churn, max(planned, 2), law)


def choose_every(law: TransitionMatrix | None, tables: Tables, churn: float, planned: int) -> int:
    """After how many editions values are drawn afresh: the rule of `plan_edition`."""
    variance = USUAL_VARIANCE
    if law is not None:  # of the noise of large counts
        row = law.law[-1]
        variance = float(row @ law.deviations**2 - (row @ law.deviations) ** 2)
    every = min(OLDEST, max(1, int(1 + variance / 3 / (_CELL * churn))))
    while law is not None and every < OLDEST:
        mode = EditionMode("phased", every=every)
        if is_allowed(mode, law, tables, churn, planned):
            break
        every += 1
    return every


def editions_allowed(
    mode: EditionMode | str, matrix: TransitionMatrix, tables: Tables, churn: float
) -> int:
    """The number of editions up to which claims stay less than 95 % right.

    Judged are the surest tenth of the claims about who left, and the guesses of small counts that
    stay the same. Only public parameters enter. Numbers beyond 120 are returned as 120.

    Args:
      mode: The mode of editions, or its text.
      matrix: The law of the noise.
      tables: How many tables a person stands in, or the number of cells of each (`tables_of`).
      churn: Share of the records that change between two editions.
    """
    allowed, chosen = 1, EditionMode.parse(str(mode))
    for editions in _TRIED:
        if not is_allowed(chosen, matrix, tables, churn, editions):
            break
        allowed = editions
    return allowed


def is_allowed(
    mode: EditionMode, matrix: TransitionMatrix, tables: Tables, churn: float, editions: int
) -> bool:
    """Whether so many editions leave claims less than 95 % right; see `editions_allowed`."""
    chosen = _mode_of_figures(mode)
    if unchanged_recovered(chosen, matrix, editions) >= RIGHT:
        return False
    # all editions beyond the fortieth lie far from the window in which somebody left
    return leaver_claims(chosen, matrix, tables, churn, min(editions, _SEEN))[1] < RIGHT


def _mode_of_figures(mode: EditionMode) -> EditionMode:
    """The mode that figures are computed for; given keys may be kept ones."""
    if mode.kind == "given":
        return EditionMode("kept")
    return EditionMode("fresh") if mode.kind == "phased" and mode.every in (None, 1) else mode


def tables_of(design: Design) -> tuple[int, ...]:
    """Cells of each table that a person stands in: every published margin but the grand total."""
    blocks = getattr(design, "blocks", ())
    below = [block for block in blocks if any(level is not None for level in block.levels)]
    return tuple(sorted((int(np.prod(b.shape)) for b in below), reverse=True)) or (1,)


def check_number(plan: EditionPlan, table: TrueTable, book: Ledger | None) -> None:
    """Refuse an edition beyond the number at which claims are 95 % right."""
    if plan.law is None or book is None:
        return
    place = PublishedValues(book.path).place(table.data_set.name, table.data_set.edition)
    if place == 0:
        return
    if is_allowed(plan.mode, plan.law, plan.tables, plan.churn, place + 1):
        return
    data = table.data_set
    allowed = editions_allowed(plan.mode, plan.law, plan.tables, plan.churn)
    tables = plan.tables if isinstance(plan.tables, int) else len(plan.tables)
    raise LedgerError(
        f"edition {data.edition!r} is number {place + 1} of data set {data.name!r}, and in mode "
        f"{plan.mode} with {tables} tables and {plan.churn:.1%} of the records changing each "
        f"time (declare it with churn=) the surest claims about people or cells are {RIGHT:.0%} "
        f"right beyond {allowed} edition{'s' if allowed > 1 else ''}. Open the records with a "
        "secret and editions='phased:8' or another mode with fewer draws, publish fewer tables or "
        "less often, or use a perturbation table with a larger variance. See docs/editions.md."
    )


@dataclass(frozen=True, eq=False)
class Repetition:
    """What earlier editions showed, and where this one stands among them."""

    plan: EditionPlan
    place: int
    earlier: EarlierValues | None = None
    whole: PublicTable | None = None  # the release that stands for this edition too


def find_earlier(
    plan: EditionPlan,
    table: TrueTable,
    method: Any,
    previous: PublicTable | Sequence[PublicTable] | None,
    book: Ledger | None,
) -> Repetition:
    """What this edition can repeat, from releases that are given or from the ledger."""
    given = [] if previous is None else [previous] if isinstance(previous, Protected) else previous
    stored = None if book is None else PublishedValues(book.path)
    place = 0 if stored is None else stored.place(table.data_set.name, table.data_set.edition)
    for release in given:
        check_previous(release, table, method)
    if given and book is None:
        place = 1 + max(_place_in(release) for release in given)
    if plan.mode.kind != "phased":
        return Repetition(plan, place)
    every = plan.mode.every or 1
    if not _is_by_cell(method):
        for release in given:
            if _place_in(release) // every == place // every:
                # the first step of its statement is about its own edition
                rest = replace(release.statement, steps=release.statement.steps[1:])
                return Repetition(plan, place, whole=replace(release, statement=rest))
        return Repetition(plan, place)
    if given:
        return Repetition(plan, place, _values_of(given, table))
    earlier = (
        None if stored is None else stored.before(table.data_set.name, place, _what(method, table))
    )
    return Repetition(plan, place, earlier)


def repeat(found: Repetition, protected: Protected, table: TrueTable) -> Protected:
    """The protected values, with those that are not due taken from earlier editions."""
    if found.earlier is None or protected.y is not None:
        return protected
    marks = _marks(table, protected.design)
    at = found.earlier.find(marks)
    late = ~is_due(marks, found.earlier.place[at], found.place, found.plan.mode.every or 1)
    kept = (at >= 0) & late
    z = np.where(kept, found.earlier.values[at], protected.z)
    status = np.zeros(len(z), np.int8) if protected.status is None else protected.status
    status = np.where(kept, found.earlier.status[at], status).astype(np.int8)
    z = z.astype(protected.z.dtype)
    return replace(protected, z=z, status=status if status.any() else None)


def is_due(marks: Whole, since: Whole, place: int, every: int) -> Mask:
    """Whether a cell is drawn afresh in this edition; its phase is a keyed hash of the cell."""
    phase = marks % every
    due: Mask = (place + phase) // every > (since + phase) // every
    return due


def enter(found: Repetition, made: PublicTable, table: TrueTable, method: Any, book: Any) -> None:
    """Keep the values in the ledger's file for the editions to come, or that there were some."""
    if book is None:
        return
    if found.plan.mode.kind != "phased" or not _is_by_cell(method):
        named = table.data_set
        PublishedValues(book.path).note(named.name, named.edition, found.place)
        return
    status = np.zeros(len(made.z), np.int8) if made.status is None else made.status
    marks = _marks(table, made.design)
    where = (table.data_set.name, table.data_set.edition, found.place)
    design = digest(marks).hex()
    PublishedValues(book.path).enter(where, _what(method, table), design, marks, made.z, status)


def said(found: Repetition) -> EditionPlan:
    """The plan, with what was repeated in fact."""
    if found.plan.mode.kind != "phased":
        return found.plan
    if found.whole is not None:
        text = (
            "All values of this edition are those of the edition before, and what is promised of "
            "them holds for that one."
        )
    elif found.earlier is not None:
        text = (
            "Values of this edition that were not due are those of an earlier one, and what is "
            "promised of a value holds for the edition that it was drawn for."
        )
    else:
        text = "No earlier release was at hand, so all values of this edition are new."
    is_late = found.whole is not None or found.earlier is not None
    return replace(found.plan, repeats=text, is_late=is_late)


def _is_by_cell(method: Any) -> bool:
    """Whether every cell is published by itself: those of wrapped methods follow the truth."""
    is_wrapped = hasattr(method, "method")
    by_key = method.source == "keys" and getattr(method, "margins", "own") == "own"
    return bool(by_key and not is_wrapped)


def _marks(table: TrueTable, design: Design) -> Whole:
    if table.secret is None:
        raise KeysError(
            "phased editions find the cells of earlier ones by a keyed hash. Give the table the "
            "secret that made the keys: `table.with_secret(secret)`, or --secret keys.secret."
        )
    cells = definitions(design, np.arange(design.n_published), inner=False)
    return table.secret.cell_marks(cells)


def _values_of(given: Sequence[PublicTable], table: TrueTable) -> EarlierValues:
    marks = [_marks(table, release.design) for release in given]
    status = [
        np.zeros(len(release.z), np.int8) if release.status is None else release.status
        for release in given
    ]
    places = [np.full(len(release.z), _place_in(release)) for release in given]
    values = [np.asarray(release.z, dtype=np.float64) for release in given]
    found = np.concatenate(marks), np.concatenate(values)
    return EarlierValues.latest(*found, np.concatenate(status), np.concatenate(places))


def _what(method: Any, table: TrueTable) -> str:
    """Method, parameters and unit: values of another law are no values to repeat."""
    law = getattr(method, "law", None)
    parts = (law.starts, law.moves, law.widths, law.period) if law is not None else ()
    return digest(method.name, table.unit, str(method.statement().steps[0].parameters), parts).hex()


def _place_in(release: PublicTable) -> int:
    return int(release.statement.steps[0].parameters.get("place", 0))


def check_previous(release: PublicTable, table: TrueTable, method: Any) -> None:
    """Only a release of the same data set, as `protect` made it, can be repeated or followed."""
    steps, data = release.statement.steps, table.data_set
    if not isinstance(release, PublicTable) or len(steps) != 2 or steps[0].name != "data":
        raise ParameterError(
            "previous= must be a release as `protect` made it; fits and whole numbers come after."
        )
    told = steps[0].parameters
    if (told.get("name"), release.unit) != (data.name, table.unit):
        raise ParameterError(
            f"the previous release shows {release.unit} of data set {told.get('name')!r}, but this "
            f"table is about {table.unit} of {data.name!r}."
        )
    if told.get("edition") == data.edition:
        raise ParameterError(
            f"the previous release is edition {data.edition!r} itself; name the one before it."
        )
    named = f"protect:{method.name}"
    now = plain_data(method.statement().steps[0].parameters) if _is_by_cell(method) else None
    if steps[1].name != named or (now is not None and plain_data(steps[1].parameters) != now):
        raise ParameterError(
            "the previous release was made by another method or with other parameters; values of "
            "another law cannot be repeated."
        )
