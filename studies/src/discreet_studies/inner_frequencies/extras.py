"""What section 5 proposes without figures, on the nine cells of the paper: our own checks.

Decimals that are cut off and spread by a multinomial draw, and margins chosen in a traditional
manner.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from discreet.arrays import Real
from discreet.assessment import select_margins
from discreet.facade.release import Trial
from discreet.facade.table import Table
from discreet.tables.statement import Statement
from discreet_studies.chance import quantile
from discreet_studies.inner_frequencies.tables import COLUMNS, INNER, ROWS, small_fit
from discreet_studies.model import Finding, own

DRAWS = 400
ROUNDINGS = ("multinomial", "unbiased")
_WHOLE = 1e-6
PENALTIES = {"aic": 2.0, "bic": math.log(INNER.sum())}
"""What a criterion adds to the deviance for each free parameter."""


def extra_findings(seed: int) -> Iterator[Finding]:
    """Rounding and choice of margins."""
    yield rounding_finding(draw_roundings(seed))
    yield margins_finding()


def draw_roundings(seed: int) -> dict[str, Real]:
    """The log-linear fit of Table 4, rounded many times: a row for each draw."""
    design, fit = small_fit()
    fitted = Trial(design, fit.z, Statement(), y=fit.y)
    first = DRAWS * seed
    return {
        name: np.array([fitted.round(name, seed=first + k).y for k in range(DRAWS)], dtype=float)
        for name in ROUNDINGS
    }


def rounding_finding(drawn: dict[str, Real]) -> Finding:
    """Means of cells beside the fit, and what becomes of the total."""
    y = small_fit()[1].y
    steps = {name: _largest_step(cells, y) for name, cells in drawn.items()}
    off = {name: np.abs(cells.sum(axis=1) - y.sum()) for name, cells in drawn.items()}
    variances = {name: float(cells.var(axis=0, ddof=1).mean()) for name, cells in drawn.items()}
    multinomial, unbiased = ROUNDINGS
    is_fair = max(steps.values()) <= quantile(DRAWS)
    keeps = off[multinomial].max() < _WHOLE < off[unbiased].max()
    return own(
        "Decimals of a fit that are cut off and spread by a multinomial draw leave cells unbiased "
        "and keep a whole total; rounding cells one by one leaves them unbiased, varies less, and "
        "does not keep it.",
        bool(is_fair and keeps and variances[unbiased] < variances[multinomial]),
        f"In {DRAWS} draws of Table 4: "
        + "; ".join(
            f"{name}: means within {steps[name]:.1f} standard errors of the fit, mean variance of "
            f"cells {variances[name]:.3f}, total off by up to {off[name].max():.2g}"
            for name in drawn
        )
        + ".",
    )


def _largest_step(cells: Real, y: Real) -> float:
    """Largest distance of a cell's mean from its fit, in standard errors."""
    error = cells.std(axis=0, ddof=1) / math.sqrt(len(cells))
    return float((np.abs(cells.mean(axis=0) - y) / np.where(error > 0, error, np.inf)).max())


def margins_finding() -> Finding:
    """The path of each criterion beside its definition, for the two models of two variables."""
    table = Table.from_inner(small_fit("row*col")[0], INNER.astype(np.int64))
    chosen = {by: select_margins(table, by=by).best for by in PENALTIES}
    deviance, parameters = independence(INNER.reshape(len(ROWS), len(COLUMNS)))
    expected = {
        by: (("row", "col"),) if deviance > penalty * parameters else (("row",), ("col",))
        for by, penalty in PENALTIES.items()
    }
    return own(
        "Chosen step by step, AIC takes the margin of both variables and BIC the totals alone: "
        "the association is as weak as that.",
        chosen == expected and chosen["aic"] != chosen["bic"],
        f"The deviance of independence is {deviance:.2f}; {parameters} parameters cost "
        + ", ".join(
            f"{penalty * parameters:.2f} by {by.upper()}, which takes {_margins(chosen[by])}"
            for by, penalty in PENALTIES.items()
        )
        + ".",
    )


def independence(y: Real) -> tuple[float, int]:
    """Deviance of the model without association, and the parameters that it lacks."""
    expected = y.sum(axis=1, keepdims=True) * y.sum(axis=0, keepdims=True) / y.sum()
    return float(2 * (y * np.log(y / expected)).sum()), (y.shape[0] - 1) * (y.shape[1] - 1)


def _margins(best: tuple[tuple[str, ...], ...]) -> str:
    return " + ".join("*".join(margin) for margin in best)
