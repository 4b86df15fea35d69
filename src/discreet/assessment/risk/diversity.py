"""Groups of people who look alike: l-diversity and t-closeness of their sensitive attributes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from discreet.arrays import Array, Index, Mask, Real, Whole
from discreet.assessment.cells import released_values, require_counts, true_values
from discreet.assessment.measure import NO_SENSITIVE, BaseMeasure, NotApplicableError, Score
from discreet.columns import Column
from discreet.design.base import Design
from discreet.errors import ParameterError, check_known
from discreet.facade.table import Table
from discreet.tables.protected import Protected

TOLERANCE = 1e-9


@dataclass(frozen=True)
class GroupMeasure(BaseMeasure):
    """A measure of what the release says about a sensitive variable.

    Args:
      sensitive: The variable that must not be disclosed.
      quasi: The variables an intruder knows; all others by default.
    """

    kind = "risk"

    sensitive: str | None = None
    quasi: Sequence[str] | None = None

    def layout(self, design: Design) -> Layout:
        """Where the inner cells lie."""
        return layout(design, self.sensitive, self.quasi)

    def groups(self, table: Table, release: Protected) -> Groups:
        """True and released inner frequencies, laid out; refuses a table without records."""
        check_named(self.sensitive)
        y = _released_frequencies(release)
        where = self.layout(release.design)
        f = true_values(table, release.design, "inner")
        found = Groups(where, where.spread(f), where.spread(y))
        if not found.occurs.any():
            raise NotApplicableError("the table has no records.")
        return found


@dataclass(frozen=True)
class LDiversity(GroupMeasure):
    r"""Least number of sensitive categories in a group, by the released frequencies.

    :math:`\min_q \#\{s : y_{qs} > 0\}` over the groups that have records and are released as not
    empty; or, with `entropy`, :math:`\min_q \exp(-\sum_s \pi_{qs}\log\pi_{qs})` with the shares
    :math:`\pi`. Range: 1 upwards, to the number of categories. Higher is safer; at 1 some group is
    released with one category only. A property of the release, true or not. The breakdown has a
    row for each group.

    >>> from discreet.assessment.cells import toy
    >>> LDiversity(sensitive="b")(*toy([[3, 1], [0, 2]], [[3, 0], [1, 2]])).value
    1.0

    Args:
      entropy: Whether categories count by how evenly they are filled.
      tolerance: Shares of a group up to this size are nothing.

    See Machanavajjhala et al. (2007).
    """

    name = "l-diversity"
    range = (1.0, np.inf)
    direction = "higher"

    entropy: bool = False
    tolerance: float = TOLERANCE

    def __call__(self, table: Table, release: Protected) -> Score:
        groups = self.groups(table, release)
        chosen, shares = _released_shares(groups)
        if self.entropy:
            logs = np.log(np.where(shares > 0, shares, 1.0))
            diversity = np.exp(-(shares * logs).sum(axis=1))
        else:
            diversity = (shares > self.tolerance).sum(axis=1).astype(np.float64)
        parts = {**groups.layout.labels(chosen), "diversity": diversity}
        return self.score(diversity.min(), groups.layout.on, parts)


@dataclass(frozen=True)
class TCloseness(GroupMeasure):
    r"""Largest distance of a group's sensitive distribution from the overall one.

    With the released shares :math:`\pi_{qs}` of group q and :math:`\pi_s` overall,
    :math:`\max_q \tfrac12\sum_s|\pi_{qs} - \pi_s|`, the earth mover's distance with equal steps;
    or, with `ordered`, :math:`\max_q \frac{1}{S-1}\sum_{s<S}|\sum_{r\le s}(\pi_{qr} - \pi_r)|`,
    steps along the order of the categories. Over groups that have records and are released as not
    empty. Range: 0 to 1. Lower is safer. A property of the release, true or not. The breakdown has
    a row for each group.

    >>> from discreet.assessment.cells import toy
    >>> TCloseness(sensitive="b")(*toy([[3, 1], [0, 2]], [[3, 1], [1, 3]])).value
    0.25

    Args:
      ordered: Whether the sensitive categories have an order.

    See Li, Li & Venkatasubramanian (2007).
    """

    name = "t-closeness"

    ordered: bool = False

    def __call__(self, table: Table, release: Protected) -> Score:
        groups = self.groups(table, release)
        chosen, shares = _released_shares(groups)
        overall = groups.released.sum(axis=0) / groups.released.sum()
        gap = shares - overall
        if self.ordered:
            steps = max(gap.shape[1] - 1, 1)
            distance = np.abs(np.cumsum(gap, axis=1)[:, :-1]).sum(axis=1) / steps
        else:
            distance = 0.5 * np.abs(gap).sum(axis=1)
        parts = {**groups.layout.labels(chosen), "distance": distance}
        return self.score(distance.max(), groups.layout.on, parts)


def _released_shares(groups: Groups) -> tuple[Index, Real]:
    """Groups with records that are released as not empty, and the shares of their categories."""
    size = groups.released.sum(axis=1)
    chosen = np.flatnonzero(groups.occurs & (size > 0))
    if not len(chosen):
        raise NotApplicableError("every group with records is released as empty.")
    return chosen, groups.released[chosen] / size[chosen, None]


_SPARE = 4  # combinations are numbered as they are while the crossing is at most this much larger


@dataclass(frozen=True, eq=False)
class Layout:
    """Where each inner cell lies: a group (combination of quasi-identifiers) and a category."""

    design: Design  # the design
    sensitive: int  # axis of the sensitive variable
    quasi: tuple[int, ...]  # axes of the quasi-identifiers
    flat: Whole  # position of each group in the crossing of the quasi-identifiers
    group: Whole  # the group of each inner cell
    category: Whole  # the sensitive category of each inner cell

    @property
    def n_categories(self) -> int:
        """Number of sensitive categories."""
        return len(self.design.axes[self.sensitive])

    @property
    def on(self) -> str:
        """What is guessed from what, in words."""
        names = [axis.name for axis in self.design.axes]
        known = ", ".join(names[a] for a in self.quasi) or "nothing"
        return f"{names[self.sensitive]} given {known}"

    def spread(self, inner: Array) -> Real:
        """Inner values as groups × categories; other variables are summed over."""
        size = len(self.flat) * self.n_categories
        place = self.group * self.n_categories + self.category
        sums = np.bincount(place, weights=inner, minlength=size)
        return sums.astype(np.float64, copy=False).reshape(len(self.flat), self.n_categories)

    def labels(self, chosen: Array) -> dict[str, Any]:
        """Code columns of some of the groups."""
        if not self.quasi:
            return {}
        axes = [self.design.axes[a] for a in self.quasi]
        codes = np.unravel_index(self.flat[chosen], [len(axis) for axis in axes])
        return {
            axis.name: Column.of_codes(code.astype(np.int32), axis.leaves)
            for axis, code in zip(axes, codes, strict=True)
        }


@dataclass(frozen=True, eq=False)
class Groups:
    """True and released frequencies, groups × categories; released ones are never negative."""

    layout: Layout
    true: Real
    released: Real

    @property
    def occurs(self) -> Mask:
        """Which groups have records."""
        return np.asarray(self.true.sum(axis=1) > 0)


class Exact(NamedTuple):
    """Numbers of exact disclosures in truth, in the release, and in both."""

    a: int
    b: int
    c: int

    @property
    def precision(self) -> float:
        """Share of the disclosures in the release that are real."""
        return self.c / self.b if self.c else 0.0

    @property
    def recall(self) -> float:
        """Share of the real disclosures that are in the release."""
        return self.c / self.a if self.c else 0.0

    def f_score(self, beta: float = 0.5) -> float:
        """Both in one number; below 1, `beta` gives precision the greater weight.

        >>> found = [Exact(1, 0, 0), Exact(1, 2, 1), Exact(3, 1, 1), Exact(3, 2, 2)]
        >>> [round(counts.f_score(), 4) for counts in found]
        [0.0, 0.5556, 0.7143, 0.9091]
        """
        return (1 + beta**2) * self.c / (beta**2 * self.a + self.b) if self.c else 0.0

    def parts(self, beta: float) -> dict[str, list[float]]:
        """Everything in a row."""
        named = {"precision": self.precision, "recall": self.recall, "f": self.f_score(beta)}
        return {k: [v] for k, v in {**self._asdict(), **named}.items()}


def check_named(sensitive: str | None) -> str:
    """The sensitive variable; refuses to go on without one."""
    if sensitive is None:
        raise NotApplicableError(NO_SENSITIVE)
    return sensitive


def layout(design: Design, sensitive: str | None, quasi: Sequence[str] | None = None) -> Layout:
    """Groups and categories of the inner cells of a design."""
    sensitive = check_named(sensitive)
    if not design.axes:
        raise NotApplicableError("the design has no variables.")
    names = [axis.name for axis in design.axes]
    known = [name for name in names if name != sensitive] if quasi is None else list(quasi)
    check_known("variable", (sensitive, *known), names)
    if sensitive in known or len(set(known)) < len(known):
        raise ParameterError(
            f"quasi-identifiers must differ from each other and from {sensitive!r}, got {known}."
        )
    axes = tuple(sorted(names.index(name) for name in known))
    codes = design.inner_codes()
    flat, group = _number_groups(
        [codes[a] for a in axes], [len(design.axes[a]) for a in axes], design
    )
    a = names.index(sensitive)
    return Layout(design, a, axes, flat, group, codes[a].astype(np.int64))


def _number_groups(codes: list[Array], shape: list[int], design: Design) -> tuple[Whole, Whole]:
    """Positions of the groups in their crossing, and the group of each inner cell."""
    if not codes:
        return np.zeros(1, dtype=np.int64), np.zeros(design.n_inner, dtype=np.int64)
    crossing = math.prod(shape)
    if crossing >= 2**62:
        raise NotApplicableError("the quasi-identifiers have too many combinations to number.")
    flat = np.ravel_multi_index(codes, shape)
    if crossing <= _SPARE * design.n_inner + 1024:
        return np.arange(crossing), flat
    return np.unique(flat, return_inverse=True)


def _released_frequencies(release: Protected) -> Array:
    """Released inner frequencies, negatives set to zero."""
    require_counts(release)
    y = released_values(release, "inner")
    if np.isnan(y).any():
        raise NotApplicableError("inner cells are withheld. Fit the release first.")
    return np.maximum(y, 0)
