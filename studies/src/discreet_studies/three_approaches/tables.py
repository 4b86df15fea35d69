"""Tables 1 to 5, printed beside computed."""

from __future__ import annotations

import math
from collections.abc import Iterator

from discreet.arrays import Real
from discreet.noise import discrete_laplace, drop_add, laplace_law, large_table, pram, small_table
from discreet.noise.matrix import TransitionMatrix
from discreet_studies.chance import mean_and_spread, quantile
from discreet_studies.model import (
    Figure,
    Ground,
    Known,
    PrintedTable,
    as_printed,
    by_row,
    grid,
    with_forced_zeros,
)
from discreet_studies.three_approaches import printed
from discreet_studies.three_approaches.simulation import (
    CAP,
    EPSILON,
    METHODS,
    REPLICATES,
    SIDE,
    WEIGHTS,
    Simulation,
)

Totals = dict[str, dict[str, Real]]

EPSILON_TOLERANCE = 1e-4  # the cut at the cap moves it by 5e-6
_ERRORS = 2.5
"""Standard errors of the paper's 500 tables that its totals may lie from their expectation."""
_ERROR_OF_ERRORS = 0.04
"""Relative error of a standard error estimated from 500 skewed totals."""
_UNEVEN = 0.03
"""Share by which measures may differ, because effects a little smaller fit distances better."""
_AVERAGE = 0.01
"""Share by which the paper's overall average weight may differ: it is not said how it is taken."""
_MISPRINT = (
    "0.9849 is far from the 0.9751 of the dependent tables, and the two kinds of table have "
    "the same noise: a misprint for about 0.975."
)
_PARAMETERS = {
    ("ε", "PRAM"): Known(
        2.1454,
        1e-4,
        "the mass folded onto neighbours at the ends of Table 2 makes the largest ratio between "
        "counts 1 and 2 a little larger than that of the law it was made from.",
    ),
    ("ε", "Q"): Known(
        math.log(3),
        1e-9,
        "0.01 cannot be derived: the ratio is one between counts 1 and 2 where both can give an "
        "output (ε = 0), and three between 0 and 1, since zeros stay.",
    ),
    ("δ", "PRAM"): Known(
        0.8808,
        1e-4,
        "0.1192 is the probability that 1 becomes 0; what matters is the mass on outputs that a "
        "true 0 cannot give, which is all the rest, since zeros stay.",
    ),
    ("δ", "Q"): Known(
        2 / 3,
        1e-9,
        "1/3 is the figure for counts 1 and 2; a true 0 stays, so from 1 two outputs of three "
        "tell that the count was not 0.",
    ),
}


def law_tables() -> tuple[PrintedTable, ...]:
    """Tables 1 to 3: the mechanisms, which need no simulation."""
    law = laplace_law(EPSILON, CAP)
    small, large = small_table(EPSILON, CAP), large_table(EPSILON, CAP)
    moves = {move: (text,) for move, text in printed.MOVES.items()}
    return (
        PrintedTable(
            "Table 1",
            "Differentially private mechanism, ε = 2, Δu = 1, cap ±7",
            grid(moves, ["probability"], lambda move, _: float(law[int(move) + CAP])),
        ),
        _matrix(
            "Table 2",
            "Post-randomisation of counts below 7: true count in the row, published in the column",
            printed.SMALL,
            small,
        ),
        _matrix(
            "Table 3",
            "Post-randomisation of large counts: residues modulo 15",
            printed.LARGE,
            large,
        ),
    )


def _matrix(title: str, caption: str, text: str, matrix: Real) -> PrintedTable:
    columns = [str(j) for j in range(len(matrix))]
    found = grid(
        by_row(text),
        columns,
        lambda i, j: float(matrix[int(i), int(j)]),
        lambda text: 2 * as_printed(text),
    )
    agreement = (
        "Figures agree within one unit of the last printed digit; zeros lie beyond the largest "
        "move and are true by construction."
    )
    return PrintedTable(title, caption, with_forced_zeros(found), agreement)


def section_table(totals: Totals) -> PrintedTable:
    """Figures of sections 3.2 to 3.4, from the laws and from the totals of many tables."""
    people, sample = (totals["dependent"][name] for name in ("Original weighted", "Original"))
    low, high = WEIGHTS
    mean = (low + high) / 2
    known = Known(float(laplace_law(EPSILON, CAP)[-1]), 1e-9, _FIVE_STEPS)
    figures = [
        _section("δ, PRAM, 1 to 0", float(small_table(EPSILON, CAP)[1, 0])),
        _section("δ, PRAM, 1 to 8", float(laplace_law(EPSILON, CAP)[-1]), known=known),
        _section("δ, Q, q = 7", float(drop_add().probabilities(700)[-1])),
        _section("δ, Q, q = 1", float(drop_add().probabilities(1).max())),
        _section("people", people.mean(), _mean_tolerance(people)),
        _section("sample", sample.mean(), _mean_tolerance(sample)),
        _section("sample in a cell", sample.mean() / SIDE**2, 0.5 + _mean_tolerance(sample) / 49),
        _section("mean weight", mean),
        _section("percent relative variance of weights", 100 * (high - low) ** 2 / 12 / mean**2),
    ]
    agreement = (
        "Probabilities and weights agree when they round to the printed digits; mean sizes of "
        f"{len(people):,} simulated tables within {_ERRORS} standard errors of the paper's 500 "
        "tables, and what chance does to ours."
    )
    return PrintedTable("Sections 3.2 to 3.4", "Figures of the text", tuple(figures), agreement)


def _mean_tolerance(totals: Real) -> float:
    """What a mean of the paper's tables may lie from a mean of many of ours."""
    own = quantile(len(totals)) / math.sqrt(len(totals))
    return _sd(totals) * (_ERRORS / math.sqrt(REPLICATES) + own)


_FIVE_STEPS = (
    "0.000034576 is the probability of a move by 5, from 1 to 6, where Table 2 ends; a move by 7 "
    "has 0.000000633."
)


def _section(
    row: str, value: float, tolerance: float | None = None, known: Known | None = None
) -> Figure:
    text = printed.SECTIONS[row]
    return Figure(row, "figure", text, value, tolerance or as_printed(text), known)


def risk_table(simulations: dict[str, Simulation]) -> PrintedTable:
    """Table 4: what the mechanisms promise, how many cells move, and the risk measure."""
    figures = [
        *_parameters(),
        *_change_figures(simulations),
        *_risk(simulations),
    ]
    agreement = (
        "ε agrees within 0.0001 and δ when it rounds to the printed digits; expected percentages "
        "within three standard errors of the paper's, risks "
        f"within what chance does to this run and to the paper's 500 tables. {_CHANCE}"
    )
    return PrintedTable("Table 4", "Risk of the weighted tables", tuple(figures), agreement)


_CHANCE = "A figure that is right lies outside for one seed in a hundred thousand."


def _parameters() -> Iterator[Figure]:
    matrices = dict(
        zip(METHODS, (discrete_laplace(EPSILON, CAP), pram(EPSILON, CAP), drop_add()), strict=True)
    )
    found = {name: _at_one(matrix) for name, matrix in matrices.items()}
    for place, (symbol, texts) in enumerate(printed.PARAMETERS.items()):
        for name, text in zip(METHODS, texts, strict=True):
            known = _PARAMETERS.get((symbol, name))
            tolerance = max(as_printed(text), EPSILON_TOLERANCE if symbol == "ε" else 0)
            yield Figure(f"{symbol} at count 1", name, text, found[name][place], tolerance, known)


def _at_one(matrix: TransitionMatrix) -> tuple[float, float]:
    """Largest ε on common support and largest δ between count 1 and its neighbours."""
    pairs = [p for p in matrix.audit().neighbours if {p.first, p.second} in ({0, 1}, {1, 2})]
    return max(p.epsilon for p in pairs), max(p.delta for p in pairs if p.first == 1)


def _change_figures(simulations: dict[str, Simulation]) -> Iterator[Figure]:
    """Our side is the expectation given the counts, so that chance moves the paper's side alone."""
    for kind, texts in printed.CHANGED.items():
        for name, text in zip(METHODS, texts, strict=True):
            likely, seen = (simulations[kind](name, m) for m in ("likely", "changed"))
            own = quantile(len(seen)) * _sd(likely) / math.sqrt(len(seen))
            tolerance = as_printed(text) + own + 3 * _sd(seen) / math.sqrt(REPLICATES)
            yield Figure(f"percent perturbed, {kind}", name, text, likely.mean(), tolerance)


def _sd(values: Real) -> float:
    return float(values.std(ddof=1))


def _risk(simulations: dict[str, Simulation]) -> Iterator[Figure]:
    for kind, texts in printed.RISK.items():
        for name, text in zip(METHODS, texts, strict=True):
            mean, spread = mean_and_spread(simulations[kind](f"{name} Avg", "risk"), REPLICATES)
            tolerance = as_printed(text) + spread + _UNEVEN * (1 - float(text))
            is_misprint = (kind, name) == ("independent", "Q")
            known = Known(0.9754, tolerance, _MISPRINT) if is_misprint else None
            yield Figure(f"RM, {kind}", name, text, mean, tolerance, known)


def utility_table(simulations: dict[str, Simulation], totals: Totals) -> PrintedTable:
    """Table 5: totals, their standard errors, and distances, as simulated and anchored."""
    figures = [
        figure
        for kind in printed.TOTALS
        for figure in (
            *_originals(kind, totals[kind]),
            *_perturbation_figures(kind, simulations[kind]),
        )
    ]
    agreement = (
        "What is shown was simulated. Totals of true tables come from many tables, and agree "
        f"within {_ERRORS} standard errors of the paper's 500 and what chance does to ours. "
        "Everything else agrees within what chance does to this run and to the paper's; percent "
        f"differences and distances have {_UNEVEN:.0%} more, for tables that may be less uneven, "
        f"and {_AVERAGE:.0%} more where the average weight enters. {_CHANCE} Anchored columns are "
        "no simulated figures but a sharper comparison: our mean change is added to the printed "
        "mean of the true tables, and our ratio multiplies their printed standard error, or the "
        "printed measure of the sample counts."
    )
    caption = "Totals and distances of sample and weighted counts"
    columns = [name for column in COLUMNS for name in (column, f"{column}{ANCHORED}")]
    return PrintedTable("Table 5", caption, tuple(figures), agreement, tuple(columns))


COLUMNS = ("mean", "standard error", "percent difference", "Hellinger distance")
ANCHORED = ", anchored"


def _originals(kind: str, totals: dict[str, Real]) -> Iterator[Figure]:
    """Totals of many true tables."""
    for name, drawn in totals.items():
        mean, error, *_ = printed.TOTALS[kind][name]
        own = _sd(drawn) / math.sqrt(REPLICATES)
        yield Figure(f"{kind}, {name}", COLUMNS[0], mean, drawn.mean(), _mean_tolerance(drawn))
        tolerance = _error_tolerance(len(drawn), _ERRORS) * own
        yield Figure(f"{kind}, {name}", COLUMNS[1], error, own, tolerance)


def _error_tolerance(draws: int, errors: float) -> float:
    """Share by which a standard error of skewed totals may differ from the paper's."""
    return _ERROR_OF_ERRORS * (errors + quantile(draws) * math.sqrt(REPLICATES / draws))


def _perturbation_figures(kind: str, found: Simulation) -> Iterator[Figure]:
    for name, texts in printed.TOTALS[kind].items():
        if not texts[2]:
            true = name
            continue
        row, base, totals = f"{kind}, {name}", printed.TOTALS[kind][true], found(name, "total")
        mean, spread = mean_and_spread(totals, REPLICATES)
        yield Figure(row, COLUMNS[0], texts[0], mean, as_printed(texts[0]) + spread)
        yield _shift_mean(row, texts[0], base[0], totals - found(true, "total"))
        own, errors = _sd(totals) / math.sqrt(REPLICATES), quantile(len(totals))
        allowed = _error_tolerance(len(totals), errors) * max(own, float(texts[1]))
        yield Figure(row, COLUMNS[1], texts[1], own, allowed)
        yield _spread(row, texts[1], base[1], totals, found(true, "total"))
        sample = name.split()[0] if true != "Original" else ""
        for place, measure in ((2, "difference"), (3, "distance")):
            text, values = texts[place], found(name, measure)
            yield _measure(row, COLUMNS[place], text, values, _AVERAGE if sample else 0.0)
            if sample:
                of = printed.TOTALS[kind][sample][place]
                column = f"{COLUMNS[place]}{ANCHORED}"
                yield _scale_measure(row, column, text, of, values, found(sample, measure))


def _measure(row: str, column: str, text: str, values: Real, more: float) -> Figure:
    """A measure as simulated."""
    value, spread = mean_and_spread(values, REPLICATES)
    spread *= max(1.0, float(text) / value)  # it grows with the value
    tolerance = as_printed(text) + spread + (_UNEVEN + more) * float(text)
    return Figure(row, column, text, value, tolerance)


def _anchored(row: str, column: str, text: str, value: float, tolerance: float) -> Figure:
    return Figure(row, column, text, value, tolerance, ground=Ground.anchored)


def _shift_mean(row: str, text: str, base: str, changes: Real) -> Figure:
    """A mean: the printed one of the true tables plus our mean change."""
    change, spread = mean_and_spread(changes, REPLICATES)
    tolerance = as_printed(text) + as_printed(base) + spread
    return _anchored(row, f"{COLUMNS[0]}{ANCHORED}", text, float(base) + change, tolerance)


def _spread(row: str, text: str, base: str, totals: Real, true: Real) -> Figure:
    """A standard error: the printed one of the true tables times our ratio."""
    error = _sd(totals - true) / _sd(true) * math.sqrt(1 / len(true) + 1 / REPLICATES)
    tolerance = as_printed(text) + as_printed(base) + quantile(len(true)) * error * float(base)
    value = float(base) * _sd(totals) / _sd(true)
    return _anchored(row, f"{COLUMNS[1]}{ANCHORED}", text, value, tolerance)


def _scale_measure(row: str, column: str, text: str, base: str, values: Real, of: Real) -> Figure:
    """A measure of weighted counts: the printed one of the sample counts times our ratio."""
    ratio = float(values.mean() / of.mean())
    _, spread = mean_and_spread(values - ratio * of, REPLICATES)
    rounding = as_printed(text) + ratio * as_printed(base)
    tolerance = rounding + spread + _AVERAGE * float(text)
    return _anchored(row, column, text, float(base) * ratio, tolerance)
