"""Annealing: a problem in compiled form, and chains that sweep it while the temperature falls."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.arrays import Array, Real, Whole, Whole32
from discreet.errors import DesignError
from discreet.progress import report
from discreet.solve.integer.kernels import (
    FIRST,
    HIGH,
    LAST,
    LOW,
    STEP,
    VALUE,
    WEIGHT,
    WIDTH,
    ZERO,
    LatticeModel,
    LossRule,
    SearchChain,
    energy_of,
    sweep,
)
from discreet.solve.integer.problem import LatticeProblem

# Fewer than ten sweeps leave cells untouched; after 4,000 small problems have long frozen. Tiny
# problems may be swept more often, up to a million proposals, since that costs nothing.
_FEWEST_SWEEPS, MOST_SWEEPS, _TINY = 10, 4000, 1_000_000
# Proposals between two looks at the clock: more make progress jump, fewer pay for calls.
_AT_ONCE = 2_000_000
# Pairs of sweeps downhill at the end of a stage; they stop by themselves where nothing gets better,
# and take no more than one part in eight of a stage's sweeps.
_QUENCHES, _QUENCH_SHARE = 50, 8
# What a forbidden published value costs while annealing, in losses of one published cell. Mending,
# which comes after, takes 10,000 times as much: here a path may still lead across such values.
_FORBIDDEN_COST = 10.0
# Limits are held in single precision, where 0.7 is 0.69999999: what just keeps a limit must not be
# taken for a breach, and whole steps are far larger than this slack.
_SLACK = 1e-3
# Real targets are held on this grid: sums of whole steps and multiples of 2⁻²⁰ are exact, so that
# deviations carried along equal recomputed ones bit for bit.
_TARGET_GRID = 2.0**20
# Whole deviations are held in 32 bits; targets below half of that leave as much for the cells.
_LARGEST_EXACT = 2**30

Each = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]


class SearchStage:
    """A share of the effort: so many proposals over some inner cells, or so many seconds instead.

    Counted in proposals the same seed gives the same result everywhere; counted in seconds it
    depends on the machine. Progress is reported within `span`, the stage's part of the search.
    """

    def __init__(
        self,
        cells: int,
        proposals: float,
        seconds: float | None,
        span: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        self.cells = max(cells, 1)
        most = max(MOST_SWEEPS, _TINY // self.cells)
        self.sweeps = int(min(max(proposals // self.cells, _FEWEST_SWEEPS), most))
        self.seconds, self.span = seconds, span
        self.begin, self.done = time.monotonic(), 0

    def spend(self, proposals: int) -> None:
        """Note proposals that were made, and tell whoever listens how far the search is."""
        self.done += proposals
        low, high = self.span
        report("search", low + (high - low) * self.fraction)

    @property
    def fraction(self) -> float:
        """The part of the stage that is over, from 0 to 1."""
        if self.seconds is not None:
            return min((time.monotonic() - self.begin) / max(self.seconds, 1e-9), 1.0)
        return min(self.done / (self.sweeps * self.cells), 1.0)

    @property
    def is_overdue(self) -> bool:
        """Whether a stage that is timed has taken a tenth more than its time."""
        return self.seconds is not None and time.monotonic() - self.begin > 1.1 * self.seconds

    def chunk(self) -> int:
        """How many sweeps to make before looking up again."""
        fitting = max(_AT_ONCE // self.cells, 1)
        if self.seconds is not None:
            return fitting
        left = self.sweeps - self.done // self.cells
        # A twentieth at most, so that a listener sees short searches move, too.
        return max(min(fitting, left, self.sweeps // 20), 1)


def in_turn(work: Any, items: Sequence[Any]) -> list[Any]:
    """Do the work for one item after the other."""
    return [work(item) for item in items]


def anneal(
    form: CompiledProblem,
    chains: Sequence[SearchChain],
    stage: SearchStage,
    heat: tuple[float, float],
    pairs: float,
    each: Each,
) -> int:
    """Cool from `heat[0]` to `heat[1]` (in units of the loss's scale), then go downhill.

    Every chain ends at the best point it has seen. They go on together, so that a search that is
    timed gives each of them as much. Returns how many proposals the chains made.
    """
    hot, cold = (form.scale * h for h in heat)
    made, here, width = 0, 0.0, 0.0
    while here < 1.0:
        sweeps = stage.chunk()
        # By the clock nobody knows how wide a chunk will be; the last one's width is the guess.
        if stage.seconds is None:
            width = sweeps / stage.sweeps
        points = here + width * (np.arange(sweeps) + 0.5) / sweeps
        temperatures = hot * (cold / hot) ** np.minimum(points, 1.0)
        made += _sweep_all(form, chains, temperatures, pairs, each)
        stage.spend(sweeps * stage.cells)
        width, here = stage.fraction - here, stage.fraction
    return made + _quench(form, chains, stage, pairs, each)


def _quench(
    form: CompiledProblem,
    chains: Sequence[SearchChain],
    stage: SearchStage,
    pairs: float,
    each: Each,
) -> int:
    """Sweep downhill until nothing gets better or it takes too long; go to the best point seen."""
    made = 0
    for _ in range(min(_QUENCHES, max(stage.sweeps // _QUENCH_SHARE, 2))):
        if stage.is_overdue:
            break
        before = [chain.energy[1] for chain in chains]
        made += _sweep_all(form, chains, np.zeros(2), pairs, each)
        if all(chain.energy[1] >= b for chain, b in zip(chains, before, strict=True)):
            break
    for chain in chains:
        form.require_exact(chain)
        restart(form, chain, chain.best)  # the energy carried along has gathered rounding errors
    return made


def _sweep_all(
    form: CompiledProblem, chains: Sequence[SearchChain], heat: Real, pairs: float, each: Each
) -> int:
    each(lambda chain: sweep(form.model, chain, heat, pairs), chains)
    return len(chains) * len(heat) * len(form.model.members)


def restart(form: CompiledProblem, chain: SearchChain, y: Whole32) -> None:
    """Put a chain at a point, with deviations and energy computed anew."""
    overwrite(chain, form.chain(y, chain.random[0]))


def overwrite(chain: SearchChain, other: SearchChain) -> None:
    """Give a chain the state of another."""
    pairs: Any = zip(chain, other, strict=True)
    for kept, new in pairs:
        kept[:] = new


@dataclass(frozen=True, eq=False)
class CompiledProblem:
    """A problem with its model, target on the grid, and scales of its loss."""

    problem: LatticeProblem
    model: LatticeModel
    target: Array
    rest: Whole
    scale: float  # what a typical smallest step costs, when all its published cells were right
    unit: float  # the same for a single published cell

    def deviation(self, y: Whole32) -> Array:
        """Deviations of a point, recomputed from the inner cells, and a spare entry."""
        whole = self.problem.design.aggregate(self.full(y)) - self.target
        kind = np.float64 if self.target.dtype.kind == "f" else np.int32
        return np.append(whole, 0).astype(kind)

    def full(self, y: Whole32) -> Whole:
        """All inner cells: the point, and the cells that have no choice."""
        inner = self.rest.copy()
        inner[self.problem.rows] = y
        return inner

    def with_limits(self, low: Array, high: Array, excess: float) -> CompiledProblem:
        """The same problem with limits that cost `excess` units when they are broken by one."""
        cells = self.model.cells.copy()
        cells[:-1, LOW], cells[:-1, HIGH] = low - _SLACK, high + _SLACK
        rule = self.model.rule._replace(excess=float(excess * self.unit), plain=False)
        return replace(self, model=self.model._replace(cells=cells, rule=rule))

    def chain(self, y: Whole32, seed: np.uint64) -> SearchChain:
        """A chain that starts at a point."""
        deviation = self.deviation(y)
        energy = energy_of(self.model.cells, self.model.rule, deviation)
        energies, random = np.array([energy, energy]), np.array([seed], dtype=np.uint64)
        return SearchChain(y.copy(), y.copy(), deviation, energies, random)

    def require_exact(self, chain: SearchChain) -> None:
        """Raise an error unless the chain's deviations are those of its inner cells."""
        if not np.array_equal(self.deviation(chain.y)[:-1], chain.deviation[:-1]):
            raise DesignError(
                "deviations carried along by the search differ from recomputed ones; "
                "please report this."
            )


def compile_problem(problem: LatticeProblem) -> CompiledProblem:
    """The model of a problem; inner cells without a choice are left out of it."""
    rows = problem.rows
    members = problem.design.members(rows)
    is_unweighted = problem.weights is None or bool((problem.weights == 1).all())
    plain = problem.power == 2 and is_unweighted and not problem.blocked
    rule = LossRule(float(problem.power), 0.0, problem.blocked, plain)
    cells = np.zeros((problem.design.n_published + 1, 4), dtype=np.float32)
    low, high = problem.limits
    cells[:-1, WEIGHT] = 1.0 if problem.weights is None else problem.weights
    cells[:-1, LOW], cells[:-1, HIGH] = low - _SLACK, high + _SLACK
    if problem.blocked:
        cells[:-1, VALUE] = problem.full_target
    # Nothing is ever broken in the spare row, whatever is added to its deviation.
    cells[-1, LOW], cells[-1, HIGH], cells[-1, VALUE] = -np.inf, np.inf, -np.inf
    model = LatticeModel(members, _places(problem, members), cells, rule)
    scale, unit = _scales(model)
    if problem.blocked:
        model = model._replace(rule=rule._replace(excess=_FORBIDDEN_COST * unit))
    rest = problem.domain.low.astype(np.int64)
    rest[rows] = 0
    target = np.asarray(problem.target)
    if (target == np.rint(target)).all() and np.abs(target).max(initial=0) < _LARGEST_EXACT:
        target = target.astype(np.int64)
    else:
        target = np.rint(target * _TARGET_GRID) / _TARGET_GRID
    return CompiledProblem(problem, model, target, rest, scale, unit)


def _places(problem: LatticeProblem, members: Whole32) -> Whole32:
    """Domain and number of published cells of each inner cell that has a choice."""
    part = problem.domain.take(problem.rows)
    places = np.empty((len(members), 5), dtype=np.int32)
    places[:, FIRST], places[:, LAST] = part.first, part.last
    places[:, STEP], places[:, ZERO] = part.step, part.zero
    places[:, WIDTH] = 0
    # Column by column: a mask of all members would take a quarter of their memory once more.
    for column in members.T:
        places[:, WIDTH] += column < problem.design.n_published
    return places


def _scales(model: LatticeModel) -> tuple[float, float]:
    """Typical loss of the smallest step, for all published cells of an inner cell and for one."""
    # Some 10,000 cells give the median well enough.
    sample = slice(None, None, max(len(model.members) // 10_000, 1))
    weight = model.cells[model.members[sample], WEIGHT].sum(axis=1, dtype=np.float64)
    costs = weight * model.places[sample, STEP].astype(np.float64) ** model.rule.power
    if not len(costs):
        return 1.0, 1.0
    scale = float(np.median(costs))
    scale = scale if scale > 0 else 1.0  # where most weights are zero
    return scale, scale / max(float(np.mean(model.places[sample, WIDTH])), 1.0)
