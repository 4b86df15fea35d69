r"""Perturbation tables of maximum entropy.

Row `i` of the table solves

.. math:: \max_p -\sum_v p_v\log p_v \quad\text{s.t.}\quad \sum p = 1,\ \sum p\,v = 0,\
          \sum p\,v^2 = V

over the deviations `v` with `|v| <= D` whose target `i + v` is neither negative nor in `1..js`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from discreet.arrays import Real
from discreet.errors import (
    InfeasibleError,
    NotConvergedError,
    ParameterError,
    check_known,
    positive,
    whole,
)
from discreet.noise.checks import (
    Support,
    Tails,
    admissible,
    check_move,
    free,
    rising_both,
    rising_left,
    table_rows,
)
from discreet.noise.dual import MaximumEntropy, maximise_entropy
from discreet.noise.linear import RowPolytope, common_range, describe_range, linear_table
from discreet.noise.matrix import TransitionMatrix

Variant = Literal["discreet", "ptable"]

T = TypeVar("T")


class Preset(NamedTuple):
    """Parameters of a perturbation table that somebody used, and where that is written."""

    D: int
    V: float
    js: int
    source: str
    keeps_most: bool = False  # counts stay as they are as often as may be: `linear_table`


_FOR_A_CENSUS = "Giessing & Höhne (2011), appendix: a variance just above 2, the least possible"
PRESETS: dict[str, Preset] = {
    "no-small-counts": Preset(5, 3.0, 2, "Langsrud & Lupp (2021), made there with ptable"),
    **{f"giessing-hoehne-{D}": Preset(D, 2.002, 2, _FOR_A_CENSUS, True) for D in (3, 4, 5)},
}
"""Parameters by name."""
USUAL_PRESET = "no-small-counts"
"""What the cell key method uses unless told otherwise.

Ones and twos tell most about people, so none is published. At a variance of 3 at most two of five
counts stay what they are, and at least three of four differ by no more than two.
"""

# ptable 1.0.0 lowers pstay in these steps and gives up after so many; other numbers would give
# other tables than the peer's
_PSTAY_STEP = 0.05
_PSTAY_TRIES = 20


def perturbation_table(
    D: int | str | None = None,
    V: float | None = None,
    js: int | None = None,
    pstay: float | Sequence[float | None] | None = None,
    mono: bool | Sequence[bool] = True,
    *,
    preset: str | None = None,
    variant: Variant = "discreet",
    optim: int | None = None,
) -> TransitionMatrix:
    r"""The perturbation table of maximum entropy.

    Promise: mean zero, variance `V` and largest move `D` at every count above zero; zeros stay;
    the values `1..js` are never published. Row `D` (or `D + js + 1` when `js > 0`) serves every
    larger count.

    The two variants differ in what gives way when conditions clash:

    * ``"discreet"``: probabilities fall on both sides of the true count, `pstay` is kept, and the
      variance is `V` exactly, or an error names the variances that are possible.
    * ``"ptable"``: agrees with the R package ptable 1.0.0. The order is kept on the left side
      only; with `optim` 1 to 3 the variance is at most `V` (rows may fall short of it), with 4 it
      is `V`; a `pstay` that stands in the way of `V` is lowered in steps of 0.05.

    Cost: about 0.2 ms per row.

    Args:
      D: Largest move, or the name of a preset (`PRESETS`); the usual preset when absent.
      V: Variance of the noise.
      js: Largest positive count that must not be published; 0 for none. When absent, 0 if that
        allows the variance, and otherwise the least that does.
      pstay: Least probability of no change, one for all counts or one for each of the rows
        1, 2, …; None for none.
      mono: Whether probabilities fall with the distance from the true count, for all rows or
        for each.
      preset: Name of a preset, which stands for D, V and js.
      variant: ``"discreet"`` or ``"ptable"``.
      optim: The peer's choice 1 to 4 (``variant="ptable"`` only; 1 when absent).

    Raises:
      InfeasibleError: No table meets the conditions; the message names the feasible variances.

    See Fraser & Wooton (2005), Giessing & Höhne (2011).
    """
    _check_variant(variant, optim)
    D, preset = _move_or_preset(D, preset)
    if D is None:
        given = {"V": V, "js": js, "pstay": pstay, "optim": optim}
        D, V, js, _, keeps_most = _preset(preset or USUAL_PRESET, given)
        if keeps_most:
            return linear_table(D, V, js)
    D, V, js = _moments_asked(D, V, js, pstay, mono, variant)
    law = _solve_rows(D, _plans(D, V, js, pstay, mono, variant, optim))
    parameters = {"D": D, "V": V, "js": js, "pstay": pstay, "mono": mono, "variant": variant}
    if variant == "ptable":
        parameters["optim"] = optim or 1
    return TransitionMatrix.from_law(
        "maximum entropy perturbation table", law, blocked=js, parameters=parameters
    )


def _move_or_preset(D: int | str | None, preset: str | None) -> tuple[int | None, str | None]:
    """The largest move or the preset, whichever is named."""
    if isinstance(D, str):
        if preset not in (None, D):
            raise ParameterError(f"two presets are named, {D!r} and {preset!r}.")
        return None, D
    if D is not None and preset is not None:
        raise ParameterError(f"preset {preset!r} has D= of its own; give one of the two.")
    return D, preset


def _solve_rows(D: int, plans: list[_RowPlan]) -> Real:
    """Probabilities of the moves -D..D, row by row; zeros stay."""
    law = np.zeros((len(plans) + 1, 2 * D + 1))
    law[0, D] = 1.0
    for plan in plans:
        if not plan.support.deviations:
            raise _failure(plan, plans)
        found = _lower_pstay(plan) if plan.yields else _best(plan, plan.pstay)
        if not found.converged:
            raise _failure(plan, plans)
        law[plan.support.count, [D + v for v in plan.support.deviations]] = found.p
    return law


def _preset(name: str, others: Mapping[str, object]) -> Preset:
    """A preset by its name, without other parameters of the noise beside it."""
    check_known("preset of perturbation tables", [name], PRESETS)
    if more := [other for other, value in others.items() if value is not None]:
        raise ParameterError(
            f"{more[0]}= goes with D=, the largest move; preset {name!r} has all of them: "
            f"D={PRESETS[name].D}, V={PRESETS[name].V:g}, js={PRESETS[name].js}."
        )
    return PRESETS[name]


def _moments_asked(
    D: int,
    V: float | None,
    js: int | None,
    pstay: float | Sequence[float | None] | None,
    mono: bool | Sequence[bool],
    variant: Variant,
) -> tuple[int, float, int]:
    """Largest move, variance and blocked counts; what is left out follows from the others."""
    D = check_move(D)
    if V is None:
        possible = describe_range(variance_range(D, js or 0, pstay, mono))
        raise ParameterError(f"D={D} needs the variance V= as well: {possible}.")
    V = positive("V", V)
    if js is not None:
        return D, V, whole("js", js, 0)
    # The peer lets the variance fall short instead; options for each row fix how many there are.
    if variant == "ptable" or isinstance(pstay, Sequence) or isinstance(mono, Sequence):
        return D, V, 0
    for least in range(D):
        possible_with = variance_range(D, least, pstay, mono)
        if possible_with is not None and possible_with[0] <= V <= possible_with[1]:
            return D, V, least
    return D, V, 0  # whose error names the variances that are possible


def _check_variant(variant: str, optim: int | None) -> None:
    if variant not in ("discreet", "ptable"):
        raise ParameterError(f'variant must be "discreet" or "ptable", got {variant!r}.')
    if optim is not None and variant != "ptable":
        raise ParameterError('optim belongs to variant="ptable"; our own variance is always met.')
    if optim not in (None, 1, 2, 3, 4):
        raise ParameterError(f"optim must be 1, 2, 3 or 4, got {optim!r}.")


def variance_range(
    D: int,
    js: int = 0,
    pstay: float | Sequence[float | None] | None = None,
    mono: bool | Sequence[bool] = True,
) -> tuple[float, float] | None:
    """The variances that `perturbation_table` can meet, by linear programming; None for none.

    >>> [round(v, 6) for v in variance_range(3, js=2, mono=False)]
    [2.0, 3.0]
    """
    # the range does not depend on V, so any will do
    return _range(_plans(check_move(D), 1.0, whole("js", js, 0), pstay, mono, "discreet", None))


@dataclass(frozen=True)
class _RowPlan:
    """What one row is asked for."""

    support: Support
    tails: Tails
    V: float
    pstay: float | None
    bounded: bool  # a variance below V will do
    yields: bool  # pstay gives way to V

    def polytope(self) -> RowPolytope:
        stay = 0.0 if self.yields or self.pstay is None else self.pstay
        return RowPolytope(self.support, self.tails, (stay, 1.0))


def _plans(
    D: int,
    V: float,
    js: int,
    pstay: float | Sequence[float | None] | None,
    mono: bool | Sequence[bool],
    variant: Variant,
    optim: int | None,
) -> list[_RowPlan]:
    counts = table_rows(D, js)
    stays = _per_row("pstay", pstay, len(counts))
    monos = _per_row("mono", mono, len(counts))
    peer = variant == "ptable"
    order: Callable[[Support], Tails] = rising_left if peer else rising_both
    plans = []
    for count, stay, rising in zip(counts, stays, monos, strict=True):
        if stay is not None and not 0 <= stay <= 1:
            raise ParameterError(f"pstay must lie in [0, 1], got {stay} for count {count}.")
        support = admissible(count, D, js)
        tails = order(support) if rising else free(support)
        stay = None if support.centre is None else stay
        plans.append(_RowPlan(support, tails, V, stay, peer and optim != 4, peer))
    return plans


def _per_row(name: str, value: T | Sequence[T], rows: int) -> Sequence[T]:
    if not isinstance(value, Sequence):
        return [value] * rows
    if len(value) != rows:
        raise ParameterError(f"{name} has {len(value)} values but the table has {rows} rows.")
    return value


def _lower_pstay(plan: _RowPlan) -> MaximumEntropy:
    """Lower the bound on the centre until the variance is met (to 3 decimals) or tries run out."""
    found = _best(plan, plan.pstay)
    for lowered in range(1, _PSTAY_TRIES):
        if plan.pstay is None or (found.converged and round(_variance(plan, found), 3) == plan.V):
            break
        found = _best(plan, plan.pstay - _PSTAY_STEP * lowered)
    return found


def _best(plan: _RowPlan, pstay: float | None) -> MaximumEntropy:
    """Largest entropy with the centre at least `pstay`.

    Entropy is concave, so where the bound is broken without it, it is met with equality.
    """
    found = _with_variance(plan, None)
    centre = plan.support.centre
    if pstay is None or centre is None or (found.converged and found.p[centre] >= pstay):
        return found
    return _with_variance(plan, pstay)


def _with_variance(plan: _RowPlan, stay: float | None) -> MaximumEntropy:
    """Largest entropy with variance `V`, or at most `V` when the plan allows less."""
    if plan.bounded:
        free_variance = _moments(plan, stay, fixed=False)
        if free_variance.converged and _variance(plan, free_variance) <= plan.V:
            return free_variance
    return _moments(plan, stay, fixed=True)


def _moments(plan: _RowPlan, stay: float | None, *, fixed: bool) -> MaximumEntropy:
    """Largest entropy at mean zero, in units in which the variance is of size one."""
    v, unit = plan.support.deviations, max(plan.V, 1.0)
    features, moments, start = [[x / math.sqrt(unit) for x in v]], [0.0], [0.0]
    if stay is not None:
        features, moments, start = [*features, [float(x == 0) for x in v]], [0.0, stay], [0.0, 0.0]
    if fixed:
        features.append([x**2 / unit for x in v])
        moments.append(plan.V / unit)
        # the multiplier of nearly normal noise, or of noise that is nearly always zero
        start.append(-0.5 if plan.V >= 1 else math.log(plan.V / 2))
    return maximise_entropy(features, moments, plan.tails, start)


def _variance(plan: _RowPlan, found: MaximumEntropy) -> float:
    return math.fsum(p * v**2 for p, v in zip(found.p, plan.support.deviations, strict=True))


def _range(plans: list[_RowPlan]) -> tuple[float, float] | None:
    return common_range(plan.polytope().variance_range() for plan in plans)


def _failure(plan: _RowPlan, plans: list[_RowPlan]) -> InfeasibleError | NotConvergedError:
    row, count = plan.polytope().variance_range(), plan.support.count
    if row is not None and row[0] <= plan.V <= row[1]:
        return NotConvergedError(
            f"the row of count {count} did not reach its moments although V={plan.V:g} lies in its "
            f"range [{row[0]:.6g}, {row[1]:.6g}]. Move V away from the ends of the range."
        )
    own = "no law at all" if row is None else f"variances from {row[0]:.6g} to {row[1]:.6g}"
    return InfeasibleError(
        f"V={plan.V:g} cannot be met: the row of count {count} allows {own}. For the whole table "
        f"{describe_range(_range(plans))}. Change V, raise D, lower js or pstay, or set mono=False."
    )
