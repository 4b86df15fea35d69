r"""The guarantee of a differentially private release, in numbers and in sentences.

Adding or removing one unit changes the perturbed cells by a vector :math:`x \ge 0` with
:math:`\|x\|_1 \le \Delta_1`. Replacing it changes them by :math:`x' - x`, with
:math:`\|x' - x\|_1 \le 2\Delta_1` and :math:`\|x' - x\|_2^2 \le 2\Delta_2^2`: ε becomes 2ε, ρ
becomes 2ρ, and (ε, δ) becomes (2ε, (1 + e^ε)δ).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from discreet.accounting import rho_to_epsilon
from discreet.errors import ParameterError, positive, whole
from discreet.protect.budget import Budget, GaussianShare, LaplaceShare, Share, Unit
from discreet.protect.sentences import limit, process
from discreet.tables.statement import PrivacyStatement, Sentence
from discreet.tables.truth import TrueTable

# The largest δ accepted where the population is not given: a tenth of one over 10⁸ people, more
# than most countries have.
SMALLEST_DELTA = 1e-9


def laplace_privacy(shares: Sequence[LaplaceShare], cap: int | None, unit: str) -> PrivacyStatement:
    """The guarantee of Laplace noise on these shares of the budget."""
    epsilon = math.fsum(share.budget for share in shares)
    delta = min(1.0, math.fsum(share.delta(cap) for share in shares))
    return PrivacyStatement(
        epsilon,
        delta,
        2 * epsilon,
        min(1.0, (1 + math.exp(min(epsilon, 700.0))) * delta),
        sum(share.sensitivity for share in shares),
        unit,
    )


def gaussian_privacy(shares: Sequence[GaussianShare], delta: float, unit: str) -> PrivacyStatement:
    """The guarantee of Gaussian noise on these shares of the budget, at a chosen δ."""
    rho = math.fsum(share.budget for share in shares)
    return PrivacyStatement(
        rho_to_epsilon(rho, delta),
        delta,
        rho_to_epsilon(2 * rho, delta),
        delta,
        sum(share.sensitivity for share in shares),
        unit,
        rho,
    )


def given_known(privacy: PrivacyStatement) -> PrivacyStatement:
    """The guarantee of a release in which some margins have no noise.

    Adding or removing a unit changes a known margin, so only a replacement is left to hide.
    """
    return replace(
        privacy,
        epsilon=privacy.epsilon_replace,
        delta=privacy.delta_replace,
        unit=f"{privacy.unit} replaced by another that leaves the known margins as they are",
        rho=None if privacy.rho is None else 2 * privacy.rho,
    )


def largest_delta(population: int | None, accepted: float | None) -> float:
    """The largest δ that a release may have: a tenth of 1/population, or what is accepted."""
    if accepted is not None:
        return positive("accept_delta", accepted)
    if population is None:
        return SMALLEST_DELTA
    return 1 / (10 * whole("population", population, 1))


def check_delta(delta: float, largest: float, needed: Callable[[], int]) -> None:
    """Refuse a δ that is too large to mean anything, and name the smallest cap that will do."""
    if delta <= largest:
        return
    raise ParameterError(
        f"this cap gives δ = {delta:.3g}, and at most {largest:.3g} is accepted: with probability "
        f"δ an outcome betrays a unit for certain. Use cap={needed()} or more, name the size of "
        "the population (population=), or accept it knowingly (accept_delta=)."
    )


def smallest_cap(shares: Sequence[LaplaceShare], largest: float) -> int:
    """The smallest cap whose δ is small enough."""

    def delta(cap: int) -> float:
        return math.fsum(share.delta(cap) for share in shares)

    high = 1  # δ falls with the cap, so doubling and halving find the smallest one
    while delta(high) > largest:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if delta(middle) <= largest else (middle, high)
    return high


def unit_of(table: TrueTable) -> Unit:
    """What one unit of protection can change in this table."""
    bounds = table.data_set.bounds
    name = "record" if bounds.person is None else f"person ({bounds.person})"
    if table.unit != "weight":
        return Unit(1, bounds.max_records, name)
    if bounds.weight is None:
        raise ParameterError(
            "the weight of one record is not bounded, so no noise hides it. Give the records a "
            "bound that does not depend on them, and tabulate again: "
            "`people.with_roles(weight='w', weight_bound=200)`."
        )
    # weighted counts are rounded before they get noise, and rounding can add one step
    return Unit(math.floor(bounds.weight) + 1, bounds.max_records, name)


def require_declared(table: TrueTable) -> None:
    """Refuse variables whose codes were found in the records: a new label betrays its record."""
    found = [axis.name for axis in table.design.axes if not axis.declared]
    if found:
        named = ", ".join(map(repr, found))
        raise ParameterError(
            f"the codes of {named} were found in the records, so a single record could add a "
            "label to the table, and no noise hides that. Declare the codes: draft a list with "
            "`discreet codes people.csv --out codes.toml`, review it, and open the records with "
            "codes='codes.toml' (a table of counts: `Table.from_counts(..., declared=True)`)."
        )


def guarantee(privacy: PrivacyStatement, budget: Budget, unit: Unit) -> list[Sentence]:
    """What the numbers mean, under the unit they hold for."""
    unit_name, delta, factor = privacy.unit, privacy.delta, _factor(privacy.epsilon)
    swapped, swapped_delta = privacy.epsilon_replace, privacy.delta_replace
    if budget.known:
        named = ", ".join(str(m) for m in budget.parameters()["known"])
        said = [
            process(
                "private-known",
                f"These margins are public knowledge and published without noise: {named} (1 is "
                f"the total). Differential privacy with ε = {swapped:.6g}{_delta(swapped_delta)} "
                f"holds for one {unit_name}; for one added or removed there is no guarantee.",
                "Random noise was added to the figures to protect single persons, except to totals "
                "that are public anyway.",
            )
        ]
    else:
        said = [
            process(
                "private",
                f"Differential privacy with ε = {privacy.epsilon:.6g}{_delta(delta)} for one "
                f"{unit_name} added or removed: no outcome is more than e^ε = {factor} times as "
                f"likely with the {unit_name} as without{_except(delta)}.",
                "Random noise was added to every figure to protect single persons.",
            ),
            process(
                "private-replace",
                f"For one {unit_name} replaced by another, such as a person recorded as female or "
                f"male, ε is {swapped:.6g}{_delta(swapped_delta)}: odds change by a factor of at "
                f"most {_factor(swapped)}{_except(swapped_delta)}.",
            ),
        ]
    if privacy.rho is not None:
        said.append(
            process(
                "concentrated",
                f"The release is ρ-zero-concentrated differentially private with ρ = "
                f"{privacy.rho:.6g}; ε is what this implies at δ = {privacy.delta:.3g}.",
            )
        )
    if unit.records > 1 or unit.name != "record":
        said.append(
            process(
                "bounded-unit",
                f"At most {unit.records:,} records of one {unit.name} were counted.",
            )
        )
    if privacy.rho is not None:
        together = "k² times ρ"
    else:
        together = "k times ε and a larger δ" if delta else "k times ε"
    return [
        *said,
        limit(
            "private-groups",
            "The guarantee is for one unit: what holds for many people, such as a share in a "
            "group, is meant to be seen, and k people together are protected by "
            f"{together}.",
        ),
    ]


def spent(shares: Sequence[Share], letter: str) -> list[Sentence]:
    """How the budget was shared out."""
    return [
        process(
            "spent",
            f"{len(share.cells):,} cells spent {letter} = {share.budget:.6g}: one unit changes "
            f"them by at most {share.sensitivity:,} in all.",
        )
        for share in shares
    ]


def _delta(delta: float) -> str:
    return f" and δ = {delta:.3g}" if delta else ""


def _except(delta: float) -> str:
    return f", but for outcomes of probability {delta:.3g} in all" if delta else ""


def _factor(epsilon: float) -> str:
    return f"{math.exp(epsilon):.4g}" if epsilon < 700 else "infinity"
