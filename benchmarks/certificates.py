"""Random small designs, fitted by every fitter and judged by exact references.

Designs are matrices, crossings, chosen cells and hierarchies; totals lie between 10 and 3·10⁹,
weights between 10⁻³ and 10⁴, and some margins are exact. A fit that says `converged` must be right,
one that says `infeasible` or `inconsistent` too, and others are counted with how far they are off.

Run: python -m benchmarks.certificates [--cases 120] [--first 0] [FITTER …]. It fails where a fit is
wrong, raises an error, or refuses what has a table.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog

import discreet as dc
from benchmarks._exact import LeastSquaresReference, log_linear, poisson_gap, poisson_loss
from benchmarks._measure import print_table
from discreet.design import Axis
from discreet.errors import DiscreetError
from discreet.protect.adjust import CellsInUse, adjustment
from discreet.protect.draws import SeededDraws
from discreet.solve.fit import Certificate, Fit, Status
from discreet.solve.likelihood.noise_likelihood import CellLikelihoods
from discreet.solve.margins.effects import axes_of
from tests.solve.integer.exact import adjust_exactly

KINDS = ("matrix", "crossing", "chosen cells", "hierarchy")
HEADER = ["fitter", "cases", "converged", "wrong", "not reached", "far off", "refused", "wrongly"]
HEADER += ["raised", "unjudged", "worst deviation of a converged", "CPU s"]
MOST = 3e9
# Deviations above this many counts, or this share of the largest cell, are wrong.
COUNTS, SHARE = 0.05, 1e-9
# Fits that say that they did not arrive are far off by this share of the largest cell, or a count.
FAR = 0.01
# Records that are drawn from margins, whatever their total is.
RECORDS = 300
# Counts by which noise of a bounded law moves a cell.
MOST_MOVE = 5


@dataclass(frozen=True)
class Case:
    """A question to a fitter.

    Attributes:
      design: A small design.
      truth: Its inner cells, all positive.
      z: Published values: those of the truth, or with noise.
      w: Weights.
      exact: Positions of exact margins, whose values are those of the truth or, if contradictory,
        cannot be met.
    """

    design: Any
    truth: np.ndarray
    z: np.ndarray
    w: np.ndarray
    exact: tuple[int, ...] = ()

    @property
    def X(self) -> np.ndarray:
        """The design as a dense matrix."""
        return np.asarray(self.design.matrix().toarray(), dtype=float)

    @property
    def allowed(self) -> float:
        """The deviation from which a converged fit is wrong."""
        return max(COUNTS, SHARE * float(np.abs(self.z).max()))


def random_design(kind: str, rng: np.random.Generator) -> Any:
    """A design of some twenty inner cells."""
    if kind == "matrix":
        shape = (int(rng.integers(4, 20)), int(rng.integers(3, 16)))
        X = (rng.random(shape) < rng.uniform(0.2, 0.6)).astype(int)
        X[np.arange(shape[0]), rng.integers(shape[1], size=shape[0])] = 1
        return dc.Design.from_matrix(X[:, X.any(axis=0)])
    if kind == "hierarchy":
        groups = {f"g{i}": [f"g{i}{j}" for j in range(rng.integers(1, 4))] for i in range(2)}
        tree = Axis.from_hierarchies("t", [dc.Hierarchy.from_dict({"all": groups})])
        other = Axis.flat("x", [f"x{i}" for i in range(rng.integers(2, 4))])
        return dc.Design.product([tree, other], str(rng.choice(["t*x", "t + x"])))
    sizes = {v: int(rng.integers(2, 4)) for v in "abc"}
    margins = str(rng.choice(["a + b + c", "a*b + c", "a*b + b*c", "a*b + a*c + b*c", "a*b*c"]))
    if kind == "crossing":
        return dc.Design.product(sizes, margins)
    codes = np.unravel_index(np.arange(np.prod(list(sizes.values()))), tuple(sizes.values()))
    keep = rng.random(len(codes[0])) < 0.7
    keep[0] = True
    return dc.Design.sparse(sizes, margins, [c[keep] for c in codes])


def random_table(design: Any, rng: np.random.Generator, large: bool) -> np.ndarray:
    """Positive whole inner cells, of very different sizes, with a total of 10 to 3·10⁹."""
    total = MOST if large else 10 ** rng.uniform(1, np.log10(MOST))
    size = rng.lognormal(0, 4 if large else 2, design.n_inner)
    found: np.ndarray = np.maximum(np.round(total * size / size.sum()), 1.0)
    return found


def case_of(
    seed: int,
    *,
    noise: bool,
    weigh: bool,
    exact: bool = False,
    large: bool = False,
    near: bool = False,
) -> Case:
    """A case; weights have three digits, so that fractions stay short.

    Large ones are matrices with the largest total, and cells of all sizes up to it. Near ones have
    noise of some counts only.
    """
    rng = np.random.default_rng(seed)
    design = random_design("matrix" if large else KINDS[seed % len(KINDS)], rng)
    truth = random_table(design, rng, large)
    z, w = np.asarray(design.aggregate(truth), dtype=float), np.ones(design.n_published)
    if weigh:
        w = np.array([float(f"{v:.2e}") for v in 10 ** rng.uniform(-3, 4, len(z))])
    met = tuple(sorted(rng.choice(len(z), min(len(z), 3), replace=False))) if exact else ()
    if noise:
        scale = rng.choice([1.0, 30.0, 0.02 * z.max()])
        moved = z + np.round(rng.laplace(0, scale, len(z)))
        moved[list(met)] = z[list(met)]
        z = moved
    if near:
        z = np.maximum(z + rng.integers(-MOST_MOVE, MOST_MOVE + 1, len(z)), 0.0)
    return Case(design, truth, z, w, tuple(int(k) for k in met))


Judgement = float | bool | None
"""A deviation in counts; whether it is right; or nothing where the reference found none."""


def off(case: Case, fit: Fit, reference: Any) -> Judgement:
    """The largest deviation from the published cells of a reference, of those in use."""
    if reference is None:
        return None
    wanted = np.array([float(v) for v in reference])
    return float(np.abs(fit.z - wanted).max())


def judge_least_squares(case: Case, fit: Fit) -> Judgement:
    """The published cells of the projection."""
    return off(case, fit, LeastSquaresReference(case.X, case.z, case.w, ()).without_bounds())


def judge_non_negative(case: Case, fit: Fit) -> Judgement:
    """The published cells of the projection within bounds; no cell is negative."""
    if fit.y.min() < 0:
        return False
    reference = LeastSquaresReference(case.X, case.z, case.w, case.exact)
    return off(case, fit, reference.not_negative())


def judge_log_linear(case: Case, fit: Fit) -> Judgement:
    """The inner cells of the table of largest entropy."""
    reference = log_linear(case.X, case.z)
    return None if reference is None else float(np.abs(fit.y - reference).max())


def judge_margins(case: Case, fit: Fit) -> Judgement:
    """Published cells that some table has are those of the fit, and no cell is negative."""
    return False if fit.y.min() < 0 else off(case, fit, case.z)


def judge_poisson(case: Case, fit: Fit) -> Judgement:
    """The loss is the least, by the fit's own proof in forty digits and beside another table."""
    loss, gap = poisson_gap(case.X, case.z, case.w, fit.y, fit.notes["dual"])
    allowed = 1e-3 * (loss + float(case.w.max()))
    least = poisson_loss(case.X, case.z, case.w)
    return bool(gap <= allowed and loss <= least + allowed and fit.y.min() >= 0)


def judge_absolute(case: Case, fit: Fit) -> Judgement:
    """The loss is that of a linear program, but for the tolerance; exact margins are met."""
    X, w, (n, m) = case.X, np.sqrt(case.w), case.X.shape
    A = np.hstack([X.T, -np.eye(m), np.eye(m)])
    slack = np.full(m, np.inf)
    slack[list(case.exact)], w[list(case.exact)] = 0.0, 0.0
    bounds = np.column_stack([np.zeros(n + 2 * m), np.concatenate([[np.inf] * n, slack, slack])])
    cost = np.concatenate([np.zeros(n), w, w])
    solve: Any = linprog  # its types know no pairs of bounds in an array
    program = solve(cost, A_eq=A, b_eq=case.z, bounds=bounds, method="highs")
    if program.status:
        return None
    off = np.abs(fit.z - case.z)
    if off[list(case.exact)].max(initial=0.0) > case.allowed:
        return False
    loss = float(w @ off)
    return bool(loss <= program.fun + 2e-3 * max(program.fun, 1.0) and fit.y.min() >= 0)


def judge_laws(case: Case, fit: Fit) -> Judgement:
    """Published cells are not negative, and sums of inner cells."""
    sums = case.design.aggregate(fit.y)
    return bool(fit.z.min() >= -COUNTS and np.abs(fit.z - sums).max() <= case.allowed)


def judge_whole(case: Case, fit: Fit) -> Judgement:
    """Inner cells are whole numbers, none negative, and published ones their sums."""
    is_whole = bool((np.asarray(fit.y) == np.round(fit.y)).all() and np.min(fit.y) >= 0)
    return is_whole and bool((fit.z == case.design.aggregate(fit.y)).all())


def likelihoods_of(case: Case) -> CellLikelihoods:
    """What values say of counts at most ten away, each step half as likely as the one before."""
    span = np.arange(-2.0 * MOST_MOVE, 2.0 * MOST_MOVE + 1)
    rows = ((v + span, -np.abs(span) * np.log(2.0)) for v in case.z)
    return CellLikelihoods.of((c[c >= 0], p[c >= 0]) for c, p in rows)


def judge_likely(case: Case, fit: Fit) -> Judgement:
    """A whole table, no less likely than the truth, which is a table too."""
    law, y = likelihoods_of(case), np.asarray(fit.y, dtype=float)
    found, truth = map(law.log_likelihood, map(case.design.aggregate, (y, case.truth)))
    return bool(judge_whole(case, fit)) and found >= truth - 1e-5 * max(1.0, abs(truth))


def adjusted(case: Case) -> Any:
    """`Adjust` behind cell-key noise; it arrived where its loss is that of an integer program."""

    def fit(design: Any, z: np.ndarray, *, weights: np.ndarray) -> Fit:
        rng = np.random.default_rng(int(case.truth.sum()))
        table = dc.Table.from_inner(design, case.truth.astype(np.int64)).rekeyed(rng)
        noise = dc.CellKey(dc.perturbation_table(D=int(MOST_MOVE), V=3, js=2))
        noisy, frame = noise(table, draws=SeededDraws(1)).z, CellsInUse.of(table)
        given: Any = (noisy[frame.cells], table.z[frame.cells])
        problem, _, aside = adjustment(frame, *given, min_count=3, weights=None, max_move=MOST_MOVE)
        least = adjust_exactly(problem, table.y[frame.rows] - aside)[0]
        true: Any = table  # whole numbers, where fits have real ones elsewhere
        try:
            made: Any = dc.Adjust(noise)(table, draws=SeededDraws(1)).z
        except DiscreetError:
            if np.isnan(least):
                return Fit(true.y, true.z, Status.infeasible, Certificate(), design=design)
            raise
        gap = float(np.abs(made - noisy).sum()) - least
        status = Status.converged if gap <= 0.01 * max(least, 1.0) else Status.stalled
        return Fit(true.y, made, status, Certificate(gap=max(gap, 0.0)), design=design)

    return fit


def judge_adjusted(case: Case, fit: Fit) -> Judgement:
    """Counts are near enough and none is a one or a two; some table has them."""
    moved, blocked = np.abs(fit.z - case.design.aggregate(case.truth)), (fit.z > 0) & (fit.z < 3)
    sums = LeastSquaresReference(case.X, fit.z, np.ones(len(fit.z)), ()).without_bounds()
    return not blocked.any() and moved.max() <= MOST_MOVE and list(fit.z) == sums


def judge_from_margins(case: Case, fit: Any) -> Judgement:
    """The best linear unbiased margins; those of the records are sums of whole numbers.

    Margins without negative cells are the nearest ones where all variables have one together. Else
    they need not belong to a table, so that none is nearer to the published cells.
    """
    if (fit.records < 0).any() or len(fit.records) != RECORDS:
        return False
    # Margins alone know of structural zeros what published cells of the crossing show of them.
    lift = case.design.crossing
    full = np.asarray(lift.design.matrix().toarray(), dtype=float)
    z, w = (lift.to_public_cells(v, 0.0) for v in (case.z, case.w))
    empty = np.flatnonzero(lift.to_public_cells(np.zeros(len(case.z)), 1.0))
    found = LeastSquaresReference(full, z, np.where(w > 0, w, 1.0), empty.tolist())
    reference = found.without_bounds()
    if reference is None:
        return None
    wanted = np.array([float(v) for v in reference])[lift.published]
    deviation = float(np.abs(fit.unbiased - wanted).max())
    table = found.not_negative()
    if table is None:
        return deviation
    nearest, bounded = np.array([float(v) for v in table])[lift.published], fit.non_negative
    if len(axes_of(lift.design.blocks[0])) == len(lift.design.axes):
        return max(deviation, float(np.abs(bounded - nearest).max()))
    losses = [float(case.w @ (cells - case.z) ** 2) for cells in (bounded, nearest)]
    is_nearest = losses[0] <= losses[1] * (1 + 1e-6) + 1e-3 and bounded.min() >= 0
    return deviation if is_nearest else False


NOISY, TRUE = {"noise": True, "weigh": True}, {"noise": False, "weigh": False}
NEAR = {"noise": False, "weigh": True, "near": True}
EXACT, LARGE = NOISY | {"exact": True}, TRUE | {"large": True}
FITTERS: dict[str, tuple[Callable[[Case], Any], dict[str, bool], Callable[[Case, Fit], Judgement]]]
FITTERS = {
    "least-squares": (lambda _: dc.LeastSquares(), NOISY, judge_least_squares),
    "non-negative": (lambda _: dc.NonNegative(), NOISY, judge_non_negative),
    "non-negative, exact": (lambda c: dc.NonNegative(exact=c.exact), EXACT, judge_non_negative),
    "non-negative, exact, additive": (
        lambda c: dc.NonNegative(exact=c.exact),
        EXACT | {"noise": False},
        judge_margins,
    ),
    "log-linear": (lambda _: dc.LogLinear(), TRUE, judge_log_linear),
    "log-linear, large": (lambda _: dc.LogLinear(), LARGE, judge_log_linear),
    "auto, large": (lambda _: dc.solve.Auto(), LARGE, judge_margins),
    "auto, additive": (lambda _: dc.solve.Auto(), TRUE, judge_margins),
    "auto, noise": (lambda _: dc.solve.Auto(), NOISY, judge_non_negative),
    "chain": (lambda _: dc.solve.Chain(), NOISY, judge_non_negative),
    "additive": (lambda _: dc.Additive(), NOISY, judge_laws),
    "poisson": (lambda _: dc.solve.Poisson(), NOISY, judge_poisson),
    "least-absolute": (lambda _: dc.LeastAbsolute(), NOISY, judge_absolute),
    "least-absolute, exact": (lambda c: dc.LeastAbsolute(exact=c.exact), EXACT, judge_absolute),
    "whole-number": (lambda _: dc.solve.WholeNumber(), NOISY, judge_whole),
    "noise-likelihood": (
        lambda c: dc.solve.NoiseLikelihood(likelihoods_of(c)),
        NEAR,
        judge_likely,
    ),
    "adjust": (adjusted, TRUE, judge_adjusted),
    "from-margins": (
        lambda _: dc.solve.FromMargins(n_records=RECORDS, temperature=0),
        NOISY,
        judge_from_margins,
    ),
}


@dataclass
class Count:
    """What became of a fitter's cases."""

    outcomes: Counter[str]
    worst: float = 0.0
    seconds: float = 0.0

    def add(self, case: Case, fit: Fit, found: Judgement) -> None:
        """Count a fit and what its reference says."""
        outcomes, status = self.outcomes, fit.status.name
        is_off = found is False or (found is not True and (found or 0.0) > case.allowed)
        refuses = status in ("infeasible", "inconsistent")
        outcomes["unjudged"] += found is None
        if fit.is_converged:
            outcomes["converged"] += 1
            outcomes["wrong"] += is_off
            self.worst = max(self.worst, float(found) if found is not True and found else 0.0)
        elif refuses:
            # Every case has a table: the truth meets exact margins, and margins without noise.
            outcomes["refused"] += 1
            outcomes["wrongly"] += bool(case.exact) or bool(
                (case.z == case.design.aggregate(case.truth)).all()
            )
        else:
            outcomes["not reached"] += 1
            far = max(1.0, FAR * float(np.abs(case.z).max()))
            outcomes["far off"] += found is False or (found is not True and (found or 0.0) > far)


def judge(name: str, n: int, first: int = 0) -> Count:
    """Fit and judge the cases of one fitter."""
    make, options, ask = FITTERS[name]
    count = Count(Counter())
    for case in cases(name, range(first, first + n), options):
        began = time.process_time()
        try:
            fit = make(case)(case.design, case.z, weights=case.w)
        except (DiscreetError, ArithmeticError, ValueError, TypeError) as error:
            count.outcomes["raised"] += 1
            count.outcomes[type(error).__name__] += 1
            continue
        finally:
            count.seconds += time.process_time() - began
        count.add(case, fit, ask(case, fit))
    return count


def cases(name: str, seeds: range, options: dict[str, bool]) -> Iterator[Case]:
    """The cases of one fitter; likelihoods take no negative values."""
    for seed in seeds:
        # These need variables: every fourth seed is that of a matrix.
        needs_variables = name in ("adjust", "from-margins")
        case = case_of(4 * seed + 1 + seed % 3 if needs_variables else seed, **options)
        if name == "poisson":
            case = Case(case.design, case.truth, np.maximum(case.z, 0.0), case.w)
        yield case


def main() -> int:
    """A line for every fitter; the exit status is one where a fit is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=120)
    parser.add_argument("--first", type=int, default=0, help="The first seed.")
    parser.add_argument("fitters", nargs="*", metavar="FITTER", help=", ".join(FITTERS))
    options = parser.parse_args()
    rows, wrong = [], 0
    for name in options.fitters or FITTERS:
        count = judge(name, options.cases, options.first)
        o = count.outcomes
        wrong += o["wrong"] + o["wrongly"] + o["raised"]
        rows.append([name, options.cases, *(o[key] for key in HEADER[2:10])])
        rows[-1] += [count.worst, count.seconds]
        print(*rows[-1], flush=True)
    print_table(HEADER, rows)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
