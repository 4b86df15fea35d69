"""Tables 2 to 10, and what varies over redrawn keys and roundings, printed beside computed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Array, Real, Whole
from discreet.assessment.risk.disclosure import (
    CERTAIN,
    DisclosureProbability,
    Guesses,
    Intruder,
    exact,
)
from discreet.facade.release import Trial
from discreet.randomness import stream
from discreet_studies.chance import share_limits
from discreet_studies.fair_comparison import printed
from discreet_studies.fair_comparison.example import (
    SENSITIVE,
    PartyTable,
    RedrawnFigures,
    inner,
    rounding,
    utility,
)
from discreet_studies.model import (
    STAR,
    Figure,
    Ground,
    Known,
    PrintedTable,
    as_printed,
    by_row,
    grid,
)

INTRUDERS: dict[str, Intruder] = {"Table 9": "outsider", "Table 10": "own"}
_TRIES = 40
_ROUNDED_TWICE = "the value is 0.945652; the paper prints 0.9456 here and 0.9457 a few lines below."
ENDS = (0.025, 0.975)
_PAPER_DRAWS = 1_000
_CERTAIN = 10**9  # "equally probable" is no share of draws but a law
_ROUNDING = 1e-9
_SAME = 1e-3
_SAME_DRAW = 1e-6


@dataclass(frozen=True, eq=False)
class Worked:
    """The worked example: Table 3 and Table 4 on their way to expected frequencies."""

    example: PartyTable
    rounded: Whole
    restored: Trial
    ckm: Trial
    scr: Trial

    @classmethod
    def of(cls, example: PartyTable, seed: int) -> Worked:
        """Restore Table 3, round Table 1, and fit both."""
        rounded = _rounded_as_printed(example, seed)
        restored = example.restore(example.read_published(printed.TABLE_3))
        scr = example.expect(example.release(example.design.aggregate(rounded)))
        return cls(example, rounded, restored, example.expect(restored), scr)

    def guesses(self, table: str, source: str) -> Guesses:
        """What is guessed from the truth and from one of the releases."""
        original = self.example.release(self.example.table.z, self.example.table.y)
        released = {"Original": original, "CKM": self.ckm, "SCR": self.scr}[source]
        measure = DisclosureProbability(sensitive=SENSITIVE, intruder=INTRUDERS[table])
        return measure.guesses(self.example.table, released)


def _rounded_as_printed(example: PartyTable, seed: int) -> Whole:
    """The first rounding that publishes Table 4; the last one tried where none does."""
    wanted = example.read_published(printed.TABLE_4)
    for attempt in range(_TRIES):
        rng = stream(seed, f"fair comparison, printed rounding {attempt}")
        found = rounding().inner(example.table, rng=rng)
        if np.array_equal(example.design.aggregate(found), wanted):
            break
    return found


def additivity_table(example: PartyTable) -> PrintedTable:
    """Section 2: Table 3 does not add up."""
    cell = example.by_layout(example.read_published(printed.TABLE_3))
    sums = {column: sum(cell("A", part) for part in parts) for column, parts in _SUMS.items()}
    figures = tuple(
        Figure("party A", column, text, sums[column], 0.0, ground=Ground.construction)
        for column, text in printed.SUMS.items()
    )
    caption = "Total of party A in Table 3, published and from its parts"
    return PrintedTable("Section 2", caption, figures, "Sums of printed figures.")


_SUMS = {
    "published": ["Total"],
    "from age": ["young", "middle", "old"],
    "from sex": ["male", "female"],
}


def aggregated_tables(worked: Worked) -> tuple[PrintedTable, ...]:
    """Tables 2, 4, 5 and 6."""
    example = worked.example
    z = example.design.aggregate(worked.rounded)
    return (
        _aggregate_table("Table 2", "Original aggregated frequencies", example, example.table.z),
        _aggregate_table("Table 4", "Small count rounded frequencies", example, z),
        _inner("Table 5", "Small count rounded inner frequencies", worked.rounded),
        _aggregate_table(
            "Table 6", "Additivity-restored cell key frequencies", example, worked.restored.z
        ),
    )


def inner_tables(worked: Worked) -> tuple[PrintedTable, ...]:
    """Tables 7 and 8: expected inner frequencies."""
    return (
        _inner("Table 7", "Expected inner frequencies, cell key method", worked.ckm.y),
        _inner("Table 8", "Expected inner frequencies, small count rounding", worked.scr.y),
    )


def _aggregate_table(title: str, caption: str, example: PartyTable, z: Array) -> PrintedTable:
    texts = by_row(_text(title))
    return PrintedTable(title, caption, grid(texts, printed.COLUMNS, example.by_layout(z)))


def _inner(title: str, caption: str, y: Array | None) -> PrintedTable:
    texts = by_row(_text(title))
    return PrintedTable(title, caption, grid(texts, printed.INNER_COLUMNS, inner(np.asarray(y))))


def probability_tables(worked: Worked) -> tuple[PrintedTable, ...]:
    """Tables 9 and 10: probabilities of disclosing party by guessing."""
    return (
        _probabilities("Table 9", "Probabilities of disclosing party", worked),
        _probabilities("Table 10", "The same, given that you know yourself", worked),
    )


def _probabilities(title: str, caption: str, worked: Worked) -> PrintedTable:
    figures: list[Figure] = []
    for source, texts in by_row(_text(title)).items():
        guesses = worked.guesses(title, source)
        columns = zip(
            printed.INNER_COLUMNS, texts, guesses.released.probability, guesses.agree, strict=True
        )
        figures += [
            Figure(source, column, text, float(p), as_printed(text), mark="" if agree else STAR)
            for column, text, p, agree in columns
        ]
    agreement = (
        "Figures agree when they round to the printed digits and the star is the same: it marks "
        "cells in which the wrong party is guessed."
    )
    return PrintedTable(title, caption, tuple(figures), agreement)


def _text(title: str) -> str:
    found: str = getattr(printed, title.upper().replace(" ", "_"))
    return found


def utility_table(worked: Worked) -> PrintedTable:
    """Section 5: utility of the worked example."""
    example, truth = worked.example, worked.example.table
    releases = {
        "SCR (Table 4)": example.release(example.design.aggregate(worked.rounded)),
        "CKM (Table 3)": example.release(example.read_published(printed.TABLE_3)),
        "CKM (Table 6)": worked.restored,
    }
    known = {"SCR (Table 4)": Known(0.945652, 5e-7, _ROUNDED_TWICE)}
    figures = tuple(
        Figure(
            row, "utility", text, utility(truth, releases[row]), as_printed(text), known.get(row)
        )
        for row, text in printed.UTILITY.items()
    )
    return PrintedTable("Section 5", "Hellinger utility of the worked example", figures)


def risk_table(worked: Worked) -> PrintedTable:
    """Section 6: exact disclosures of the worked example."""
    figures = []
    for (title, source), texts in printed.EXACT.items():
        counts = exact(worked.guesses(title, source), CERTAIN)
        values = (*map(float, counts), counts.f_score(0.5))
        figures += [
            Figure(f"{title}, {source}", column, text, value, as_printed(text))
            for column, text, value in zip(("a", "b", "c", "risk"), texts, values, strict=True)
        ]
    return PrintedTable("Section 6", "Exact disclosures and risk", tuple(figures))


def interval_table(keys: RedrawnFigures) -> PrintedTable:
    """Section 5: 95 % intervals of the utility."""
    drawn = {"as published": keys.published, "additivity restored": keys.restored}
    figures = tuple(
        _end(row, column, text, drawn[row], end)
        for row, texts in printed.INTERVALS.items()
        for column, end, text in zip(("lower end", "upper end"), ENDS, texts, strict=True)
    )
    fewest, most = share_limits(ENDS[0], len(keys.published), _PAPER_DRAWS)
    return PrintedTable(
        "Section 5, redrawn keys",
        "95 % intervals of the cell key method's utility",
        figures,
        f"An end agrees when {fewest} to {most} of {len(keys.published):,} draws lie beyond it, "
        f"where 2.5 % are expected and {_PAPER_DRAWS:,} draws of the paper are assumed: it does "
        "not say how many keys it drew. The tolerance is the distance from our end to the draw at "
        "that limit, or to 0 or 1 where no draw sets a limit.",
    )


def _end(row: str, column: str, text: str, drawn: Real, end: float) -> Figure:
    """An end of an interval, with as many draws below it as chance allows."""
    values, ours = np.sort(drawn), float(np.quantile(drawn, end))
    fewest, most = share_limits(end, len(values), _PAPER_DRAWS)
    if float(text) < ours:
        limit = float(values[fewest - 1]) if fewest else 0.0
    else:
        limit = float(values[most]) if most < len(values) else 1.0
    return Figure(row, column, text, ours, abs(ours - limit) + as_printed(text))


def share_table(keys: RedrawnFigures) -> PrintedTable:
    """Section 6: how often each risk occurs."""
    figures = tuple(
        _share(f"{title}, risk {risk}", text, keys.risks(title), float(risk))
        for title, shares in printed.SHARES.items()
        for risk, text in shares.items()
    )
    return PrintedTable(
        "Section 6, redrawn keys",
        "Percent of draws of the cell key method with each risk",
        figures,
        f"Shares agree within what chance does to our draws and to {_PAPER_DRAWS:,}, plus the "
        "rounding; the paper does not say how many keys it drew.",
    )


def _share(row: str, text: str, risks: Real, risk: float) -> Figure:
    found = float(np.mean(np.abs(risks - risk) < _SAME))
    return _percent(row, text, found, len(risks), _PAPER_DRAWS, 0.005)


def _percent(
    row: str, text: str, found: float, draws: int, paper: int, rounding: float = 0.0
) -> Figure:
    """A share of draws; the tolerance is that on its own side of the printed one."""
    fewest, most = share_limits(float(text) / 100, draws, paper, rounding)
    limit = fewest if 100 * found < float(text) else most
    tolerance = abs(100 * limit / draws - float(text)) + _ROUNDING
    return Figure(row, "percent", text, 100 * found, tolerance)


def rounding_table(roundings: RedrawnFigures) -> PrintedTable:
    """Sections 5 and 6: the two equally probable outcomes of small count rounding."""
    return PrintedTable(
        "Sections 5 and 6, redrawn roundings",
        "The two outcomes of small count rounding, and the percent of draws with each",
        tuple(_outcomes(roundings)),
        "Values agree when they round to the printed digits; shares within what chance does.",
    )


def _outcomes(roundings: RedrawnFigures) -> Iterator[Figure]:
    rows = {"utility": (roundings.published, printed.ROUNDED_UTILITIES)}
    for title, texts in printed.ROUNDED_RISKS.items():
        rows[f"risk, {title}"] = (roundings.risks(title), texts)
    for name, (drawn, texts) in rows.items():
        for text in texts:
            nearest = float(drawn[np.argmin(np.abs(drawn - float(text)))])
            share = float(np.mean(np.abs(drawn - nearest) < _SAME_DRAW))
            yield Figure(f"{name} {text}", "value", text, nearest, as_printed(text))
            yield _percent(f"{name} {text}", "50", share, len(drawn), _CERTAIN)
