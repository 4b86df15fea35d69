"""What a study consists of: printed figures beside computed ones, findings, pictures.

Everything a paper prints is written down as text, digit by digit, because the digits say how
exactly a figure can be met.
"""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from discreet.display import Display, Displayed, Grid, Line, Side

MARKING = "Confidential. This study discusses true counts of the records it was made from."

_WHOLE = 5e-7  # whole numbers are printed exactly; fits meet them to rounding
_TIE = 1e-4  # values halfway between two printed ones may be printed as either
_SMALL = 1e-4  # figures below this are shown with an exponent
_CLEAR = 0.95  # share of the seeds that must agree on a sentence
STAR = "*"
"""Marks that a paper prints behind a figure."""


class Verdict(enum.Enum):
    """How a computed figure compares with the printed one."""

    exact = "exact"
    within = "within tolerance"
    construction = "true by construction"
    other_data = "other data"
    explained = "differs as known"
    anchored = "agrees when anchored"
    outside = "OUTSIDE"


class Ground(enum.Enum):
    """What a comparison of two figures can show."""

    computed = "computed independently of the printed figure"
    construction = "cannot differ unless the program is broken"
    shaped = "the stand-in was shaped to meet it, and other stand-ins miss it"
    anchored = "our change, applied to a printed figure of another row"
    other_data = "rests on data that are not at hand"


_OF_GROUND = {Ground.construction: Verdict.construction, Ground.anchored: Verdict.anchored}


@dataclass(frozen=True)
class Known:
    """A figure that the paper cannot have meant, and what it should be instead.

    Attributes:
      expected: What a correct computation gives.
      tolerance: Largest distance from it.
      reason: Why the paper differs, in one sentence.
    """

    expected: float
    tolerance: float
    reason: str


@dataclass(frozen=True)
class Figure:
    """One figure of a paper.

    Attributes:
      row: Its row in the paper's table.
      column: Its column.
      printed: The paper's text of it, with its star where it has one.
      computed: Our value.
      tolerance: Largest difference at which the two agree.
      known: Why they differ, where they do and it is known.
      ground: What their agreement can show.
      mark: The star that our value deserves.
    """

    row: str
    column: str
    printed: str
    computed: float
    tolerance: float
    known: Known | None = None
    ground: Ground = Ground.computed
    mark: str = ""

    @property
    def value(self) -> float:
        """The printed figure as a number."""
        return float(self.printed.rstrip(STAR))

    @property
    def difference(self) -> float:
        """Computed minus printed."""
        return self.computed - self.value

    @property
    def verdict(self) -> Verdict:
        """Whether the two agree; a known difference must be the known one."""
        if self.ground is Ground.other_data:
            return Verdict.other_data
        if self.known is not None:
            close = abs(self.computed - self.known.expected) <= self.known.tolerance
            return Verdict.explained if close else Verdict.outside
        same_mark = self.printed.endswith(STAR) == bool(self.mark)
        agrees = same_mark and abs(self.difference) <= self.tolerance
        if self.ground is Ground.shaped:
            # Missing it says that the stand-in is not the paper's file, which everybody knows.
            return Verdict.construction if agrees else Verdict.other_data
        if not agrees:
            return Verdict.outside
        if self.ground in _OF_GROUND:
            return _OF_GROUND[self.ground]
        return Verdict.exact if self.is_exact else Verdict.within

    @property
    def is_exact(self) -> bool:
        """Whether nothing but rounding to the printed digits is tolerated."""
        return self.tolerance <= as_printed(self.printed)

    @property
    def shown(self) -> str:
        """Our value with one digit more than the printed one; a whole one with at least five."""
        if not math.isfinite(self.computed):
            return f"{self.computed}{self.mark}"
        exponent = _exponent(self.printed)
        digits = len(_decimal(self.printed).as_tuple().digits)
        if exponent >= 0:
            form = f".{max(digits, 5)}g"
        elif "e" in self.printed.lower() or abs(self.value) < _SMALL:
            form = f".{digits}e"
        else:
            form = f".{1 - exponent}f"
        return f"{self.computed:{form}}{self.mark}"


@dataclass(frozen=True)
class PrintedTable:
    """A table of a paper, or the figures of one of its paragraphs.

    Attributes:
      title: Its number in the paper.
      caption: What it shows.
      figures: What it prints, row by row.
      agreement: When a figure agrees, in words.
      first: Columns that come first, where the first rows do not have them all.
    """

    title: str
    caption: str
    figures: tuple[Figure, ...]
    agreement: str = "Figures agree when they round to the printed digits."
    first: tuple[str, ...] = ()

    @property
    def rows(self) -> list[str]:
        """The rows in the paper's order."""
        return list(dict.fromkeys(f.row for f in self.figures))

    @property
    def columns(self) -> list[str]:
        """The columns in the paper's order."""
        return list(dict.fromkeys([*self.first, *(f.column for f in self.figures)]))


class Outcome(enum.Enum):
    """What our figures say about a sentence of a paper."""

    holds = "holds"
    undecided = "undecided"
    explained = "differs as known"
    not_judged = "not judged"
    fails = "DOES NOT HOLD"


@dataclass(frozen=True)
class Finding:
    """A sentence that our figures bear out, or do not.

    Attributes:
      text: What the paper says, with its numbers; or what we say ourselves.
      holds: Whether it is so here; `None` when the draws are too few to tell.
      evidence: The figures that say so.
      is_judged: Whether it must be so; not for records that the paper never saw.
      known: Why it is not so here, where that is known.
      is_ours: Whether the sentence is a check of our own, which the paper does not state.
    """

    text: str
    holds: bool | None
    evidence: str
    is_judged: bool = True
    known: str = ""
    is_ours: bool = False

    @property
    def outcome(self) -> Outcome:
        """What our figures say."""
        if not self.is_judged:
            return Outcome.not_judged
        if self.holds is None:
            return Outcome.undecided
        if self.holds:
            return Outcome.holds
        return Outcome.explained if self.known else Outcome.fails

    @property
    def remark(self) -> str:
        """The evidence, and why the sentence is not so here or not judged."""
        seen = {True: " It is so here.", False: " It is not so here.", None: ""}[self.holds]
        reason = "" if self.is_judged and self.holds else self.known
        return " ".join(filter(None, [self.evidence + ("" if self.is_judged else seen), reason]))


def own(text: str, holds: bool | None, evidence: str, *, is_judged: bool = True) -> Finding:
    """A check of our own, which the paper does not state."""
    return Finding(text, holds, evidence, is_judged, is_ours=True)


def over_seeds(found: Sequence[Finding]) -> Finding:
    """One sentence over several seeds: the first one's evidence, and the share that hold.

    It holds when at most one seed in twenty says otherwise, and fails when at most one bears it
    out; in between it is undecided.
    """
    held = sum(finding.holds is True for finding in found)
    share = held / len(found)
    is_clear = share >= _CLEAR or share <= 1 - _CLEAR
    shown = f"{found[0].evidence} It holds for {held} of {len(found)} seeds."
    return replace(found[0], holds=share >= _CLEAR if is_clear else None, evidence=shown)


@dataclass(frozen=True)
class Picture:
    """A figure of a paper, drawn when it is asked for.

    Attributes:
      title: Its number in the paper.
      caption: What it shows.
      draw: Makes the chart.
    """

    title: str
    caption: str
    draw: Callable[[], Any]


@dataclass(frozen=True)
class Options:
    """What a study may be told.

    Attributes:
      replicates: Draws of every simulation; the paper's number by default.
      seed: Root of all streams of random numbers.
      data: Records to use instead of a paper's own, where a study can.
      by: The variables of these records, `A*B*C`; those of the paper by default.
    """

    replicates: int | None = None
    seed: int = 1
    data: str | None = None
    by: str | None = None


@dataclass(frozen=True)
class LogEntry:
    """A stand-in and its tolerances, frozen before a run, and why they changed.

    Attributes:
      date: When they were frozen.
      change: What changed since the entry before.
      reason: Why, as known before the run.
      digest: Digest of everything that is frozen; none for what was never frozen.
      counts: Digest of the counts of a small stand-in, made with seed 1.
    """

    date: str
    change: str
    reason: str
    digest: str = ""
    counts: str = ""


@dataclass(frozen=True)
class Origin:
    """What a reader needs to run a study again.

    Attributes:
      reference: The paper in full.
      version: Version of the program.
      date: Day of the run.
      seed: Root of all streams of random numbers.
      command: The command that makes the page.
    """

    reference: str
    version: str
    date: str
    seed: int
    command: str


@dataclass(frozen=True)
class Study(Displayed):
    """A paper, run again.

    Attributes:
      name: The study's name.
      title: The paper's title.
      source: Author and year, and the part of the paper where it is not the whole.
      tables: What it prints, beside what we compute.
      findings: What it says, and what we say ourselves, beside what we find.
      pictures: What it draws, drawn from our figures.
      notes: How this run differs from the paper's.
      is_confidential: Whether it speaks of records that somebody gave.
      log: How stand-in and tolerances came about, oldest first.
      origin: How to run it again; given by `run_study`.
    """

    name: str
    title: str
    source: str
    tables: tuple[PrintedTable, ...]
    findings: tuple[Finding, ...] = ()
    pictures: tuple[Picture, ...] = ()
    notes: tuple[str, ...] = ()
    is_confidential: bool = False
    log: tuple[LogEntry, ...] = ()
    origin: Origin | None = field(default=None, compare=False)
    seconds: float = field(default=0.0, compare=False)

    def _display(self) -> Display:
        header = ("row", "column", "printed", "ours", "verdict")
        grids = [
            Grid.of(
                [
                    header,
                    *((f.row, f.column, f.printed, f.shown, f.verdict.value) for f in t.figures),
                ],
                f"{t.title}. {t.caption}",
                right=(2, 3),
            )
            for t in self.tables
        ]
        said = [f"{f.outcome.value}: {f.text}" for f in self.findings]
        found = [("What the paper says, and what we find", said)] if said else []
        lines: list[Line] = [*found, *self.notes]
        facts = {"paper": self.source, "outcome": self.summary}
        side: Side = "confidential" if self.is_confidential else "public"
        return Display(self.title, side, facts, grids, lines)

    @property
    def figures(self) -> Iterator[Figure]:
        """All figures of all tables."""
        return (figure for table in self.tables for figure in table.figures)

    @property
    def failures(self) -> list[str]:
        """What lies outside its tolerance or does not hold, one line each."""
        wrong = [
            f"{table.title}, {f.row}, {f.column}: printed {f.printed}, computed {f.shown}"
            for table in self.tables
            for f in table.figures
            if f.verdict is Verdict.outside
        ]
        unmet = [f.text for f in self.findings if f.outcome is Outcome.fails]
        return wrong + [f"not borne out: {text}" for text in unmet]

    @property
    def verdicts(self) -> dict[Verdict, int]:
        """How many figures have each verdict."""
        listed = [figure.verdict for figure in self.figures]
        return {verdict: listed.count(verdict) for verdict in Verdict}

    @property
    def summary(self) -> str:
        """How many figures agree and how many sentences hold, in words."""
        theirs = [f for f in self.findings if not f.is_ours]
        ours = [f for f in self.findings if f.is_ours]
        parts = [_figure_summary(self.verdicts)]
        if theirs:
            parts.append(f"Sentences of the paper: {_outcome_summary(theirs)}.")
        if ours:
            parts.append(f"Checks of our own: {_outcome_summary(ours)}.")
        return " ".join(parts)


def _figure_summary(verdicts: Mapping[Verdict, int]) -> str:
    """Judged figures first, then those that are not, and why; kinds without figures stay out."""
    judged = verdicts[Verdict.exact] + verdicts[Verdict.within] + verdicts[Verdict.outside]
    total = sum(verdicts.values()) - verdicts[Verdict.anchored]
    if not total:
        return "The paper prints no figures here."
    parts = [
        f"Of {total:,} printed figures {judged:,} can be compared with a computation that does not "
        f"use them: {verdicts[Verdict.exact]:,} agree in all printed digits, "
        f"{verdicts[Verdict.within]:,} within the tolerance beside them, "
        f"{verdicts[Verdict.outside]:,} do not agree."
    ]
    parts += [
        f"{text}: {verdicts[verdict]:,}."
        for verdict, text in _NOT_COMPARED.items()
        if verdicts[verdict]
    ]
    return " ".join(parts)


_NOT_COMPARED = {
    Verdict.construction: "True by construction, which is no agreement",
    Verdict.other_data: "Shown and not judged, since they rest on data that are not at hand or on "
    "draws that nobody can repeat",
    Verdict.explained: "Different for a reason that is given",
    Verdict.anchored: "Compared once more, anchored at a printed figure of another row",
}


def _outcome_summary(findings: Sequence[Finding]) -> str:
    counted = Counter(finding.outcome for finding in findings)
    if len(counted) == 1 and len(findings) > 1:
        return f"all {len(findings)} {_IN_WORDS[findings[0].outcome]}"
    return ", ".join(f"{counted[o]} {_IN_WORDS[o]}" for o in Outcome if o in counted)


_IN_WORDS = {
    Outcome.holds: "hold",
    Outcome.undecided: "cannot be decided with so few draws",
    Outcome.explained: "do not hold here, for a reason that is given",
    Outcome.not_judged: "are shown and not judged",
    Outcome.fails: "DO NOT HOLD",
}


def as_printed(text: str) -> float:
    """Half a unit of the last printed digit; whole numbers are exact to rounding.

    >>> [f"{as_printed(text):.0e}" for text in ("0.1192", "3.46E-05", "17")]
    ['5e-05', '5e-08', '5e-07']
    """
    exponent = _exponent(text)
    return _WHOLE if exponent >= 0 else 0.5 * 10.0**exponent * (1 + _TIE)


def _exponent(text: str) -> int:
    """Power of ten of the last printed digit."""
    exponent = _decimal(text).as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def _decimal(text: str) -> Decimal:
    return Decimal(text.rstrip(STAR))


def by_row(text: str) -> dict[str, list[str]]:
    """Lines of words: the first names the row, the others are its figures.

    >>> by_row("A 0.25 0.75")
    {'A': ['0.25', '0.75']}
    """
    lines = (line.split() for line in text.strip().splitlines())
    return {first: rest for first, *rest in lines}


def grid(
    printed: Mapping[str, Sequence[str]],
    columns: Sequence[str],
    computed: Callable[[str, str], float],
    tolerance: Callable[[str], float] = as_printed,
    known: Mapping[tuple[str, str], Known] | None = None,
) -> tuple[Figure, ...]:
    """Figures by row and column; empty texts and dashes print nothing.

    Args:
      printed: Texts by row.
      columns: Names of the columns.
      computed: Our value at a row and a column.
      tolerance: What a figure may differ by, given its text; rounding by default.
      known: Known differences.
    """
    return tuple(
        Figure(
            row,
            column,
            text,
            computed(row, column),
            tolerance(text),
            (known or {}).get((row, column)),
        )
        for row, texts in printed.items()
        for column, text in zip(columns, texts, strict=True)
        if text not in ("", "-")
    )


def with_forced_zeros(figures: Iterable[Figure]) -> tuple[Figure, ...]:
    """Zeros outside the reach of a law cannot fail to be zero: they are true by construction."""
    return tuple(
        replace(f, ground=Ground.construction) if f.value == 0 == f.computed else f for f in figures
    )


def elsewhere(row: str, column: str, text: str, value: float) -> Figure:
    """A figure that rests on other data than the paper's."""
    return Figure(row, column, text, value, 0.0, ground=Ground.other_data)
