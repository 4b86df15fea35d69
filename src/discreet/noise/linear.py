r"""Perturbation tables by linear programming, after Giessing & Höhne (2011, section 3.1).

The rows are points of the polytope of `noise.polytope`: mean zero, variance `V`, targets `1..js`
blocked, tails that fall on each side (the centre stands outside that comparison). The design
keeps as many counts unchanged as it may: the probability of no change is maximised, and capped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Real
from discreet.errors import InfeasibleError, NotConvergedError, ParameterError
from discreet.noise.checks import is_number, positive, whole, within
from discreet.noise.dual import maximise_entropy
from discreet.noise.matrix import TransitionMatrix
from discreet.noise.polytope import RowPolytope, common_range, describe_range, near_skew
from discreet.noise.support import admissible, free, rising_tails, table_rows

if TYPE_CHECKING:
    import pyarrow


def linear_table(
    D: int, V: float, js: int = 2, *, centre: float = 0.70, asymmetry: float | None = None
) -> TransitionMatrix:
    r"""The table that leaves as many counts unchanged as `centre` allows.

    Row `i` maximises :math:`p_{ii}`. Where the optimum does not pass `centre`, it is the row
    (its tails are then uniform on each side); otherwise :math:`p_{ii}` is set to `centre`
    and the tails have maximum entropy. Rows without a centre (counts `1..js`) have maximum entropy.

    Promise: mean zero, variance `V`, largest move `D`, zeros stay, `1..js` never published, tails
    fall on each side, :math:`p_{ii} \le` `centre`.
    Cost: one small linear program per row, about 2 ms each.

    Args:
      D: Largest move.
      V: Variance of the noise; its least possible value keeps most information (2 for `js=2`).
      js: Largest positive count that must not be published; 0 for none.
      centre: Cap of the probability of no change.
      asymmetry: Largest difference between the probabilities of -1 and +1 where both are
        admissible, or None.

    Raises:
      InfeasibleError: Some row has no solution; the message names the feasible variances.

    See Giessing & Höhne (2011), section 3.1 and the appendix.
    """
    D, V, js = whole("D", D, 1), positive("V", V), whole("js", js, 0)
    _check(centre, asymmetry)
    polytopes = _polytopes(D, js, centre, asymmetry)
    law = np.zeros((len(polytopes) + 1, 2 * D + 1))
    law[0, D] = 1.0
    for polytope in polytopes:
        places = [D + v for v in polytope.support.deviations]
        law[polytope.support.count, places] = _row(polytope, V, polytopes)
    parameters = {"D": D, "V": V, "js": js, "centre": centre, "asymmetry": asymmetry}
    return TransitionMatrix.from_law(
        "linear programming perturbation table", law, blocked=js, parameters=parameters
    )


def feasibility_intervals(
    D: int, V: float, js: int = 2, *, mono: bool = False, asymmetry: float | None = None
) -> pyarrow.Table:
    """The smallest and largest value that every probability can take on its own.

    Returns:
      Columns i, j, v, lowest, highest, one line per admissible pair of true count and target.

    Raises:
      InfeasibleError: Some row has no solution; the message names the feasible variances.
    """
    import pyarrow as pa

    D, V, js = whole("D", D, 1), positive("V", V), whole("js", js, 0)
    _check(1.0, asymmetry)
    polytopes = _polytopes(D, js, 1.0, asymmetry, mono=mono)
    lines = []
    for polytope in polytopes:
        found = polytope.intervals(V)
        if found is None:
            raise _infeasible(polytope, V, polytopes)
        i = polytope.support.count
        for v, lowest, highest in zip(polytope.support.deviations, *found, strict=True):
            lines.append({"i": i, "j": i + v, "v": v, "lowest": lowest, "highest": highest})
    return pa.Table.from_pylist(lines)


def _polytopes(
    D: int, js: int, centre: float, asymmetry: float | None, *, mono: bool = True
) -> list[RowPolytope]:
    supports = [admissible(count, D, js) for count in table_rows(D, js)]
    order = rising_tails if mono else free
    return [
        RowPolytope(s, order(s), (0.0, centre), asymmetry if {-1, 1} <= set(s.deviations) else None)
        for s in supports
    ]


def _row(polytope: RowPolytope, V: float, polytopes: list[RowPolytope]) -> Real:
    support = polytope.support
    most_unchanged = polytope.extreme([-float(v == 0) for v in support.deviations], V)
    if most_unchanged is None:
        raise _infeasible(polytope, V, polytopes)
    if support.centre is None:
        return _entropy(polytope, V, None)
    centre, cap = most_unchanged[support.centre], polytope.stay[1]
    return most_unchanged if centre < cap - 1e-9 else _entropy(polytope, V, cap)


def _entropy(polytope: RowPolytope, V: float, centre: float | None) -> Real:
    """Maximum entropy at a given centre; a bound on the asymmetry is met when it is broken."""
    v = np.array(polytope.support.deviations, dtype=float)
    unit = max(V, 1.0)
    conditions = [(v / np.sqrt(unit), 0.0), (v**2 / unit, V / unit)]
    if centre is not None:
        conditions.append(((v == 0).astype(float), centre))
    found = _solve(polytope, conditions)
    skew, bound = near_skew(polytope.support), polytope.asymmetry
    if bound is not None and abs(skew @ found) > bound:
        found = _solve(polytope, [*conditions, (skew, float(np.sign(skew @ found)) * bound)])
    return found


def _solve(polytope: RowPolytope, conditions: list[tuple[Real, float]]) -> Real:
    features = [feature.tolist() for feature, _ in conditions]
    found = maximise_entropy(features, [moment for _, moment in conditions], polytope.tails)
    if not found.converged:
        raise NotConvergedError(
            f"the row of count {polytope.support.count} has solutions, but the one of maximum "
            "entropy was not reached. Move V away from the ends of its range."
        )
    return np.array(found.p)


def _infeasible(polytope: RowPolytope, V: float, polytopes: list[RowPolytope]) -> InfeasibleError:
    span = describe_range(common_range(p.variance_range() for p in polytopes))
    return InfeasibleError(
        f"V={V:g} cannot be met in the row of count {polytope.support.count}. For the whole table "
        f"{span}. Change V, raise D, lower js, or loosen the centre and asymmetry bounds."
    )


def _check(centre: float, asymmetry: float | None) -> None:
    within("centre", centre, 1)
    if asymmetry is not None and not (is_number(asymmetry) and asymmetry >= 0):
        raise ParameterError(f"asymmetry must be at least 0, got {asymmetry!r}.")
