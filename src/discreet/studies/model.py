"""What a study consists of: printed figures beside computed ones, findings, pictures.

Everything a paper prints is written down as text, digit by digit, because the digits say how
exactly a figure can be met.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

MARKING = "Confidential. This study discusses true counts of the records it was made from."

_WHOLE = 1e-9
_TIE = 1e-4  # values halfway between two printed ones may be printed as either
_SPREAD = 3.0


class Verdict(enum.Enum):
    """How a computed figure compares with the printed one."""

    agrees = "agrees"
    explained = "differs as known"
    outside = "OUTSIDE"
    other_data = "other data"


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
      printed: The paper's text of it.
      computed: Our value.
      tolerance: Largest difference at which the two agree.
      known: Why they differ, where they do and it is known.
      is_judged: Whether they can be compared; not when the paper's data are not public.
    """

    row: str
    column: str
    printed: str
    computed: float
    tolerance: float
    known: Known | None = None
    is_judged: bool = True

    @property
    def value(self) -> float:
        """The printed figure as a number."""
        return float(self.printed)

    @property
    def difference(self) -> float:
        """Computed minus printed."""
        return self.computed - self.value

    @property
    def verdict(self) -> Verdict:
        """Whether the two agree; a known difference must be the known one."""
        if not self.is_judged:
            return Verdict.other_data
        if self.known is None:
            close = abs(self.difference) <= self.tolerance
            return Verdict.agrees if close else Verdict.outside
        close = abs(self.computed - self.known.expected) <= self.known.tolerance
        return Verdict.explained if close else Verdict.outside

    @property
    def shown(self) -> str:
        """Our value with one digit more than the printed one; a whole one with at least five."""
        if not math.isfinite(self.computed):
            return f"{self.computed}"
        exponent = _exponent(self.printed)
        digits = len(Decimal(self.printed).as_tuple().digits)
        if exponent >= 0:
            return f"{self.computed:.{max(digits, 5)}g}"
        if "e" in self.printed.lower() or exponent < -6:
            return f"{self.computed:.{digits}e}"
        return f"{self.computed:.{1 - exponent}f}"


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


@dataclass(frozen=True)
class Finding:
    """A sentence of a paper that our figures bear out, or do not.

    Attributes:
      text: What the paper says.
      holds: Whether it is so here.
      evidence: The figures that say so.
      is_judged: Whether it must be so; not for records that the paper never saw.
    """

    text: str
    holds: bool
    evidence: str
    is_judged: bool = True


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
class Study:
    """A paper, run again.

    Attributes:
      name: The study's name.
      title: The paper's title.
      source: Author and year.
      tables: What it prints, beside what we compute.
      findings: What it says, beside what we find.
      pictures: What it draws, drawn from our figures.
      notes: How this run differs from the paper's.
      is_confidential: Whether it speaks of records that somebody gave.
    """

    name: str
    title: str
    source: str
    tables: tuple[PrintedTable, ...]
    findings: tuple[Finding, ...] = ()
    pictures: tuple[Picture, ...] = ()
    notes: tuple[str, ...] = ()
    is_confidential: bool = False
    seconds: float = field(default=0.0, compare=False)

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
        unmet = [f.text for f in self.findings if f.is_judged and not f.holds]
        return wrong + [f"not borne out: {text}" for text in unmet]

    @property
    def summary(self) -> str:
        """How many figures agree, in one sentence."""
        verdicts = [figure.verdict for figure in self.figures]
        count = {verdict: verdicts.count(verdict) for verdict in Verdict}
        other = count[Verdict.other_data]
        held = sum(finding.holds for finding in self.findings)
        return (
            f"{len(verdicts)} printed figures: {count[Verdict.agrees]} agree, "
            f"{count[Verdict.explained]} differ for a known reason, "
            f"{count[Verdict.outside]} lie outside their tolerance"
            f"{f', {other} rest on other data' if other else ''}. "
            f"{held} of {len(self.findings)} findings are borne out."
        )


def as_printed(text: str) -> float:
    """Half a unit of the last printed digit; whole numbers are exact.

    >>> [f"{as_printed(text):.0e}" for text in ("0.1192", "3.46E-05", "17")]
    ['5e-05', '5e-08', '1e-09']
    """
    exponent = _exponent(text)
    return _WHOLE if exponent >= 0 else 0.5 * 10.0**exponent * (1 + _TIE)


def _exponent(text: str) -> int:
    """Power of ten of the last printed digit."""
    exponent = Decimal(text).as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


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
    known: Mapping[tuple[str, str], Known] | None = None,
) -> tuple[Figure, ...]:
    """Figures that agree when they round to the printed digits; empty texts print nothing."""
    return tuple(
        Figure(
            row,
            column,
            text,
            computed(row, column),
            as_printed(text),
            (known or {}).get((row, column)),
        )
        for row, texts in printed.items()
        for column, text in zip(columns, texts, strict=True)
        if text
    )


def simulated(values: Iterable[float]) -> tuple[float, float]:
    """Mean of a simulation and three standard errors of a difference of two such means."""
    listed = list(values)
    n = len(listed)
    mean = math.fsum(listed) / n
    variance = math.fsum((v - mean) ** 2 for v in listed) / max(n - 1, 1)
    return mean, _SPREAD * math.sqrt(2 * variance / n)
