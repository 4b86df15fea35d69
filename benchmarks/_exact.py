"""Slow references in whole numbers and fractions: optima of small fits without a rounding error."""

from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from scipy.optimize import nnls

Row = list[int]


def solve(rows: Sequence[Sequence[int]], right: Sequence[int]) -> list[Fraction] | None:
    """A solution of whole-number equations, free unknowns zero; `None` where they contradict.

    Elimination without fractions: every intermediate number is a determinant (Bareiss 1968).
    """
    table = [[*map(int, row), int(value)] for row, value in zip(rows, right, strict=True)]
    n = len(table[0]) - 1 if table else 0
    last, pivots = 1, list[int]()
    for column in range(n):
        at = len(pivots)
        below = [i for i in range(at, len(table)) if table[i][column]]
        if not below:
            continue
        table[at], table[below[0]] = table[below[0]], table[at]
        pivot = table[at]
        for i, row in enumerate(table):
            if i != at:
                factor = row[column]
                table[i] = [
                    (pivot[column] * a - factor * b) // last
                    for a, b in zip(row, pivot, strict=True)
                ]
        last = pivot[column]
        pivots.append(column)
    if any(row[n] for row in table[len(pivots) :]):
        return None
    found = [Fraction(0)] * n
    for i, column in enumerate(pivots):
        found[column] = Fraction(table[i][n], table[i][column])
    return found


def whole(values: np.ndarray) -> tuple[Row, int]:
    """Numbers as whole ones over one common denominator."""
    exact = [Fraction(float(v)) for v in values]
    common = int(np.lcm.reduce([f.denominator for f in exact], dtype=object)) if exact else 1
    return [int(f * common) for f in exact], common


class LeastSquaresReference:
    """The optimum of a least squares fit, with exact margins and bounds or without."""

    def __init__(self, X: np.ndarray, z: np.ndarray, w: np.ndarray, exact: Sequence[int]) -> None:
        self.X = [[int(v) for v in row] for row in X]
        self.z, self.unit = whole(z)
        self.w, self.exact, self._float = whole(w)[0], list(exact), (X, z, w)
        self.soft = [k for k in range(len(z)) if k not in self.exact and self.w[k]]

    def without_bounds(self) -> list[Fraction] | None:
        """The published cells of the fit that may be negative."""
        found = self._on(range(len(self.X)))
        return None if found is None else self._published(found[0])

    def not_negative(self, most: int = 200) -> list[Fraction] | None:
        """The published cells of the fit without negative cells; `None` where none was found.

        Active sets, one cell at a time, from those of a fit in doubles; the conditions of Karush,
        Kuhn and Tucker hold without an error when it ends.
        """
        X, z, w = self._float
        root = np.sqrt(w)
        root[self.exact] = 1e4 * root.max()
        chosen = set(np.flatnonzero(nnls((X * root).T, root * z, maxiter=10_000)[0] > 0).tolist())
        for _ in range(most):
            cells = sorted(chosen)
            found = self._on(cells)
            if found is None:
                return None
            y, gradient = found
            if (low := min((y[i] for i in cells), default=0)) < 0:
                chosen.remove(min(c for c in cells if y[c] == low))
                continue
            steep = min(gradient)
            if steep >= 0:
                return self._published(y)
            chosen.add(gradient.index(steep))
        return None

    def _on(self, cells: Sequence[int]) -> tuple[list[Fraction], list[Fraction]] | None:
        """The optimum on some cells, and the gradient of all."""
        rows, right, n = [], [], len(cells)
        for i in cells:
            normal = [
                sum(self.w[k] * self.X[i][k] * self.X[j][k] for k in self.soft) for j in cells
            ]
            rows.append(normal + [-self.X[i][k] for k in self.exact])
            right.append(sum(self.w[k] * self.X[i][k] * self.z[k] for k in self.soft))
        for k in self.exact:
            rows.append([self.X[j][k] for j in cells] + [0] * len(self.exact))
            right.append(self.z[k])
        solution = solve(rows, right)
        if solution is None:
            return None
        y = [Fraction(0)] * len(self.X)
        for j, i in enumerate(cells):
            y[i] = solution[j]
        fitted = [
            sum((y[i] for i in cells if self.X[i][k]), Fraction(0)) for k in range(len(self.z))
        ]
        pull = {k: self.w[k] * (fitted[k] - self.z[k]) for k in self.soft}
        pull |= {k: -solution[n + j] for j, k in enumerate(self.exact)}
        gradient = [sum((v for k, v in pull.items() if row[k]), Fraction(0)) for row in self.X]
        return y, gradient

    def _published(self, y: Sequence[Fraction]) -> list[Fraction]:
        sums = (
            sum((v for v, row in zip(y, self.X, strict=True) if row[k]), Fraction(0))
            for k in range(len(self.z))
        )
        return [s / self.unit for s in sums]


def log_linear(X: np.ndarray, z: np.ndarray) -> np.ndarray | None:
    """The table :math:`e^{Xν}` with margins `z` that some positive table has, in forty digits.

    Newton's method on the multipliers of independent margins, with damped steps.
    """
    independent = _independent_columns(X)
    with localcontext() as context:
        context.prec = 40
        A = [[Decimal(int(v)) for v in row] for row in X[:, independent]]
        target = [Decimal(float(v)) for v in z[independent]]
        nu = [Decimal(0)] * len(target)
        y = _exponential(A, nu)
        for _ in range(_NEWTON_STEPS):
            left = [t - s for t, s in zip(target, _sums(A, y), strict=True)]
            if all(abs(v) <= Decimal("1e-20") * max(target) for v in left):
                return np.array([float(v) for v in y])
            step = _eliminate(_curvature(A, y), left)
            # Exponents that change by no more than one keep the model of the step.
            changes = (sum((a * s for a, s in zip(r, step, strict=True)), Decimal(0)) for r in A)
            most = max(map(abs, changes))
            size = min(Decimal(1), 1 / most)
            nu = [v + size * s for v, s in zip(nu, step, strict=True)]
            y = _exponential(A, nu)
    return None


_NEWTON_STEPS = 400
Decimals = list[Decimal]


def _independent_columns(X: np.ndarray) -> list[int]:
    chosen = list[int]()
    for k in range(X.shape[1]):
        if np.linalg.matrix_rank(X[:, [*chosen, k]]) > len(chosen):
            chosen.append(k)
    return chosen


def _exponential(A: list[Decimals], nu: Decimals) -> Decimals:
    return [sum((a * v for a, v in zip(row, nu, strict=True)), Decimal(0)).exp() for row in A]


def _sums(A: list[Decimals], y: Decimals) -> Decimals:
    return [
        sum((row[k] * v for row, v in zip(A, y, strict=True)), Decimal(0)) for k in range(len(A[0]))
    ]


def _curvature(A: list[Decimals], y: Decimals) -> list[Decimals]:
    n = range(len(A[0]))
    return [
        [sum((v * r[j] * r[k] for r, v in zip(A, y, strict=True)), Decimal(0)) for k in n]
        for j in n
    ]


def _eliminate(matrix: list[Decimals], right: Decimals) -> Decimals:
    """Solve positive definite equations."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for j, pivot in enumerate(rows):
        for i, row in enumerate(rows):
            if i != j and row[j]:
                factor = row[j] / pivot[j]
                rows[i] = [a - factor * b for a, b in zip(row, pivot, strict=True)]
    return [row[-1] / row[j] for j, row in enumerate(rows)]


def poisson_loss(X: np.ndarray, z: np.ndarray, w: np.ndarray, sweeps: int = 5_000) -> float:
    """A Poisson loss that some table has, near the smallest: expectation–maximisation."""
    y = np.full(len(X), max(float(z.max(initial=0.0)), 1.0))
    pull = X @ w
    for _ in range(sweeps):
        mu = y @ X
        y *= np.divide(
            X @ (w * z / np.maximum(mu, 1e-300)), pull, out=np.ones(len(X)), where=pull > 0
        )
    return loss_of(y @ X, z, w)


def poisson_gap(
    X: np.ndarray, z: np.ndarray, w: np.ndarray, y: np.ndarray, dual: np.ndarray
) -> tuple[float, float]:
    """The Poisson loss of a table, and how far it may be above the least one, in forty digits.

    A dual vector is first lowered, without an error, until no slope is positive; its value is then
    a bound on every loss.
    """
    weights, u = [Fraction(float(v)) for v in w], [Fraction(float(v)) for v in dual]
    for row in X:
        cells = np.flatnonzero(row)
        if len(cells) and (slope := sum((u[k] for k in cells), Fraction(0))) > 0:
            u[max(cells, key=lambda k: u[k] + weights[k])] -= slope
    mu = [sum((Fraction(float(v)) for v in y[X[:, k] > 0]), Fraction(0)) for k in range(len(z))]
    loss, bound = Decimal(0), Decimal(0)
    with localcontext() as context:
        context.prec = 40
        for k, value in enumerate(z):
            a, b, v = (_decimal(f) for f in (weights[k], mu[k], Fraction(float(value))))
            room = a + _decimal(u[k])
            if room < 0 or (value > 0 and a > 0 and min(b, room) <= 0):
                return float("inf"), float("inf")
            loss += a * (b - v)
            if value > 0 and a > 0:
                loss += a * v * (v / b).ln()
                bound += a * v * (room / a).ln()
        return float(loss), float(loss - bound)


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def loss_of(mu: np.ndarray, z: np.ndarray, w: np.ndarray) -> float:
    """The Poisson loss of margins: half the deviance."""
    ratio = np.where(z > 0, np.maximum(mu, 1e-300) / np.where(z > 0, z, 1.0), 1.0)
    return float(w @ np.where(z > 0, mu - z - z * np.log(ratio), mu))
