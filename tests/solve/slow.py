"""Slow and obvious fits, and small designs that are hard in different ways."""

import highspy
import numpy as np
from scipy.optimize import linprog, minimize

import discreet as dc
from discreet import Hierarchy
from discreet.design import Axis

TREE = {"all": {"n": ["n1", "n2"], "s": ["s1", "s2", "s3"], "w": ["w1"]}}
EAST_WEST = {"any": {"east": ["n1", "s1", "s2"], "west": ["n2", "s3", "w1"]}}


def tree(name="t"):
    """A tree with a branch of one leaf, so that two of its cells are the same."""
    return Axis.from_hierarchies(name, [Hierarchy.from_dict(TREE)])


def overlap(name="t"):
    """Two trees over the same leaves."""
    trees = [Hierarchy.from_dict(TREE), Hierarchy.from_dict(EAST_WEST)]
    return Axis.from_hierarchies(name, trees)


def flat(name, n):
    return Axis.flat(name, [f"{name}{i}" for i in range(n)])


def sparse(variables, margins, seed, share):
    """A design without a share of the inner cells, and without the first category."""
    full = dc.Design.product(variables, margins)
    keep = np.random.default_rng(seed).random(full.n_inner) > share
    codes = np.unravel_index(np.arange(full.n_inner), tuple(variables.values()))
    keep &= codes[0] > 0
    return dc.Design.sparse(variables, margins, [c[keep] for c in codes])


def matrix(seed, shape=(12, 15), share=0.4):
    """Columns without structure, the last two equal, the first empty; the first row is zero."""
    X = (np.random.default_rng(seed).random(shape) < share).astype(int)
    X[0], X[:, 0], X[:, -1] = 0, 0, X[:, -2]
    return dc.Design.from_matrix(X)


HARD = {
    "one cell": lambda: dc.Design.product({"a": 1}, [()]),
    "total only": lambda: dc.Design.product({"a": 3, "b": 2}, [()]),
    "two totals": lambda: dc.Design.product({"a": 3, "b": 4}, "a + b"),
    "dependent margins": lambda: dc.Design.product({"a": 3, "b": 3, "c": 2}, "a*b + b*c + c"),
    "all pairs": lambda: dc.Design.product(
        {"a": 3, "b": 4, "c": 2}, dc.margins(["a", "b", "c"], 2)
    ),
    "inner cells too": lambda: dc.Design.product({"a": 3, "b": 3}, "a*b"),
    "one tree": lambda: dc.Design.product([tree(), flat("x", 3)], [("t",), ("x",), ()]),
    "tree by flat": lambda: dc.Design.product([tree(), flat("x", 2)], "t*x"),
    "tree linked": lambda: dc.Design.product([tree(), flat("x", 2), flat("v", 2)], "t*x + x*v"),
    "two trees": lambda: dc.Design.product([tree("t"), tree("r")], "t + r"),
    "overlap": lambda: dc.Design.product([overlap(), flat("x", 2)], "t + x"),
    "overlap crossed": lambda: dc.Design.product([overlap(), flat("x", 2)], "t*x"),
    "structural zeros": lambda: sparse({"a": 4, "b": 4}, "a + b", 1, 0.4),
    "linked, structural zeros": lambda: sparse({"a": 4, "b": 3, "c": 3}, "a*b + b*c", 2, 0.4),
    "one category alone": lambda: dc.Design.product({"a": 1, "b": 5}, "a*b"),
    "general matrix": lambda: matrix(1),
    "thin matrix": lambda: matrix(2, (6, 30), 0.5),
    "wide matrix": lambda: matrix(3, (30, 8), 0.3),
}


def dense(design):
    return design.matrix().toarray().astype(float)


def counts(design, seed, mean=2.0):
    """Inner counts with many zeros."""
    return np.random.default_rng(seed).poisson(mean, design.n_inner)


def noisy(design, seed, scale=3.0):
    """Published counts with rounded Laplace noise; some are negative."""
    noise = np.random.default_rng(seed + 1_000).laplace(0, scale, design.n_published)
    return design.aggregate(counts(design, seed)) + np.round(noise)


def some_weights(design, seed):
    """Weights 0 to 3; at least one is positive."""
    w = np.random.default_rng(seed + 2_000).integers(0, 4, design.n_published).astype(float)
    w[-1] = max(w[-1], 1.0)
    return w


def naive_ipf(X, z, start=None, used=None, sweeps=20_000, goal=1e-9):
    """Column after column until nothing deviates."""
    y = np.ones(len(X)) if start is None else np.array(start, dtype=float)
    columns = range(X.shape[1]) if used is None else np.flatnonzero(used)
    for _ in range(sweeps):
        for k in columns:
            if (total := X[:, k] @ y) > 0:
                y = np.where(X[:, k] > 0, y * (z[k] / total), y)
        if all(abs(X[:, k] @ y - z[k]) <= goal for k in columns):
            return y
    return y


def has_table(X, z, used):
    """Whether some non-negative table has the margins in use, by linear programming."""
    if not used.any():
        return True
    return linprog(np.zeros(len(X)), A_eq=X.T[used], b_eq=z[used], method="highs").status == 0


def _absolute_program(X, z, w):
    k = np.flatnonzero(w > 0)
    A = np.hstack([X.T[k], -np.eye(len(k)), np.eye(len(k))])
    return A, z[k].astype(float), np.concatenate([np.zeros(len(X)), w[k], w[k]])


def least_absolute_loss(X, z, w):
    """The smallest weighted sum of absolute deviations, as a linear program."""
    A, b, cost = _absolute_program(X, z, w)
    return linprog(cost, A_eq=A, b_eq=b, method="highs").fun


def smallest_minimiser(X, z, w):
    """Of all tables with the smallest loss the one of smallest norm, as a quadratic program."""
    A, b, cost = _absolute_program(X, z, w)
    best = least_absolute_loss(X, z, w)
    A, low = np.vstack([A, cost]), np.append(b, 0.0)
    high = np.append(b, best * (1 + 1e-9) + 1e-9)
    n, size = len(X), A.shape[1]
    program = highspy.Highs()
    program.setOptionValue("output_flag", False)
    for _ in range(size):
        program.addVar(0, highspy.kHighsInf)
    for row, lower, upper in zip(A, low, high, strict=True):
        at = np.flatnonzero(row)
        program.addRow(lower, upper, len(at), at.astype(np.int32), row[at])
    starts = np.minimum(np.arange(size), n).astype(np.int32)
    program.passHessian(size, n, 1, starts, np.arange(n, dtype=np.int32), np.ones(n))
    program.run()
    if program.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return np.array(program.getSolution().col_value)[:n]


def poisson_minimum(X, z, w):
    """The smallest Poisson loss and its margins, by a general minimiser on the inner cells."""
    used = (w > 0) & X.any(axis=0)
    X, z, w = X[:, used], z[used], w[used]

    def loss(y):
        mu = X.T @ y
        ratio = np.where(z > 0, z / np.maximum(mu, 1e-300), 1.0)
        return w @ (z * np.log(ratio) - z + mu), X @ (w * (1 - np.where(z > 0, ratio, 0.0)))

    start = np.full(len(X), max(z.mean(), 1.0) / max(X.sum(0).mean(), 1.0))
    options = {"maxiter": 50_000, "maxfun": 500_000, "ftol": 1e-15, "gtol": 1e-10, "maxcor": 30}
    bounds = [(0, None)] * len(X)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return float(found.fun), X.T @ found.x, used
