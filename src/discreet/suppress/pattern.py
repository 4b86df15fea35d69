"""Which published cells are suppressed and why. Confidential."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from discreet.arrays import Array, Mask, Real, Whole
from discreet.design.base import Cell, Design
from discreet.design.support import spread
from discreet.display import Display, Displayed, Mark
from discreet.errors import DesignError, ParameterError
from discreet.frames import Frame
from discreet.rules.counts import Difference
from discreet.suppress.proofs import Proofs
from discreet.tables.canonical import Arrangement
from discreet.tables.magnitude import CellContributions
from discreet.tables.show import Frames, frame_of, grids, number
from discreet.tables.truth import TrueTable

PUBLISHED, PRIMARY, SECONDARY = 0, 1, 2
"""States of a published cell: shown, hidden because it is sensitive, hidden to protect others."""
LETTERS = {".": PUBLISHED, "p": PRIMARY, "s": SECONDARY}
"""How other programs' patterns write the states."""
_NAMES = np.array(["published", "primary", "secondary"])
_PUBLISHED_PARTS = ("z", "state", "lower", "upper", "costs")  # one value for each published cell
_INNER_PARTS = ("y", "lone", "owner", "known")


class Closeness(NamedTuple):
    """How closely contributors may be known.

    Attributes:
      share: What others must have beside them, as a share of their own part.
      coalition: How many others, who know their own parts, pool them; zero: no part is deducted.
      together: How many contributors are looked at together.
      is_alone: Whether sums count that have no other contributors than these.
      waived: Contributors who need no protection, by number.
      exempt: Published cells that the rule never calls sensitive.
    """

    share: float
    coalition: int = 0
    together: int = 1
    is_alone: bool = False
    waived: tuple[int, ...] = ()
    exempt: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Pattern(Displayed, Frames):
    """**Confidential.** True values with the state of every published cell.

    Attributes:
      design: Which inner cells make up which published cells.
      z: True values of the published cells; floats for magnitudes.
      state: `PUBLISHED`, `PRIMARY` or `SECONDARY`, for each published cell.
      y: True values of the inner cells, where they are known.
      reasons: Why a primary cell is sensitive, by position.
      lower: How far below its value a primary's interval must reach; zero where nothing is asked.
      upper: How far above its value it must reach.
      lone: Inner cells with a single contributor, who knows them; `None` where nobody is alone.
      owner: Who the single contributor is, by number; a contributor can be alone in several cells.
        `None` where each lone cell has a contributor of its own.
      known: Inner cells that everybody knows, such as known zeros; `None` where there are none.
      contributions: Contributions to the inner cells, where they are sums of somebody's amounts.
      owners: Identifiers of contributors, by number.
      closeness: How closely a contributor may be known from sums of suppressed cells.
      unproved: Contributors, by number, of whom it was not proven that no sum tells too much.
      differences: Sums and differences of cells that are as sensitive as a primary cell.
      costs: What it costs to suppress each published cell; its value when absent.
      proofs: Other tables that prove the intervals of primaries, where there are any.
      bound: What every pattern with these intervals costs at least, where it is known.
      bounds: What the public knows each published cell to be at least and at most, infinite where
        nothing is known; `None` where there are no bounds.
      method: The method that made it, which the public knows; `None` for other programs' patterns.
      is_drawn: Whether its costs were drawn from a secret.
      is_signed: Whether values may be negative for all that anybody knows: some contribution is.
    """

    design: Design
    z: Array
    state: NDArray[np.int8]
    y: Array | None = None
    reasons: Mapping[int, str] = field(default_factory=dict)
    lower: Real | None = None
    upper: Real | None = None
    lone: Mask | None = None
    owner: Whole | None = None
    known: Mask | None = None
    differences: tuple[Difference, ...] = ()
    costs: Real | None = None
    proofs: Proofs | None = None
    bound: float | None = None
    bounds: tuple[Real, Real] | None = None
    contributions: CellContributions | None = None
    owners: tuple[str, ...] = ()
    closeness: tuple[Closeness, ...] = ()
    unproved: tuple[int, ...] = ()
    method: Any = None
    is_drawn: bool = False
    is_signed: bool = False

    def __post_init__(self) -> None:
        state = np.asarray(self.state, dtype=np.int8)
        if not np.isin(state, (PUBLISHED, PRIMARY, SECONDARY)).all():
            raise ParameterError("the states of a pattern are 0 (published), 1 and 2 (suppressed).")
        object.__setattr__(self, "state", state)
        object.__setattr__(self, "z", np.asarray(self.z))
        values = [self.z] if self.y is None else [self.z, np.asarray(self.y)]
        is_signed = self.is_signed or any(bool((each < 0).any()) for each in values)
        object.__setattr__(self, "is_signed", is_signed)
        n, m = self.design.n_published, self.design.n_inner
        lengths = [(n, name, getattr(self, name)) for name in _PUBLISHED_PARTS]
        lengths += [(m, name, getattr(self, name)) for name in _INNER_PARTS]
        for expected, name, values in [*lengths, *((n, "bounds", b) for b in self.bounds or ())]:
            if values is not None and np.shape(values) != (expected,):
                raise DesignError(
                    f"{name} of a pattern needs one value for each of {expected:,} cells, but has "
                    f"shape {np.shape(values)}."
                )

    @classmethod
    def from_labels(
        cls,
        source: TrueTable | Design,
        labels: Mapping[Any, str] | Sequence[str] | str,
        z: Array | None = None,
        **parts: Any,
    ) -> Pattern:
        """A pattern that another program made, by letters: `.` published, `p` primary, `s` other.

        Args:
          source: The table, or its design.
          labels: A letter for each published cell in the design's order, or the suppressed cells'
            letters by cell (tuples of codes in the order of the axes, with the total's code).
          z: True values of the published cells, where only a design is given.
          **parts: Further attributes of the pattern.
        """
        if isinstance(source, TrueTable):
            parts = {**of_table(source), **parts}
            z = published_values(source) if z is None else z
        if z is None:
            raise ParameterError("a pattern needs true values: give a table, or a design and z=.")
        design = source.design if isinstance(source, TrueTable) else source
        return cls(design, z, _states(design, labels), **parts)

    @property
    def primary(self) -> Mask:
        """Which published cells are sensitive."""
        return np.equal(self.state, PRIMARY)

    @property
    def secondary(self) -> Mask:
        """Which published cells are suppressed to protect others."""
        return np.equal(self.state, SECONDARY)

    @property
    def suppressed(self) -> Mask:
        """Which published cells are not shown."""
        return np.not_equal(self.state, PUBLISHED)

    @property
    def n_primary(self) -> int:
        """Number of sensitive cells."""
        return int(self.primary.sum())

    @property
    def n_secondary(self) -> int:
        """Number of cells that are suppressed to protect others."""
        return int(self.secondary.sum())

    @property
    def cost(self) -> float:
        """Total cost of the suppressed cells."""
        costs = self.z if self.costs is None else self.costs
        return float(costs[self.suppressed].sum())

    def position(self, cell: Mapping[str, object]) -> int:
        """Position of a published cell given by its codes; variables left out are totals."""
        return self.design.position(cell)

    def cells(self, which: Mask | None = None) -> list[Cell]:
        """Codes of chosen published cells, totals left out; the suppressed ones when absent."""
        chosen = self.suppressed if which is None else which
        return [self.design.cell(int(k)) for k in np.flatnonzero(chosen)]

    def with_state(self, state: Array) -> Pattern:
        """The same cells with other states."""
        return replace(self, state=np.asarray(state, dtype=np.int8))

    def showing(self, cells: Array) -> Pattern:
        """The pattern that shows some cells, none of the sensitive ones, and hides all others."""
        state = np.full(len(self.z), SECONDARY, dtype=np.int8)
        state[cells] = PUBLISHED
        state[self.primary] = PRIMARY
        return self.with_state(state)

    def publishing(self, cell: Mapping[str, object] | int) -> Pattern:
        """The pattern with one more cell shown."""
        state = self.state.copy()
        state[cell if isinstance(cell, int) else self.position(cell)] = PUBLISHED
        return self.with_state(state)

    def put_back(self, design: Design, order: Arrangement) -> Pattern:
        """The pattern of a table in another order, for the design as it was given."""
        place = order.published
        moved: dict[str, Any] = {}
        for where, names in ((place, _PUBLISHED_PARTS), (order.inner, _INNER_PARTS)):
            for name in names:
                if (values := getattr(self, name)) is not None:
                    moved[name] = spread(values, where, len(where))
        moved["reasons"] = {int(place[k]): why for k, why in self.reasons.items()}
        moved["differences"] = tuple(
            replace(d, cells=tuple(int(place[k]) for k in d.cells)) for d in self.differences
        )
        moved["closeness"] = tuple(
            each._replace(exempt=tuple(int(place[k]) for k in each.exempt))
            for each in self.closeness
        )
        if self.bounds is not None:
            moved["bounds"] = tuple(spread(side, place, len(place)) for side in self.bounds)
        if self.proofs is not None:
            moved["proofs"] = self.proofs.put_back(order.inner)
        if self.contributions is not None:
            moved["contributions"] = self.contributions.spread(order.inner, len(order.inner))
        return replace(self, design=design, **moved)

    def difference_signs(self) -> csc_array:
        """The coefficients of each sensitive difference: published cells × differences."""
        each = self.differences
        cells = [k for d in each for k in d.cells]
        signs = [s for d in each for s in d.signs]
        ends = np.cumsum([0, *(len(d.cells) for d in each)])
        shape = (self.design.n_published, len(each))
        return csc_array((np.array(signs, dtype=np.int64), np.array(cells, int), ends), shape)

    def difference_columns(self) -> csc_array:
        """The inner cells of each sensitive difference: a sparse column each."""
        X = self.design.matrix().astype(np.int64)
        columns = csc_array(X @ self.difference_signs())
        # A cell less a part of it: the inner cells of the part cancel, but stay as stored zeros.
        columns.eliminate_zeros()
        return columns

    def to_frame(self) -> Frame:
        """Published cells with true values, states and reasons. Confidential."""
        why = np.array([self.reasons.get(k, "") for k in range(len(self.z))], dtype=object)
        return frame_of(self.design, {"value": self.z, "state": _NAMES[self.state], "why": why})

    def _display(self) -> Display:
        why = {PRIMARY: ("p", "sensitive", 0.5), SECONDARY: ("s", "protects others", 0.2)}
        marks: list[Mark | None] = [None] * len(self.z)
        for k in np.flatnonzero(self.state != PUBLISHED).tolist():
            letter, meaning, shade = why[int(self.state[k])]
            marks[k] = Mark(f"{number(self.z[k])} {letter}", self.reasons.get(k, meaning), shade)
        hidden = f"{self.n_primary:,} sensitive (p), {self.n_secondary:,} to protect them (s)"
        facts = {
            "published cells": f"{len(self.z):,}",
            "hidden": hidden,
            "cost": f"{self.cost:,.6g}",
        }
        return Display("Pattern", "confidential", facts, grids(self.design, self.z, signs=marks))

    def __repr__(self) -> str:
        bound = "" if self.bound is None else f" (at least {self.bound:,.6g})"
        return (
            f"Pattern (confidential): {len(self.z):,} published cells, {self.n_primary:,} primary "
            f"and {self.n_secondary:,} secondary suppressions, cost {self.cost:,.6g}{bound}"
        )


_watchers: ContextVar[list[Pattern] | None] = ContextVar("discreet_patterns", default=None)


@contextmanager
def watched_patterns() -> Iterator[list[Pattern]]:
    """**Confidential.** The patterns of releases that are made within the block, for reports.

    A release does not tell sensitive cells from those that protect them; the custodian may know.
    """
    found: list[Pattern] = []
    token = _watchers.set(found)
    try:
        yield found
    finally:
        _watchers.reset(token)


def tell_watchers(pattern: Pattern) -> Pattern:
    """Hand a pattern to whoever watches, and back."""
    watching = _watchers.get()
    if watching is not None:
        watching.append(pattern)
    return pattern


def of_table(table: TrueTable) -> dict[str, Any]:
    """What a pattern takes from a table: inner values, and who is alone in a cell.

    Of a table of magnitudes these are sums of the value, unless counts are to be published; inner
    cells to which nobody contributes are known to be empty. Inner cells that were not read are
    taken from published ones, where each of them is published.
    """
    design, given, places = table.design, table.contributions, None
    # With more inner cells than published ones some are not published: no need to look.
    if design.n_inner <= design.n_published:
        found = design.inner_in_published()
        places = None if (found < 0).any() else found
    if given is None or table.unit not in (None, given.value):
        if table.inner is None and places is None:
            return {}
        y = table.z[places] if table.inner is None else table.y
        return {"y": y, "lone": y == 1}
    inner, is_signed = given.inner, given.has_negative
    if inner is None and places is not None:
        inner = given.published.take(places)
    if inner is None:
        return {"is_signed": is_signed}
    counts = inner.count
    # A record that contributes nothing is still somebody's: the public does not know that cell to
    # be empty unless it is shown as zero, and whoever is alone in it knows it.
    records = counts if table.inner is None else np.maximum(table.inner.count, counts)
    lone = (counts == 1) | ((counts == 0) & (records == 1))
    known = {"lone": lone, "owner": inner.lone, "known": records == 0}
    known |= {"contributions": inner, "owners": given.owners, "is_signed": is_signed}
    return {"y": inner.sum, **known}


def published_values(table: TrueTable) -> Array:
    """True values of the published cells: sums of the value of a table of magnitudes, or counts."""
    given = table.contributions
    return table.z if given is None or table.unit not in (None, given.value) else given.sum


def _states(design: Design, labels: Mapping[Any, str] | Sequence[str] | str) -> NDArray[np.int8]:
    if not isinstance(labels, Mapping):
        return np.array([_state(letter) for letter in labels], dtype=np.int8)
    state = np.full(design.n_published, PUBLISHED, dtype=np.int8)
    names = [axis.name for axis in design.axes]
    for cell, letter in labels.items():
        if not isinstance(cell, tuple) or len(cell) != len(names):
            raise ParameterError(
                f"a cell is given by a code of each variable ({', '.join(names)}), got {cell!r}."
            )
        state[design.position(dict(zip(names, cell, strict=True)))] = _state(letter)
    return state


def _state(letter: str) -> int:
    if letter not in LETTERS:
        known = ", ".join(repr(each) for each in LETTERS)
        raise ParameterError(f"unknown state {letter!r} of a cell; known: {known}.")
    return LETTERS[letter]
