r"""Perturbation tables by linear programming, after Giessing & Höhne (2011, section 3.1).

The rows are points of a polytope (`RowPolytope`): mean zero, variance `V`, targets `1..js`
blocked, tails that fall on each side (the centre stands outside that comparison). The design
keeps as many counts unchanged as it may: the probability of no change is maximised, and capped.
The linear programs are HiGHS's, through SciPy; what a cap leaves open is settled by entropy.

Tails of a row of probabilities in the shape of a normal law, after Giessing & Höhne (2011).

A tail over the distances `r` has the shape

.. math:: w_r(k, \sigma) = \Phi\!\left(\frac{k + r + 1/2}{\sigma}\right)
          - \Phi\!\left(\frac{k + r - 1/2}{\sigma}\right).

The spread :math:`\sigma` gives it its share of the variance, and the start `k` is the one that
brings the last probability nearest to zero. Left and right are shaped by turns, each with what the
other leaves of mass and variance; the mean is right only after the row is put back on its
conditions.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from discreet.arrays import Real
from discreet.errors import (
    InfeasibleError,
    NotConvergedError,
    ParameterError,
    is_number,
    positive,
    whole,
    within,
)
from discreet.frames import Frame
from discreet.noise.checks import (
    Support,
    Tails,
    admissible,
    check_move,
    free,
    rising_tails,
    table_rows,
)
from discreet.noise.dual import maximise_entropy
from discreet.noise.matrix import TransitionMatrix

TailShape = Literal["entropy", "normal"]
# Each turn halves what is left to correct; after ten nothing moves by a millionth.
_TURNS, _HALVINGS = 10, 60
# Spreads between which the shape goes from all mass on the first distance to the same on all.
_NARROW, _WIDE = 0.05, 1e3


def linear_table(
    D: int,
    V: float,
    js: int = 2,
    *,
    centre: float = 0.70,
    asymmetry: float | None = None,
    tails: TailShape = "entropy",
) -> TransitionMatrix:
    r"""The table that leaves as many counts unchanged as `centre` allows.

    Row `i` maximises :math:`p_{ii}`. Where the optimum does not pass `centre`, it is the row
    (its tails are then uniform on each side); otherwise :math:`p_{ii}` is set to `centre`
    and the tails have maximum entropy, or the shape of normal tails as nearly as the conditions
    allow. Rows without a centre (counts `1..js`) have maximum entropy.

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
      tails: What the cap leaves open is settled by ``"entropy"`` or by ``"normal"`` tails.

    Raises:
      InfeasibleError: Some row has no solution; the message names the feasible variances.

    See Giessing & Höhne (2011), section 3.1 and the appendix.
    """
    D, V, js = check_move(D), positive("V", V), whole("js", js, 0)
    _check(centre, asymmetry)
    if tails not in get_args(TailShape):
        raise ParameterError(f"tails must be 'entropy' or 'normal', got {tails!r}.")
    polytopes = _polytopes(D, js, centre, asymmetry)
    law = np.zeros((len(polytopes) + 1, 2 * D + 1))
    law[0, D] = 1.0
    for polytope in polytopes:
        places = [D + v for v in polytope.support.deviations]
        law[polytope.support.count, places] = _row(polytope, V, polytopes, tails)
    parameters: dict[str, Any] = {"D": D, "V": V, "js": js, "centre": centre}
    parameters["asymmetry"] = asymmetry
    if tails != "entropy":
        parameters["tails"] = tails
    return TransitionMatrix.from_law(
        "linear programming perturbation table", law, blocked=js, parameters=parameters
    )


def feasibility_intervals(
    D: int, V: float, js: int = 2, *, mono: bool = False, asymmetry: float | None = None
) -> Frame:
    """The smallest and largest value that every probability can take on its own.

    Returns:
      Columns i, j, v, lowest, highest, one line per admissible pair of true count and target.

    Raises:
      InfeasibleError: Some row has no solution; the message names the feasible variances.
    """
    D, V, js = check_move(D), positive("V", V), whole("js", js, 0)
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
    return Frame.from_rows(lines)


def _polytopes(
    D: int, js: int, centre: float, asymmetry: float | None, *, mono: bool = True
) -> list[RowPolytope]:
    supports = [admissible(count, D, js) for count in table_rows(D, js)]
    order = rising_tails if mono else free
    return [
        RowPolytope(s, order(s), (0.0, centre), asymmetry if {-1, 1} <= set(s.deviations) else None)
        for s in supports
    ]


def _row(polytope: RowPolytope, V: float, polytopes: list[RowPolytope], tails: TailShape) -> Real:
    support = polytope.support
    most_unchanged = polytope.extreme([-float(v == 0) for v in support.deviations], V)
    if most_unchanged is None:
        raise _infeasible(polytope, V, polytopes)
    if support.centre is None:
        return _entropy(polytope, V, None)
    centre, cap = most_unchanged[support.centre], polytope.stay[1]
    # where the cap binds, many laws reach it, and HiGHS would return one of the corners
    if centre < cap - 1e-9:
        return most_unchanged
    found = _entropy(polytope, V, cap)
    if tails == "entropy":
        return found
    near = polytope.nearest(normal_tails(found, support.deviations, V), V)
    return found if near is None else near


def _entropy(polytope: RowPolytope, V: float, centre: float | None) -> Real:
    """Maximum entropy at a given centre; a bound on the asymmetry is met when it is broken."""
    v = np.array(polytope.support.deviations, dtype=float)
    unit = max(V, 1.0)  # moments of size about one, as `maximise_entropy` wants them
    conditions = [(v / np.sqrt(unit), 0.0), (v**2 / unit, V / unit)]
    if centre is not None:
        conditions.append(((v == 0).astype(float), centre))
    found = _solve(polytope, conditions)
    skew, bound = near_skew(polytope.support), polytope.asymmetry
    # as with pstay, a bound that entropy breaks is met with equality
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


@dataclass(frozen=True)
class RowPolytope:
    """All laws of one row that meet the conditions, the variance left open.

    Args:
      support: The admissible deviations.
      tails: The order of the probabilities.
      stay: Lower and upper bound of the probability of no change.
      asymmetry: Largest difference between the probabilities of -1 and +1, or None.
    """

    support: Support
    tails: Tails
    stay: tuple[float, float] = (0.0, 1.0)
    asymmetry: float | None = None

    def extreme(self, cost: npt.ArrayLike, V: float | None = None) -> Real | None:
        """The law of least cost, with variance `V` when given; None when there is no law."""
        from scipy.optimize import linprog

        if not self.support.deviations:
            return None
        v = self._v()
        A, b = [np.ones_like(v), v], [1.0, 0.0]
        if V is not None:
            A, b = [*A, v**2], [*b, V]
        above, right = self._inequalities()
        result = linprog(
            np.asarray(cost, dtype=float),
            A_eq=np.array(A),
            b_eq=np.array(b),
            A_ub=above if len(right) else None,
            b_ub=right if len(right) else None,
            bounds=[self.stay if v == 0 else (0.0, 1.0) for v in self.support.deviations],
            method="highs",
        )
        # HiGHS keeps bounds up to a tolerance, and a matrix refuses negative probabilities
        return None if result.x is None else np.clip(result.x, 0.0, 1.0)

    def nearest(self, row: Real, V: float) -> Real | None:
        """The law of variance `V` with the row's centre that is nearest to it in absolute terms."""
        from scipy.optimize import linprog

        v, n = self._v(), len(row)
        above, right = self._inequalities()
        each, none = np.eye(n), np.zeros((len(right), n))
        equal = np.array([np.ones(n), v, v**2, (v == 0).astype(float)])
        result = linprog(
            np.concatenate([np.zeros(n), np.ones(n)]),
            A_eq=np.hstack([equal, np.zeros_like(equal)]),
            b_eq=[1.0, 0.0, V, float(row[v == 0].sum())],
            A_ub=np.vstack([np.hstack([each, -each]), np.hstack([-each, -each])]
                           + ([np.hstack([above, none])] if len(right) else [])),
            b_ub=np.concatenate([row, -row, right]),
            bounds=[(0.0, 1.0)] * n + [(0.0, None)] * n,
            method="highs",
        )  # fmt: skip
        return None if result.x is None else np.clip(result.x[:n], 0.0, 1.0)

    def variance_range(self) -> tuple[float, float] | None:
        """Smallest and largest variance that the conditions allow; None when there is no law."""
        return _variance_range(self)

    def intervals(self, V: float) -> tuple[Real, Real] | None:
        """Smallest and largest value of every probability; None when there is no law."""
        unit = np.eye(len(self._v()))
        low = [self.extreme(e, V) for e in unit]
        high = [self.extreme(-e, V) for e in unit]
        if any(x is None for x in low + high):
            return None
        return np.diagonal(np.array(low)).copy(), np.diagonal(np.array(high)).copy()

    def _v(self) -> Real:
        return np.array(self.support.deviations, dtype=float)

    def _inequalities(self) -> tuple[Real, Real]:
        unit = np.eye(len(self.support.deviations))
        rows = [unit[outer] - unit[inner] for outer, inner in self.tails.steps()]
        right = [0.0] * len(rows)
        if self.asymmetry is not None:
            skew = near_skew(self.support)
            rows, right = [*rows, skew, -skew], [*right, self.asymmetry, self.asymmetry]
        return np.array(rows), np.array(right)


# A gate and a comparison make the method again for each draw: most of that was these programs.
@functools.lru_cache(maxsize=1024)
def _variance_range(row: RowPolytope) -> tuple[float, float] | None:
    square = np.array(row.support.deviations, dtype=float) ** 2
    low, high = row.extreme(square), row.extreme(-square)
    if low is None or high is None:
        return None
    return float(square @ low), float(square @ high)


def near_skew(support: Support) -> Real:
    """The feature whose mean is p(-1) - p(+1)."""
    return np.array([float((v == -1) - (v == 1)) for v in support.deviations])


def common_range(ranges: Iterable[tuple[float, float] | None]) -> tuple[float, float] | None:
    """The variances open to every row, or None when there are none."""
    known = list(ranges)
    if any(r is None for r in known):
        return None
    low = max(r[0] for r in known if r is not None)
    high = min(r[1] for r in known if r is not None)
    # ranges that meet in one point only differ by the rounding of their linear programs
    return (low, high) if low <= high + 1e-12 else None


def describe_range(span: tuple[float, float] | None) -> str:
    """The range in words, for error messages."""
    if span is None:
        return "no variance can be met by all rows"
    return f"V must lie in [{span[0]:.6g}, {span[1]:.6g}]"


def normal_tails(start: Real, deviations: Sequence[int], V: float) -> Real:
    """A row with the centre of another and tails of normal shape.

    Args:
      start: A row with variance `V`; its centre and the mass of its tails begin.
      deviations: The deviations of its probabilities.
      V: The variance.

    Returns:
      The row; probabilities sum to one and have variance `V` as far as the shapes can, and their
      mean is whatever comes of it.
    """
    v, row = np.asarray(deviations, dtype=np.float64), start.copy()
    sides = [v < 0, v > 0]
    if not all(side.any() for side in sides):
        return row
    for turn in range(2 * _TURNS):
        side, other = sides[turn % 2], sides[1 - turn % 2]
        mass = 1 - row[v == 0].sum() - row[other].sum()
        square = V - row[other] @ v[other] ** 2
        if mass <= 0 or square <= 0:
            break
        row[side] = mass * tail_shape(np.abs(v[side]), square / mass)
    return row


def tail_shape(distances: Real, mean_square: float) -> Real:
    """Weights of a tail with a given mean of squared distances; the nearest where none has it."""
    starts = range(int(distances.max()) + 1)
    shapes = [_with_mean_square(distances, k, mean_square) for k in starts]
    last = int(np.argmax(distances))
    return min(shapes, key=lambda shape: float(shape[last]))


def _with_mean_square(distances: Real, k: int, mean_square: float) -> Real:
    """The shape of a start whose spread gives the wanted mean square, by bisection."""
    narrow, wide = _NARROW, _WIDE
    for _ in range(_HALVINGS):
        middle = np.sqrt(narrow * wide)
        if _shape(distances, k, middle) @ distances**2 < mean_square:
            narrow = middle
        else:
            wide = middle
    return _shape(distances, k, narrow)


def _shape(distances: Real, k: int, spread: float) -> Real:
    # From the upper end, where differences of the law itself would cancel.
    from scipy.special import ndtr

    weight = ndtr(-(k + distances - 0.5) / spread) - ndtr(-(k + distances + 0.5) / spread)
    total = float(weight.sum())
    if total <= 0:
        return np.asarray(distances == distances.min(), dtype=np.float64)
    return np.asarray(weight / total)
