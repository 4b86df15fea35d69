r"""The guarantee of a differentially private release, in numbers and in sentences.

Adding or removing one unit changes the perturbed cells by a vector :math:`x \ge 0` with
:math:`\|x\|_1 \le \Delta_1`. Replacing it changes them by :math:`x' - x`. Cells that hold every
record, and sums of known margins, then stay as they are, and a unit leaves one of the others
wherever it enters one: where it counts in :math:`r` of :math:`t` perturbed cells that hold some
records only, ε, δ and ρ are multiplied by :math:`2r/t`, which is at most 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from discreet.accounting import Cost, Relation, rho_to_epsilon
from discreet.arrays import Real
from discreet.errors import ParameterError, positive, whole
from discreet.protect.budget import Budget, GaussianShare, LaplaceShare, Share, Unit
from discreet.protect.sentences import limit, process
from discreet.tables.statement import PrivacyStatement, Sentence
from discreet.tables.truth import TrueTable

# The largest δ accepted where the population is not given: a tenth of one over 10⁸ people, more
# than most countries have.
SMALLEST_DELTA = 1e-9


def laplace_privacy(
    shares: Sequence[LaplaceShare], cap: int | None, unit: Unit
) -> PrivacyStatement:
    """The guarantee of Laplace noise on these shares of the budget."""
    return PrivacyStatement(
        math.fsum(share.budget for share in shares),
        min(1.0, math.fsum(share.delta(cap) for share in shares)),
        math.fsum(share.replaced_budget for share in shares),
        min(1.0, math.fsum(share.replaced_delta(cap) for share in shares)),
        sum(share.sensitivity for share in shares),
        unit.name,
        relation=_relation(unit).to_json(),
    )


def gaussian_privacy(shares: Sequence[GaussianShare], delta: float, unit: Unit) -> PrivacyStatement:
    """The guarantee of Gaussian noise on these shares of the budget, at a chosen δ."""
    rho = math.fsum(share.budget for share in shares)
    swapped = math.fsum(share.replaced_budget for share in shares)
    return PrivacyStatement(
        rho_to_epsilon(rho, delta),
        delta,
        rho_to_epsilon(swapped, delta),
        delta,
        sum(share.sensitivity for share in shares),
        unit.name,
        rho,
        swapped,
        _relation(unit).to_json(),
    )


def given_known(privacy: PrivacyStatement, known: Sequence[str]) -> PrivacyStatement:
    """The guarantee of a release in which some margins have no noise.

    Adding or removing a unit changes a known margin, so only a replacement is left to hide.
    """
    before = Relation.from_json(privacy.relation)
    return replace(
        privacy,
        epsilon=privacy.epsilon_replace,
        delta=privacy.delta_replace,
        unit=f"{privacy.unit} replaced by another that leaves the known margins as they are",
        rho=privacy.rho_replace,
        relation=replace(before, change="known", known=tuple(known)).to_json(),
    )


def cost_of(privacy: PrivacyStatement) -> Cost:
    """What a release costs, with the relation it is stated for."""
    relation = Relation.from_json(privacy.relation)

    def cost(epsilon: float, delta: float, rho: float | None, under: Relation) -> Cost:
        if rho is not None:
            return Cost(rho=rho, relation=under)
        return Cost(epsilon, delta, relation=under)

    stated = cost(privacy.epsilon, privacy.delta, privacy.rho, relation)
    if relation.change != "add-remove" or privacy.delta_replace >= 1:
        return stated
    swapped = privacy.epsilon_replace, privacy.delta_replace, privacy.rho_replace
    return replace(stated, replaced=cost(*swapped, replace(relation, change="replace")))


def _relation(unit: Unit) -> Relation:
    return Relation("add-remove", unit.name, unit.records, unit.weight)


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


def smallest_cap(shares: Sequence[LaplaceShare], largest: float, *, is_replaced: bool) -> int:
    """The smallest cap whose δ, for a unit added or for one replaced, is small enough."""

    def delta(cap: int) -> float:
        return math.fsum(s.replaced_delta(cap) if is_replaced else s.delta(cap) for s in shares)

    high = 1  # δ falls with the cap, so doubling and halving find the smallest one
    while delta(high) > largest:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if delta(middle) <= largest else (middle, high)
    return high


_FLOATING = 1e-6
"""Sums of weights are floating-point numbers; a bound this near to a whole step may reach it."""


def unit_of(table: TrueTable, grid: float | None = None) -> Unit:
    r"""What one unit of protection can change in this table, in steps of the grid.

    A weight of at most :math:`b` moves a sum that is rounded to steps of :math:`g` by at most
    :math:`\lceil b/g \rceil` of them, and by one more where :math:`b/g` is a whole number: sums of
    floating-point numbers may fall on either side of a half.
    """
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
    steps = math.floor(bounds.weight / (grid or 1.0) + _FLOATING) + 1
    return Unit(steps, bounds.max_records, name, bounds.weight)


def require_declared(table: TrueTable) -> None:
    """Refuse variables whose codes were found in the records: a new label betrays its record."""
    found = [axis.name for axis in table.design.axes if not axis.declared]
    if found:
        named = ", ".join(map(repr, found))
        raise ParameterError(
            f"the codes of {named} were found in the records, so a single record could add a "
            "label to the table, and no noise hides that. Declare the codes: draft a list with "
            "`discreet codes people.csv --out codes.toml`, review it, and open the records with "
            "codes='codes.toml'. Categories of a frame are no declaration, since they are often "
            "collected from the records; where they are the public list, say so with "
            "declared=['variable'] (`dc.open`, `Table.from_counts`)."
        )


def guarantee(privacy: PrivacyStatement, budget: Budget, unit: Unit) -> list[Sentence]:
    """What the numbers mean, under the unit they hold for.

    Pure noise and noise with a cap bound every outcome. Gaussian noise bounds sets of outcomes:
    the probability of the outcomes beyond e^ε can be larger than δ.
    """
    unit_name, delta = privacy.unit, privacy.delta
    swapped, swapped_delta = privacy.epsilon_replace, privacy.delta_replace
    is_gaussian = privacy.rho is not None
    if budget.known:
        named = ", ".join(str(m) for m in budget.parameters()["known"])
        said = [
            _private(
                "private-known",
                f"These margins are public knowledge and published without noise: {named} (1 is "
                f"the total). Differential privacy with ε = {swapped:.6g}{_delta(swapped_delta)} "
                f"holds for one {unit_name}: "
                f"{_bound(swapped, swapped_delta, is_gaussian, 'before', 'after')}; for one added "
                "or removed there is no guarantee.",
                "Random noise was added to the figures to protect single persons, except to totals "
                "that are public anyway.",
                (swapped, swapped_delta, is_gaussian),
            )
        ]
    else:
        said = [
            _private(
                "private",
                f"Differential privacy with ε = {privacy.epsilon:.6g}{_delta(delta)} for one "
                f"{unit_name} added or removed: "
                f"{_bound(privacy.epsilon, delta, is_gaussian, 'with it', 'without it')}.",
                "Random noise was added to every figure to protect single persons.",
                (privacy.epsilon, delta, is_gaussian),
            ),
            _private(
                "private-replace",
                f"For one {unit_name} replaced by another, such as a person recorded as female or "
                f"male, ε is {swapped:.6g}{_delta(swapped_delta)}: "
                f"{_bound(swapped, swapped_delta, is_gaussian, 'before', 'after')}.",
                "",
                (swapped, swapped_delta, is_gaussian),
            ),
        ]
    return [*said, *_of_the_unit(privacy, unit), _groups(privacy)]


def _of_the_unit(privacy: PrivacyStatement, unit: Unit) -> list[Sentence]:
    """ρ, where there is one, and what was done so that one unit changes little."""
    said = []
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
                "bounded-unit", f"At most {unit.records:,} records of one {unit.name} were counted."
            )
        )
    if unit.weight is not None:
        said.append(
            process(
                "bounded-weight",
                f"No record counts with a weight above {unit.weight:g}, so one record changes one "
                f"value by at most {unit.change:,} steps.",
            )
        )
    return said


def _groups(privacy: PrivacyStatement) -> Sentence:
    if privacy.rho is not None:
        together = "k² times ρ"
    else:
        together = "k times ε and a larger δ" if privacy.delta else "k times ε"
    return limit(
        "private-groups",
        "The guarantee is for one unit: what holds for many people, such as a share in a "
        f"group, is meant to be seen, and for k people together the bound is {together}.",
    )


LossLaw = tuple[Real, Real]
"""Privacy losses log(P/P') of the outcomes of a release, and their probabilities under P."""


def bounds_every_outcome(epsilon: float, delta: float, laws: Iterable[LossLaw]) -> bool:
    """Whether outcomes more than e^ε times as likely have probability δ at most, in every law."""
    return all(float(p[loss > epsilon + _SLACK].sum()) <= delta * (1 + _SLACK) for loss, p in laws)


def bounds_every_set(epsilon: float, delta: float, laws: Iterable[LossLaw]) -> bool:
    """Whether P(S) ≤ e^ε P'(S) + δ for every set S of outcomes, in every law."""
    return all(delta_at(epsilon + _SLACK, law) <= delta * (1 + _SLACK) for law in laws)


def delta_at(epsilon: float, law: LossLaw) -> float:
    r"""The smallest δ for this ε, :math:`\sum_o (P(o) - e^\varepsilon P'(o))_+`."""
    loss, p = law
    beyond = loss > epsilon
    return float((p[beyond] * -np.expm1(epsilon - loss[beyond])).sum())


_SLACK = 1e-9  # laws are floating-point numbers


def _private(kind: str, text: str, plain: str, bound: tuple[float, float, bool]) -> Sentence:
    """A sentence that exact laws of neighbours can refute: its predicate takes their losses."""
    epsilon, delta, is_gaussian = bound
    holds = bounds_every_set if is_gaussian else bounds_every_outcome
    return replace(process(kind, text, plain), holds=partial(holds, epsilon, delta))


def _bound(epsilon: float, delta: float, is_gaussian: bool, here: str, there: str) -> str:
    """What ε and δ say of outcomes, in both directions."""
    factor = _factor(epsilon)
    if is_gaussian:
        return (
            f"the probability of any set of outcomes is at most e^ε = {factor} times that of the "
            f"same set {there}, plus δ, where it was computed {here}, and the other way round"
        )
    beyond = f", but for outcomes of probability {delta:.3g} in all" if delta else ""
    return (
        f"no outcome is more than e^ε = {factor} times as likely {here} as {there}, or the other "
        f"way round{beyond}"
    )


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


def _factor(epsilon: float) -> str:
    return f"{math.exp(epsilon):.4g}" if epsilon < 700 else "infinity"
