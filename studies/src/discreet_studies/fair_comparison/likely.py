"""The table that makes the published values most likely, beside two fits by least squares.

The paper fits perturbed tables by least squares. These checks are our own: the law of the cell key
method is public, so that a reader can also look for the most likely table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Array, Real
from discreet.progress import report
from discreet_studies.chance import orders
from discreet_studies.fair_comparison.example import PartyTable, cell_key, utility
from discreet_studies.model import Finding, own

FITTERS = ("least-squares", "non-negative", "noise-likelihood")
RELEASES = 60
"""Releases at most: a most likely table takes up to half a second."""
_ROUNDING = 1e-9
_PROVEN = 1e-6


@dataclass(frozen=True, eq=False)
class FitResults:
    """One value for each release.

    Attributes:
      deviations: Mean absolute deviation of the fitted cells from the truth, by fitter, and of the
        published ones.
      utilities: Hellinger utility, of fits without negative cells.
      likelihoods: Log-likelihood of the fit that has the largest, as computed here.
      of_the_truth: Log-likelihood of the true table.
      gaps: Distance of the log-likelihood from the bound that the fit carries.
    """

    deviations: dict[str, Real]
    utilities: dict[str, Real]
    likelihoods: Real
    of_the_truth: Real
    gaps: Real


def fit_releases(example: PartyTable, replicates: int, seed: int) -> FitResults:
    """Releases of the cell key method, each fitted in three ways."""
    truth, releases = example.table.z, min(replicates, RELEASES)
    deviations: dict[str, list[float]] = {name: [] for name in ("published", *FITTERS)}
    utilities: dict[str, list[float]] = {name: [] for name in FITTERS[1:]}
    values: list[tuple[float, float, float]] = []
    for done in range(releases):
        released = example.table.simulate(cell_key(), seed=RELEASES * seed + done)
        deviations["published"].append(float(np.abs(released.z - truth).mean()))
        for name in FITTERS:
            fitted = released.fit(name)
            deviations[name].append(float(np.abs(fitted.z - truth).mean()))
            if name in utilities:
                utilities[name].append(utility(example.table, fitted))
        notes = fitted.fit_result.notes
        values.append(
            (
                log_likelihood(released.z, fitted.z),
                log_likelihood(released.z, truth),
                float(notes["bound"]) - float(notes["log_likelihood"]),
            )
        )
        report("fitting releases", (done + 1) / releases)
    return FitResults(_arrays(deviations), _arrays(utilities), *np.array(values).T)


def _arrays(lists: dict[str, list[float]]) -> dict[str, Real]:
    return {name: np.array(values) for name, values in lists.items()}


def log_likelihood(released: Array, table: Array) -> float:
    """Logarithm of the probability of a release, if the table were true: cell by cell."""
    matrix, reach = cell_key().matrix, cell_key().matrix.max_move
    total = 0.0
    for value, count in zip(released, np.rint(table).astype(int), strict=True):
        move = int(value) - int(count)
        row = matrix.probabilities(int(count))
        chance = float(row[move + reach]) if abs(move) <= reach else 0.0
        total += math.log(chance) if chance > 0 else -math.inf
    return total


def fit_findings(found: FitResults) -> Iterator[Finding]:
    """The most likely table is most likely; how near it is to the truth is another question."""
    yield _is_most_likely(found)
    yield _is_nearer(found)


def _is_most_likely(found: FitResults) -> Finding:
    more = found.likelihoods - found.of_the_truth
    return own(
        "No table is more likely than the one that a fit by the law of the noise finds: the true "
        "one is not, and the fit's bound leaves no room for another.",
        bool(more.min() >= -_ROUNDING) and bool(np.abs(found.gaps).max() < _PROVEN),
        f"In {len(more)} releases its log-likelihood exceeds that of the true table by "
        f"{more.min():.2f} to {more.max():.2f}; largest distance from the bound "
        f"{np.abs(found.gaps).max():.0e}.",
    )


def _is_nearer(found: FitResults) -> Finding:
    """Not judged: where noise is close to normal, neither fit needs to be nearer."""
    least, bounded, likely = (found.deviations[name] for name in FITTERS)
    holds, shown = orders([(likely, least), (likely, bounded)])
    means = ", ".join(f"{name} {values.mean():.3f}" for name, values in found.deviations.items())
    utilities = ", ".join(f"{name} {values.mean():.4f}" for name, values in found.utilities.items())
    return own(
        "The most likely table is nearer to the truth than fits by least squares.",
        holds,
        f"Mean absolute deviation of published cells in {len(likely)} releases: {means}; {shown}. "
        f"Hellinger utility: {utilities}.",
        is_judged=False,
    )
