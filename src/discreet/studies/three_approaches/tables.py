"""Tables 1 to 5, printed beside computed."""

from __future__ import annotations

import math
from collections.abc import Iterator

from discreet.noise import discrete_laplace, drop_add, laplace_law, large_table, pram, small_table
from discreet.noise.matrix import TransitionMatrix
from discreet.studies.model import Figure, Known, PrintedTable, as_printed, by_row, grid, simulated
from discreet.studies.three_approaches import printed
from discreet.studies.three_approaches.simulation import (
    CAP,
    EPSILON,
    REPLICATES,
    Real,
    Simulation,
)

METHODS = ("DP", "PRAM", "Q")
RELATIVE = 0.05
RISK_TOLERANCE = 0.001
SPREAD_TOLERANCE = 0.1
EPSILON_TOLERANCE = 1e-4  # the cut at the cap moves it by 5e-6
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
        PrintedTable(
            "Table 2",
            "Post-randomisation of counts below 7: true count in the row, published in the column",
            _matrix(printed.SMALL, small),
            _TO_FIVE,
        ),
        PrintedTable(
            "Table 3",
            "Post-randomisation of large counts: residues modulo 15",
            _matrix(printed.LARGE, large),
            _TO_FIVE,
        ),
    )


_TO_FIVE = "Figures agree within one unit of the last printed digit."


def _matrix(text: str, matrix: Real) -> tuple[Figure, ...]:
    columns = [str(j) for j in range(len(matrix))]
    found = grid(by_row(text), columns, lambda i, j: float(matrix[int(i), int(j)]))
    return tuple(
        Figure(f.row, f.column, f.printed, f.computed, 2 * as_printed(f.printed)) for f in found
    )


def risk_table(simulations: dict[str, Simulation]) -> PrintedTable:
    """Table 4: what the mechanisms promise, how many cells move, and the risk measure."""
    figures = [
        *_parameters(),
        *_changed(simulations),
        *_risk(simulations),
    ]
    agreement = (
        "ε agrees within 0.0001 and δ when it rounds to the printed digits; percentages within "
        "5 % and risks within 0.001, plus three standard errors of the difference of two such "
        "simulations."
    )
    return PrintedTable("Table 4", "Risk of the weighted tables", tuple(figures), agreement)


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


def _changed(simulations: dict[str, Simulation]) -> Iterator[Figure]:
    for kind, texts in printed.CHANGED.items():
        for name, text in zip(METHODS, texts, strict=True):
            mean, spread = simulated(simulations[kind](name, "changed"))
            tolerance = RELATIVE * float(text) + spread
            yield Figure(f"percent perturbed, {kind}", name, text, mean, tolerance)


def _risk(simulations: dict[str, Simulation]) -> Iterator[Figure]:
    for kind, texts in printed.RISK.items():
        for name, text in zip(METHODS, texts, strict=True):
            mean, spread = simulated(simulations[kind](f"{name} Avg", "risk"))
            tolerance = RISK_TOLERANCE + spread
            is_misprint = (kind, name) == ("independent", "Q")
            known = Known(0.9754, tolerance, _MISPRINT) if is_misprint else None
            yield Figure(f"RM, {kind}", name, text, mean, tolerance, known)


def utility_table(simulations: dict[str, Simulation]) -> PrintedTable:
    """Table 5: totals, their standard errors, and distances."""
    figures = [
        figure
        for kind, rows in printed.TOTALS.items()
        for name, texts in rows.items()
        for figure in _utility_row(kind, name, texts, simulations[kind])
    ]
    agreement = (
        "Means agree within three standard errors of their difference, standard errors within "
        "10 % and distances within 5 %, plus three standard errors of the difference of two such "
        "simulations."
    )
    caption = "Totals and distances of sample and weighted counts"
    return PrintedTable("Table 5", caption, tuple(figures), agreement)


def _utility_row(
    kind: str, name: str, texts: tuple[str, ...], found: Simulation
) -> Iterator[Figure]:
    row = f"{kind}, {name}"
    mean, error, difference, distance = texts
    total, spread = simulated(found(name, "total"))
    own = float(found(name, "total").std(ddof=1)) / math.sqrt(REPLICATES)
    both = max(spread, 3 * math.hypot(float(error), own))
    yield Figure(row, "mean", mean, total, both)
    yield Figure(row, "standard error", error, own, _of_spread(float(error), found, name))
    for column, measure, text in (
        ("percent difference", "difference", difference),
        ("Hellinger distance", "distance", distance),
    ):
        if text:
            value, spread = simulated(found(name, measure))
            yield Figure(row, column, text, value, RELATIVE * float(text) + spread)


def _of_spread(error: float, found: Simulation, name: str) -> float:
    """A standard error is itself estimated; fewer replications estimate it worse."""
    n = len(found(name, "total"))
    return error * (SPREAD_TOLERANCE + 3 * math.sqrt(0.5 / n + 0.5 / REPLICATES))
