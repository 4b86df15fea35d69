r"""Least squares fits of tables that are never stored, through their dual.

For a ridge :math:`\rho` the optimum is :math:`y = \max(0, s + qX\nu)`, or :math:`s + qX\nu` where
it may be negative, with one value of :math:`\nu` for each published cell, found by Newton's method.
The ridge is lowered until its systems would become ill-conditioned; then its bias is taken out by
moving its centre to the last point, again and again (the proximal point method on the dual, which
is Bregman iteration on the fit). Every iterate keeps its form, so that of all tables that fit
equally well the one nearest to the starting table is approached. The form needs no proof, its
margins take one pass, and the largest entry of the projected gradient takes another.

Exact margins are margins of a very large weight: what is left of their deviation is that weight's
inverse times a multiplier, below any count. Cells of weight zero have the multiplier zero.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TypeGuard

import numpy as np

from discreet.arrays import Mask, Real, Whole
from discreet.design.base import Design
from discreet.design.fused.contradictions import Contradictions
from discreet.design.fused.null_space import MOST_UNUSED, NullSpace
from discreet.design.fused.passes import Passes
from discreet.design.inner import ModelTable
from discreet.design.product import ProductDesign
from discreet.design.structured import StructuredDesign
from discreet.design.support import LARGEST_DENSE
from discreet.progress import report
from discreet.solve.dual_newton import DualNewton
from discreet.solve.fit import Certificate, Fit, Status
from discreet.solve.least_squares.basis import pseudo_inverse
from discreet.solve.least_squares.problem import RESOLVED, Accuracy, Prior, Targets

# Inner cells from which passes that store nothing beat gathered cells.
NEVER_STORED = 50_000
# Share of the inner cells that hierarchies may publish; with more, active sets are faster.
MOST_WITH_LEVELS = 0.125
# Factor by which the ridge falls: the next optimum is foreseen, so that stages may lie far apart.
_LOWER = 0.03
# Ridge, relative to the typical weight of all margins of a cell together, below which conjugate
# gradients slow down, and moving the centre is cheaper.
_FLOOR = 1e-2
# Where moving the centre leaves more than this part of the gradient, a cell is all but free to be
# positive, and the path is long: the ridge falls further, to this part of its floor at least.
_SLOW, _LEAST = 0.5, 0.01
# A stage may leave this part of the gradient that the last one ended with.
_LOOSE = 0.002
# Stages after which the fit gives up.
_STAGES = 60
# Conjugate gradient steps after which another method takes over;
MOST_GRADIENTS = 1_500
# where fewer cells are positive than there are unknowns, Newton systems are nearly singular, and
# conjugate gradients on these cells are faster;
MOST_DEGENERATE = 100
# and where the table cannot be stored, no other method can take over.
_MOST_UNSTORED = 20_000
# Weight of exact margins, times the largest of the others.
_EXACT = 1e8
# Part of what a certificate allows that the method may leave.
_SAFELY = 0.5


def suits_dual_fit(design: Design, weights: Real) -> TypeGuard[StructuredDesign]:
    """Whether the method applies: passes, margins alone, and not too many cells unused."""
    structured = design.over_variables
    if structured is None or not (weights > 0).any():
        return False
    publishes_inner_cells = any(block.order == len(design.axes) for block in design.blocks)
    if publishes_inner_cells or not structured.has_passes:
        return False
    full = structured.crossing.design
    are_few = design.n_published <= MOST_WITH_LEVELS * design.n_inner
    is_known = NullSpace.is_known(full) and (_is_flat(full) or are_few)
    return is_known and len(_unused_cells(structured, weights)) <= MOST_UNUSED


def _unused_cells(design: StructuredDesign, weights: Real) -> Whole:
    """Cells of weight zero, but for blocks that the null space leaves out as a whole."""
    empty = np.maximum.reduceat(weights, design.offsets[:-1]) == 0
    is_left_out = np.repeat(empty, np.diff(design.offsets)) & _is_flat(design.crossing.design)
    return np.flatnonzero((weights == 0) & ~is_left_out)


def _is_flat(design: ProductDesign) -> bool:
    return len(Contradictions.flat_blocks(design)) == len(design.blocks)


class UnstoredFit:
    """One fit of a complete design, or of one whose structural zeros are masks.

    The link of its passes is `"positive"` or `"linear"`; `penalty` is the factor of a ridge that is
    part of the objective.
    """

    def __init__(
        self,
        design: StructuredDesign,
        link: str,
        targets: Targets,
        accuracy: Accuracy,
        prior: Prior,
        penalty: float = 0.0,
        device: str = "cpu",
    ) -> None:
        start, variance = prior.start, prior.variance
        self.passes: Passes = design.fused(link, start=start, variance=variance, device=device)
        if prior.given is not None:  # cells that may not move are taken out of the targets
            left = np.where(targets.weights > 0, targets.z - design.aggregate(prior.given), 0.0)
            targets = replace(targets, z=left)
        self.design, self.targets, self.accuracy = design, targets, accuracy
        self.prior, self.penalty = prior, penalty

    def run(self) -> Fit | None:
        """The fit; `None` where it was not reached and the table can be stored."""
        began, held, given = time.perf_counter(), self.targets.held, self.prior.given
        nu, residuals, gradients = self._minimise(_SAFELY * self._limit())
        margins, certificate = self.certify(nu.copy(), residuals[held])
        if not certificate.holds and self.design.n_inner <= LARGEST_DENSE:
            return None
        notes = {
            "solver": "Newton on the dual",
            "device": self.passes.device,
            "passes": self.passes.n_passes,
            "dual": None if self.penalty else nu,
            "held": held,
            "multipliers": residuals[held],
        }
        start = self.prior.start
        if given is not None:
            start = given if start is None else start + given
            margins = margins + self.design.aggregate(given)
        return Fit(
            ModelTable(self.design, self.passes.link, nu, start, self.prior.variance),
            margins,
            Status.converged if certificate.holds else Status.stalled,
            certificate,
            gradients,
            time.perf_counter() - began,
            notes,
            self.design,
        )

    def _minimise(self, within: float) -> tuple[Real, Real, int]:
        """Lower the ridge, then move its centre, until the projected gradient is within a limit.

        Returns the point, weighted residuals with the multipliers of exact margins in their place,
        and the conjugate gradient steps taken.
        """
        passes, n, used = self.passes, len(self.design.blocks), self.targets.weights > 0
        # Margins of the variances; where all are one, how many inner cells each margin counts.
        anywhere = np.zeros(self.design.n_published)
        anywhere[self.design.slice_of(0)] = 1.0
        sizes = passes.to_host(passes.slope(passes.to_device(anywhere)))
        variance = float(sizes[self.design.slice_of(0)].sum()) / self.design.n_inner
        newton, ridge, floor = self._newton(sizes, variance)
        given = (self.targets.z, self.targets.weights, self.targets.exact)
        z, weights, exact = map(passes.to_device, given)
        scales = passes.to_device(1.0 / np.where(used, self.targets.weights, 1.0))
        # The first ridge only finds the scale of the table, so a tenth of the largest cell will do.
        bound = float(np.abs(self.targets.z).max(initial=1.0)) / 10
        path, before = _Path(newton), np.inf
        for stage in range(_STAGES):
            path.follow(ridge)
            newton.solve(ridge, bound * scales if stage else bound)
            residuals = weights * (z - newton.at.margins)
            residuals[exact] = ridge * (newton.nu - newton.centre)[exact]
            gradient = passes.largest_gradient(newton.nu, residuals - self.penalty * newton.nu)
            report("fit", stage / _STAGES)
            is_lowest, most = ridge <= floor, self._most_gradients(newton, variance)
            is_slow, before = gradient > _SLOW * before, gradient
            if (is_lowest and gradient <= within) or newton.gradients > most:
                break
            # First the ridge falls, where stages are cheap. At its floor the centre moves instead,
            # which takes out the bias of the ridge; a penalty is meant to have one.
            if not is_lowest:
                ridge = max(_LOWER * ridge, floor)
            elif not self.penalty:
                newton.centre = newton.nu
                path.base = path.at
                ridge = max(_LOWER * ridge, _LEAST * floor) if is_slow else ridge
            bound = max(_LOOSE * gradient, within / 4) / n
        return passes.to_host(newton.nu), passes.to_host(residuals), newton.gradients

    def _newton(self, sizes: Real, variance: float) -> tuple[DualNewton, float, float]:
        """Newton's method, with unused cells held at zero like others; the ridges to go through."""
        design, z, weights = self.design, self.targets.z, self.targets.weights.copy()
        soft = np.delete(weights, self.targets.exact)
        largest = float(soft.max(initial=0.0)) or 1.0
        # What is left of an exact margin's deviation is its multiplier over this weight.
        weights[self.targets.exact] = _EXACT * largest
        used, embedding = weights > 0, design.crossing
        by_block = [_geometric_mean(weights[design.slice_of(k)]) for k in range(len(design.blocks))]
        if not _is_flat(embedding.design):
            by_block = [weight or 1.0 for weight in by_block]
        places = np.arange(embedding.design.n_published)[embedding.published]
        unused = places[_unused_cells(design, weights)]
        null, even = NullSpace(embedding, tuple(by_block), unused), used * self._even(sizes, used)
        vectors = (z, 1.0 / np.where(used, weights, 1.0), null, even)
        newton = DualNewton(self.passes, *map(self.passes.to_device, vectors))
        if not used.all():
            newton.used = self.passes.to_device(used.astype(np.float64))
        ridge = float((sizes * np.minimum(weights, largest))[used].mean())
        typical = _geometric_mean(soft) or _geometric_mean(weights)
        floor = self.penalty or _FLOOR * len(design.blocks) * typical * variance
        return newton, ridge, floor

    def _even(self, sizes: Real, used: Mask) -> Real:
        """The point of an even table: all its cells answer, so that the first step is a fair one.

        With a starting table it is the one moved evenly to the total that is asked for.
        """
        design, z = self.design, self.targets.z
        fullest = max(range(len(design.blocks)), key=lambda k: used[design.slice_of(k)].mean())
        nu, place = np.zeros_like(z), design.slice_of(fullest)
        begin = self.passes.to_host(self.passes.table(self.passes.to_device(nu)).margins)[place]
        total = max(float(z[place].sum()), 1.0)
        nu[place] = (total - begin.sum()) / sizes[place].sum()
        return nu

    def _most_gradients(self, newton: DualNewton, variance: float) -> int:
        """Conjugate gradient steps that may be taken, given about how many cells are positive."""
        if self.design.n_inner > LARGEST_DENSE:
            return _MOST_UNSTORED
        positive = float(self.passes.slope(newton.nu)[self.design.slice_of(0)].sum()) / variance
        is_degenerate = positive < self.design.n_published
        return MOST_DEGENERATE if is_degenerate else MOST_GRADIENTS

    def certify(self, nu: Real, multipliers: Real) -> tuple[Real, Certificate]:
        r"""Margins of the table at :math:`\nu`, and how well they meet an optimum's conditions.

        Nothing that the solver computed is used but :math:`\nu` and the multipliers of the margins
        that are held. The limit of the cell with the strictest one serves all.
        """
        targets, tolerance, passes = self.targets, self.accuracy.tolerance, self.passes
        at, limit = passes.to_device(nu), self._limit()
        margins = passes.to_host(passes.table(at).margins)
        residuals = targets.weights * (targets.z - margins)
        residuals[targets.held] = multipliers
        gradient, cell = passes.steepest_cell(at, passes.to_device(residuals - self.penalty * nu))
        off = np.abs((targets.z - margins)[targets.held] - targets.slack * multipliers)
        exactly = RESOLVED * np.abs(targets.z[targets.held])
        share = off / np.maximum(self.accuracy.deviation(targets.z), exactly)
        deviation, worst = self._in_counts(gradient, cell)
        if share.max(initial=0.0) > gradient / limit:
            far = int(share.argmax())
            deviation, worst = float(off[far]), int(targets.held[far])
        return margins, Certificate(
            stationarity=tolerance * gradient / limit,
            feasibility=tolerance * float(share.max(initial=0.0)),
            tolerance=tolerance,
            deviation=deviation,
            cell=worst,
        )

    def _in_counts(self, gradient: float, leaves: tuple[int, ...]) -> tuple[float, int | None]:
        """The gradient of an inner cell as the deviation of a published cell, and which one."""
        design, weights = self.design, self.targets.weights
        found = (design.locate(k, leaves) for k in range(len(design.blocks)))
        members = [int(design.published_at(k, flat)) for k, (flat, _) in enumerate(found)]
        counting = [k for k in members if weights[k] > 0]
        cells = [k for k in counting if k not in self.targets.held] or counting
        if not cells:
            return 0.0, None
        cell = min(cells, key=lambda k: weights[k])
        return gradient / float(weights[cell]), cell

    def _limit(self) -> float:
        """A gradient that no inner cell may exceed: the lowest of `CertificateLimits`, or less."""
        soft, deviation = self.targets.weights.copy(), self.accuracy.deviation(self.targets.z)
        soft[self.targets.held] = 0.0
        starts = self.design.offsets[:-1]
        total = float(np.minimum.reduceat(soft, starts).sum())
        spread = float(np.maximum.reduceat(pseudo_inverse(soft), starts).sum())
        if total > 0:
            return deviation * float(np.sqrt(total / spread))
        return deviation * (float(soft[soft > 0].min()) if soft.any() else 1.0)


class _Path:
    r"""Where the next optimum is likely to be: along the line through the last two.

    With the centre at zero the optimum of a ridge is :math:`b + a/\rho` but for little, where `a`
    is what no table can answer to; a centre moved to it adds :math:`a/\rho` again.
    """

    def __init__(self, newton: DualNewton) -> None:
        self.newton, self.base, self.at = newton, 0.0, 0.0
        self._last: tuple[float, Real] | None = None

    def follow(self, ridge: float) -> None:
        """Begin where the line says, if that is nearer to the optimum of a ridge."""
        newton, ahead, last = self.newton, self.base + 1.0 / ridge, self._last
        self._last = self.at, newton.nu
        if last is not None and self.at > last[0]:
            share = (ahead - self.at) / (self.at - last[0])
            newton.try_at(newton.nu + share * (newton.nu - last[1]), ridge)
        self.at = ahead


def _geometric_mean(weights: Real) -> float:
    """The geometric mean of those that are positive; zero where none is."""
    positive = weights[weights > 0]
    return float(np.exp(np.log(positive).mean())) if len(positive) else 0.0
