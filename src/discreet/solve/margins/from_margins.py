"""Tables of a dozen variables and more from their margins, with records that have such margins."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import cast

import numpy as np

from discreet.arrays import Array, Real, Whole32
from discreet.design.base import Design
from discreet.design.inner import ListedTable
from discreet.design.product import ProductDesign
from discreet.design.structured import StructuredDesign
from discreet.errors import DesignError, ParameterError, is_number, whole
from discreet.randomness import stream
from discreet.solve.fit import (
    Certificate,
    Fit,
    FitterBase,
    Prepared,
    Status,
    check_tolerance,
    checked_values,
    checked_weights,
)
from discreet.solve.margins.effects import (
    Axes,
    EffectSpace,
    Estimate,
    estimate,
    known_from,
    leaf_axes,
    maximal,
    variances,
)
from discreet.solve.margins.non_negative import fit_non_negative
from discreet.solve.margins.records import SETTLING, TASK, Search, draw_records

# Temperatures that are tried, as shares of that of a Gibbs sampler, from hot to cold: one chain
# visits them all, and each begins where the one before ended.
_LADDER = (0.2, 0.1, 0.05, 0.03, 0.02, 0.01)
_SWEEPS = 3  # at each temperature, before and again while margins are averaged
_LAST_SWEEPS = 10  # at the chosen temperature, of which the margins are averaged
# Sweeps without chance at the end of the trial, and of the records at last.
_TRIAL_SETTLING, _LAST_SETTLING = 6, 8
_TRIAL_SWEEPS = 2 * _SWEEPS * len(_LADDER) + _TRIAL_SETTLING
_TRIED, _MOVED = 0.55, 0.9  # progress after the trial, and before the last sweeps
_SPLIT = 0.8  # noise added for a trial, in standard deviations; less makes its judge noisier
# Weight of structural zeros beside the most precise cells: larger ones cost steps, and the search
# avoids a cell of this weight as it is.
_IMPOSSIBLE = 100.0
_REPAIRS = 20  # rounds over rules that share variables, each of which may undo another
_LARGEST_RECORDS = 100_000_000
# By how many standard errors a cell of an estimate of drawn noise may be off, by a wide bound.
_DRAWN = 0.1
_RESOLVED = 1e-11  # share of the largest cell by which another is negative for rounding alone
_NO_NOISE = 1e-20  # share of the largest squared value that contradictions of true margins leave
_DRAWS = 64  # draws of noise from which standard errors are computed where there is no formula


@dataclass(frozen=True, eq=False, repr=False)
class MarginFit(Fit):
    """Records, and what is known of the margins beside them.

    `z` are the margins of the records: whole numbers that add up. They are nearer to the truth than
    the noisy values on average, but biased; intervals hold for `unbiased` alone.

    Attributes:
      unbiased: Best linear unbiased estimate of the published cells; cells may be negative.
      non_negative: Published cells that agree with each other and are not negative, before records
        are drawn.
      records: Records × variables: positions of codes. `Release.to_microdata` gives the codes.
      compute_errors: Computes `standard_errors`.
    """

    unbiased: Real = field(default_factory=lambda: np.zeros(0))
    non_negative: Real = field(default_factory=lambda: np.zeros(0))
    records: Whole32 = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int32))
    compute_errors: Callable[[], Real] = field(default=lambda: np.zeros(0))

    @cached_property
    def standard_errors(self) -> Real:
        """Standard errors of `unbiased`, in counts; not a number where the noise is not known.

        Cost: nothing where there is a formula, and a dense factor for few effects; else, with
        levels of hierarchies, structural zeros or uneven weights, 64 estimates of drawn noise.
        """
        return self.compute_errors()


@dataclass(frozen=True, eq=False)
class FromMargins(FitterBase):
    r"""Margins and records of a crossing that is too large to be walked through.

    Three answers of increasing strength: the best linear unbiased estimate of all margins, by their
    effects; margins that agree and are not negative; and records, by local search. The crossing of
    the variables is never formed: what is stored are published cells, effects and records.

    At a temperature above zero the search does not follow all of the noise. The temperature is
    chosen without the truth: noise of the same kind is added to the published values and, in
    proportion, subtracted from a copy; what is fitted to one is judged by the other, which has
    independent errors under Gaussian noise and uncorrelated ones under any other.

    Promise: `z` are margins of the records; known margins that name each variable in a tree of
    margins are met exactly; structural zeros stay empty. Values are known that weigh 10⁵ times as
    much as the next lighter ones. The certificate says by how many standard
    errors unbiased and non-negative margins can be off; they and their standard errors do not
    depend on the search. The seed need not be secret: all of it follows from public values.

    Cost: published cells times categories for each sweep of a record; at most eighty sweeps.

    Args:
      n_records: How many records to draw; the estimated total by default.
      temperature: As a share of a Gibbs sampler's; 0 follows the published values as closely as
        possible, `None` chooses by splitting the noise.
      unit_variance: Variance of a published value with weight one; estimated from contradictions
        between margins by default.
      tolerance: By how many standard errors of its own a cell of the unbiased and the non-negative
        margins may be off.
      seed: Seed of the search.
    """

    name = "from-margins"
    n_records: int | None = None
    temperature: float | None = None
    unit_variance: float | None = None
    tolerance: float = 0.02
    seed: int = 1

    def __post_init__(self) -> None:
        check_tolerance(self.tolerance)
        if self.n_records is not None:
            whole("n_records", self.n_records, 1)
        for name in ("temperature", "unit_variance"):
            value = getattr(self, name)
            is_bad = not is_number(value) or not (math.isfinite(value) and value >= 0)
            if value is not None and is_bad:
                raise ParameterError(f"{name} must be zero or more and finite, got {value!r}.")

    def prepare(self, design: Design) -> Prepared:
        """Find the effects of the design's margins."""
        made = design.require_variables("margins to draw records from")
        return _PreparedMargins(self, made)


@dataclass(frozen=True, eq=False)
class _PreparedMargins:
    options: FromMargins
    design: StructuredDesign

    @cached_property
    def full(self) -> ProductDesign:
        """The full crossing around the design."""
        return self.design.crossing.design

    @cached_property
    def wide(self) -> ProductDesign:
        """The crossing with the variables of structural zeros as margins."""
        over = [tuple(self.design.axes[a].name for a in m.axes) for m in self.design.masks or ()]
        return ProductDesign(self.full.axes, [*self.full.terms, *over])

    @cached_property
    def space(self) -> EffectSpace:
        """The effects behind the margins."""
        return EffectSpace(self.full)

    def __call__(self, z: Array, *, weights: Array | None = None) -> MarginFit:
        began = time.perf_counter()
        w = checked_weights(self.design, weights)
        values = checked_values(self.design, z, w > 0)
        # What is possible in the crossing but not in the design is a structural zero: known, and 0.
        most = float(w.max(initial=0.0)) or 1.0
        given, w = w, self._in_crossing(w, _IMPOSSIBLE * most)
        values = self._in_crossing(values, 0.0)
        # Dense algebra can hold what is impossible at zero; the search below could not move then.
        is_dense = not self.space.is_diagonal(w) and self.space.dense(w) is not None
        firm = self._in_crossing(given, np.inf) if is_dense else w
        found = estimate(self.space, values, firm)
        total = round(float(found.effects[0]))
        n = self._number_of_records(total)
        unit = self._unit_variance(found, values, w)
        noise = math.sqrt(unit or 1.0)
        bounded = fit_non_negative(found, values, firm, tolerance=self.options.tolerance * noise)
        non_negative = np.maximum(self.space.aggregate(bounded.effects), 0.0)
        negative = bounded.negative - _RESOLVED * float(np.abs(values).max(initial=0.0))
        search, temperature = self._search(found, values, w, n, unit)
        search = self._without_impossible(search)
        scale = total / n
        records = ListedTable(self.design, search.x)
        published = records.aggregate(self.design)
        missed = np.abs(search.sums[: len(w)] * scale - values)
        deviation = float(np.where(w > known_from(w), missed, 0.0).max(initial=0.0))
        certificate = Certificate(
            stationarity=max(found.off, bounded.off) / noise,
            feasibility=max(negative, deviation, self._impossible(search.x)),
            tolerance=self.options.tolerance,
        )
        return MarginFit(
            cells=records,
            z=published.astype(np.float64) * scale if n != total else published,  # type: ignore[arg-type]
            status=Status.converged if certificate.holds else Status.stalled,
            certificate=certificate,
            iterations=bounded.steps,
            seconds=time.perf_counter() - began,
            notes={
                "solver": "effects of margins, records by local search",
                "temperature": temperature,
                "unit_variance": unit,
                "loss": 0.5 * float(w @ (search.sums[: len(w)] * scale - values) ** 2),
                "loss_bound": 0.5 * float(w @ (non_negative - values) ** 2),
            },
            design=self.design,
            unbiased=self._in_design(found.fitted_cells()),
            compute_errors=partial(self._standard_errors, found, firm, unit),
            non_negative=self._in_design(non_negative),
            records=search.x,
        )  # fmt: skip

    def _number_of_records(self, total: int) -> int:
        n = self.options.n_records or total
        if n < 1:
            raise DesignError(
                f"the margins have an estimated total of {total}, so there are no records to draw. "
                "Name their number with n_records=."
            )
        if n > _LARGEST_RECORDS:
            raise DesignError(
                f"the margins have an estimated total of {n:,}; at most {_LARGEST_RECORDS:,} "
                "records are drawn. Name a smaller number with n_records=."
            )
        return n

    def _in_crossing(self, values: Real, outside: float) -> Real:
        return np.asarray(self.design.crossing.to_public_cells(values, outside))

    def _in_design(self, values: Real) -> Real:
        return np.asarray(values[self.design.crossing.published])

    def _impossible(self, records: Whole32) -> float:
        """How many records lie in cells that cannot have any."""
        masks = self.design.masks or ()
        return float(sum(np.count_nonzero(~m.possible[tuple(records[:, m.axes].T)]) for m in masks))

    def _without_impossible(self, search: Search) -> Search:
        """The records, of which none lies in a cell that cannot have any.

        Where a hierarchy has leaves on several levels, no published block shows a structural zero
        to the search. Such records take the codes in question from others, drawn at random.
        """
        x, rng = search.x.copy(), stream(self.options.seed, f"{TASK}: structural zeros")
        for _ in range(_REPAIRS):
            for mask in self.design.masks or ():
                bad = ~mask.possible[tuple(x[:, mask.axes].T)]
                if bad.any() and not bad.all():
                    donors = rng.choice(np.flatnonzero(~bad), int(bad.sum()))
                    for axis in mask.axes:
                        x[bad, axis] = x[donors, axis]
            if not self._impossible(x):
                break
        return search if (x == search.x).all() else replace(search, x=x)

    def _with_masks(self, values: Real, impossible: float) -> Real:
        """Values for the crossing's margins and, where some are new, those of structural zeros.

        Blocks of the wide design are those of the crossing followed by new ones.
        """
        found = np.zeros(self.wide.n_published)
        found[: len(values)] = values
        for mask in self.design.masks or ():
            for k in range(len(self.full.blocks), len(self.wide.blocks)):
                block = self.wide.blocks[k]
                if leaf_axes(block) == mask.axes:
                    found[self.wide.slice_of(k)] = np.where(mask.possible, 0.0, impossible).ravel()
        return found

    def _unit_variance(self, found: Estimate, z: Real, w: Real) -> float | None:
        """Variance of a value with weight one: given, or estimated from contradictions."""
        if self.options.unit_variance is not None:
            return self.options.unit_variance or None
        noisy = (w > 0) & (w <= known_from(w))
        rank = sum(math.prod(self.full.shape[a] - 1 for a in s) for s in self.space.effects)
        free = int(noisy.sum()) - rank
        if free < 30:  # fewer contradictions tell the variance to no better than a quarter
            return None
        variance = float((w * (z - found.fitted_cells()) ** 2)[noisy].sum()) / free
        return variance if variance > _NO_NOISE * float((w * z**2)[noisy].max()) else None

    def _standard_errors(self, found: Estimate, w: Real, unit: float | None) -> Real:
        if unit is None:
            return np.full(self.design.n_published, np.nan)
        if self.space.is_diagonal(w):
            return self._in_design(np.sqrt(unit * variances(self.space, found.precisions)))
        if (dense := self.space.dense(w)) is not None:
            return self._in_design(np.sqrt(unit * dense.variances()))
        # With levels or uneven weights there is no formula: the estimate is linear, so its errors
        # are those of noise alone, drawn with the same precisions.
        rng = stream(self.options.seed, "standard errors of margins")
        spread = np.where(w > 0, 1 / np.sqrt(np.where(w > 0, w, 1.0)), 0.0)
        total = np.zeros(self.full.n_published)
        for _ in range(_DRAWS):
            noise = rng.standard_normal(self.full.n_published) * spread
            total += estimate(self.space, noise, w, tolerance=_DRAWN).fitted_cells() ** 2
        return self._in_design(np.sqrt(unit * total / _DRAWS))

    def _search(
        self, found: Estimate, z: Real, w: Real, n: int, unit: float | None
    ) -> tuple[Search, float]:
        none = self._in_crossing(np.zeros(self.design.n_published), 1.0)
        is_impossible = self._with_masks(none, 1.0) > 0
        z, w = self._with_masks(z, 0.0), self._with_masks(w, _IMPOSSIBLE * float(w.max()))
        rng = stream(self.options.seed, TASK)
        scale = n / max(1, round(float(found.effects[0])))
        precise = w / scale**2 / (unit or 1.0)
        known = self._known_margins(w) if scale == 1 else []
        held = [[axes for axes in known if a in axes] for a in range(len(self.full.axes))]
        prior = self._prior(found)
        start = self._first_records(z, w, prior, n, held, rng)

        def search(target: Real, span: tuple[float, float, int]) -> Search:
            return Search(self.wide, target, precise, start.copy(), rng, prior, held, span)

        ladder, begun = cast("tuple[float, ...]", (0.0,)), 0.0
        if unit is not None and self.options.temperature is None:
            spread = np.where(w <= known_from(w), np.sqrt(unit / np.where(w > 0, w, 1.0)), 0.0)
            added = rng.standard_normal(len(z)) * spread
            judged = z - added / _SPLIT
            weight = np.where(spread > 0, w, 0.0)
            trial = search(scale * (z + _SPLIT * added), (0.0, _TRIED, _TRIAL_SWEEPS))
            ladder, begun = _best_ladder(trial, scale * judged, weight), _TRIED
        elif self.options.temperature:
            ladder = tuple(t for t in _LADDER if t > self.options.temperature)
            ladder = (*ladder, self.options.temperature)
        if ladder == (0.0,):
            return search(scale * z, (begun, 1.0, SETTLING)).run(()), 0.0
        heat, mean = [t for t in ladder for _ in range(_SWEEPS)], np.zeros(len(z))
        final = search(scale * z, (begun, _MOVED, len(heat) + _LAST_SWEEPS))
        final.run(heat, settle=0)
        for _ in range(_LAST_SWEEPS):
            final.sweep(ladder[-1])
            mean += final.sums / _LAST_SWEEPS
        # The mean over sweeps has less noise than any of them; the records then go towards it.
        # While it is hot, the search also visits cells that cannot have records.
        is_fixed = (w > known_from(w)) | is_impossible
        span, target = (_MOVED, 1.0, _LAST_SETTLING), np.where(is_fixed, scale * z, mean)
        settled = replace(final, target=target, span=span)
        return settled.run((), settle=_LAST_SETTLING), ladder[-1]

    def _prior(self, found: Estimate) -> list[Real]:
        """For each variable the estimated shares of its categories."""
        shares = []
        for a, size in enumerate(self.full.shape):
            known = (a,) in self.space.slice_of
            margin = self.space.margin(found.effects, (a,)) if known else np.ones(size)
            margin = np.maximum(margin, 0.0) if margin.max() > 0 else np.ones(size)
            shares.append(margin / margin.sum())
        return shares

    def _known_margins(self, w: Real) -> list[Axes]:
        """Known margins over leaves, in an order in which each shares one part with those before.

        Others, such as three that form a circle, are approached by their weight alone.
        """
        limit, found = known_from(w), []
        for k, block in enumerate(self.full.blocks):
            axes = leaf_axes(block)
            if axes and (w[self.full.slice_of(k)] > limit).all():
                found.append(axes)
        ordered: list[Axes] = []
        for axes in sorted(maximal(found), key=len, reverse=True):
            before = {a for other in ordered for a in other}
            shared = set(axes) & before
            if not shared or any(shared <= set(other) for other in ordered):
                ordered.append(axes)
        return ordered

    def _first_records(
        self, z: Real, w: Real, prior: Sequence[Real], n: int, held: Sequence[Sequence[Axes]],
        rng: np.random.Generator,
    ) -> Whole32:  # fmt: skip
        """Records with the estimated shares of each variable and the held margins."""
        x = draw_records(self.full, prior, n, rng)
        done: set[int] = set()
        for axes in dict.fromkeys(margin for margins in held for margin in margins):
            margin = self._margin(z, axes)
            shared = [a for a in axes if a in done]
            fresh = [a for a in axes if a not in done]
            _give_codes(x, margin, axes, shared, fresh, rng)
            done |= set(axes)
        return x

    def _margin(self, z: Real, axes: Axes) -> Real:
        """A known margin over leaves, as an array over its axes."""
        for k, block in enumerate(self.full.blocks):
            if leaf_axes(block) == axes:
                return z[self.full.slice_of(k)].reshape([self.full.shape[a] for a in axes])
        raise DesignError(f"the margin over axes {axes} is not published.")


def _give_codes(
    x: Whole32, margin: Real, axes: Axes, shared: list[int], fresh: list[int],
    rng: np.random.Generator,
) -> None:  # fmt: skip
    """Give records codes so that they have a margin, keeping those of the shared axes."""
    order = [axes.index(a) for a in (*shared, *fresh)]
    counts = np.rint(np.maximum(margin, 0)).astype(np.int64).transpose(order)
    sizes = counts.shape
    flat = counts.reshape(math.prod(sizes[: len(shared)]), -1)
    groups = np.zeros(len(x), dtype=np.int64)
    for a, size in zip(shared, sizes, strict=False):
        groups = groups * size + x[:, a]
    for group in range(len(flat)):
        rows = rng.permutation(np.flatnonzero(groups == group))
        cells = np.repeat(np.arange(flat.shape[1]), flat[group])[: len(rows)]
        codes = np.unravel_index(cells, sizes[len(shared) :])
        for a, code in zip(fresh, codes, strict=True):
            x[rows[: len(cells)], a] = code


def _best_ladder(trial: Search, judged: Real, w: Real) -> tuple[float, ...]:
    """Temperatures down to the one whose margins are nearest to values with other errors."""
    losses = []
    for temperature in _LADDER:
        mean = np.zeros(len(judged))
        for _ in range(_SWEEPS):
            trial.sweep(temperature)
        for _ in range(_SWEEPS):
            trial.sweep(temperature)
            mean += trial.sums / _SWEEPS
        losses.append(float(w @ (mean - judged) ** 2))
        if len(losses) > 2 and losses[-1] > losses[-2] > losses[-3]:
            break  # colder ones follow more of the noise
    trial.run((), settle=_TRIAL_SETTLING)
    cold = float(w @ (trial.sums - judged) ** 2)
    best = int(np.argmin(losses))
    return (0.0,) if cold < losses[best] else _LADDER[: best + 1]
