"""Additivity of perturbed tables by controlled tabular adjustment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from discreet.design.release import QUALITY_STEP, CellStatus, Release, Statement, Step
from discreet.design.structured import StructuredDesign
from discreet.design.table import Method, Table
from discreet.errors import ConfidentialError, DesignError, ParameterError
from discreet.noise.checks import positive, whole
from discreet.protect.adjustment import Frame, Whole, adjustment
from discreet.protect.claims import Claims
from discreet.protect.margins import margins_sentence, shows_inner_cells
from discreet.protect.options import at_least, by_order
from discreet.randomness import stream

if TYPE_CHECKING:
    from discreet.solve.integer.found import Found

_SWEEPS = 4000  # over the cells of a small table
MARGIN_FACTOR = 4.0  # how much more a cell weighs for each variable it has fewer


class Perturbing(Method, Protocol):
    """A method that says what it promises."""

    @property
    def claims(self) -> Claims:
        """What the method promises for every table."""


@dataclass(frozen=True)
class Adjust:
    r"""A perturbing method whose tables are then made to add up.

    With perturbed counts :math:`\tilde z` and weights `w`,

    .. math:: \min_y \sum_k w_k\,|x_k^\top y - \tilde z_k|,\qquad
              y_j \in \{0\} \cup \{m, m + 1, \dots\},\qquad
              |x_k^\top y - z_k| \le D.

    Cells that are truly empty stay empty. Sums of allowed numbers are allowed numbers, so no
    published cell is small either.

    Promise: published cells add up and are whole; true zeros stay zero; no count in 1..m-1; no
    cell further than `max_move` from the truth wherever the search finds it possible (the
    statement counts the exceptions). The result depends on the perturbed counts and the empty
    cells alone, so it draws nothing of its own. The same cell may differ between tables.
    Cost: about 15 s for 22,000 non-empty cells of a three-way table on two busy cores.

    Args:
      method: The method that perturbs, with margins of their own, such as `CellKey`.
      min_count: Smallest positive count allowed; by default what the method allows.
      max_move: Largest deviation from the truth wanted; by default that of the method.
      weights: Weight of a published cell by the number of its variables (0: the total); 1 where
        not given. Heavy cells stay as they were perturbed.
      proposals: Effort of the search.
      seconds: Search for this long instead; the result then depends on the machine.

    See Giessing & Höhne (2011), section 5; Castro & González (2009); Dandekar & Cox (2002).
    """

    name: ClassVar[str] = "adjust"

    method: Perturbing
    min_count: int | None = None
    max_move: float | None = None
    weights: Mapping[int, float] | None = None
    proposals: float = 8e7
    seconds: float | None = None

    def __post_init__(self) -> None:
        if not callable(self.method) or not hasattr(self.method, "claims"):
            raise ParameterError(
                f"Adjust wraps a perturbing method such as CellKey(...), got {self.method!r}."
            )
        if self.method.source == "system":
            raise ParameterError(
                f"method {self.method.name!r} is differentially private, and keeping true zeros "
                "would undo that. Make its release add up with a fitter (`release.fit(...)`)."
            )
        if self.min_count is not None:
            whole("min_count", self.min_count, 1)
        if self.max_move is not None:
            positive("max_move", self.max_move)
        at_least("proposals", self.proposals, 1)
        if self.seconds is not None:
            positive("seconds", self.seconds)
        object.__setattr__(self, "weights", by_order("weights", self.weights, positive=True))

    @classmethod
    def from_parameters(
        cls,
        method: str = "cell-key",
        parameters: Mapping[str, Any] | None = None,
        min_count: int | None = None,
        max_move: float | None = None,
        weights: Mapping[str, float] | None = None,
        proposals: float = 8e7,
        seconds: float | None = None,
    ) -> Adjust:
        """The method from plain values.

        Args:
          method: Registered name of the method that perturbs.
          parameters: Its parameters.
          min_count: As for the method.
          max_move: As for the method.
          weights: As for the method; keys may be text.
          proposals: As for the method.
          seconds: As for the method.
        """
        from discreet import registry

        if not isinstance(parameters, Mapping | None):
            raise ParameterError(
                f"parameters of the method within must be named values such as "
                f'{{"D": 5, "V": 3, "js": 2}}, got {parameters!r}.'
            )
        inner = registry.build("method", method, parameters or {})
        return cls(inner, min_count, max_move, cast(Any, weights), proposals, seconds)

    @property
    def source(self) -> str:
        """Where the noise comes from: what the perturbing method declares."""
        return self.method.source

    @property
    def claims(self) -> Claims:
        """What every release of this method keeps."""
        blocked = tuple(range(1, self._min_count))
        return Claims(additive=True, unbiased=False, keeps_zeros=True, blocked=blocked)

    @property
    def _min_count(self) -> int:
        if self.min_count is not None:
            return self.min_count
        blocked = self.method.claims.blocked
        return next(m for m in range(1, len(blocked) + 2) if m not in blocked)

    @property
    def _max_move(self) -> float:
        return self.method.claims.max_move if self.max_move is None else self.max_move

    def __call__(self, table: Table, *, rng: np.random.Generator | None = None) -> Release:
        """Perturb the table, with draws from the generator if the method draws, and adjust it."""
        perturbed = self._perturbed(table, rng)
        frame = Frame.of(table)
        found = self._found(table, frame, perturbed)
        z = _placed(found.z, frame.cells, table.design.n_published)
        y = _placed(found.y, frame.rows, table.design.n_inner)
        statement = self._statement(perturbed.statement, found)
        shown = shows_inner_cells(table.design)
        release = Release.of(table.design, z, statement, y=y if shown else None)
        return replace(release, status=perturbed.status)

    def search(self, table: Table, *, rng: np.random.Generator | None = None) -> Found:
        """The search behind the release, with a lower bound.

        **Confidential**: it holds what the perturbed counts and the empty cells were.
        """
        return self._found(table, Frame.of(table), self._perturbed(table, rng), bounded=True)

    def _perturbed(self, table: Table, rng: np.random.Generator | None) -> Release:
        release = self.method(table) if rng is None else self.method(table, rng=rng)
        if release.statement.privacy is not None:
            raise ConfidentialError(
                "this release is differentially private, and keeping true zeros would undo that. "
                "Make it add up with a fitter (`release.fit(...)`)."
            )
        hidden = (CellStatus.below_threshold, CellStatus.suppressed)
        if release.status is not None and np.isin(release.status, hidden).any():
            raise DesignError(
                "some cells are hidden, and in a table that adds up they could be computed. "
                "Perturb without a threshold."
            )
        if release.z.dtype.kind == "f":
            raise DesignError(
                "adjustment is for whole counts, but this release has real numbers. "
                "Leave out weighting=, or use a fitter (`release.fit(...)`)."
            )
        return release

    def _found(
        self, table: Table, frame: Frame, perturbed: Release, *, bounded: bool | None = None
    ) -> Found:
        from discreet.solve.integer.adjustment import Nearest
        from discreet.solve.integer.rounding import is_two_way
        from discreet.solve.integer.search import Search

        self._check_reach(table)
        problem, start = adjustment(
            frame,
            _seen_from(table, perturbed)[frame.cells],
            table.z[frame.cells],
            min_count=self._min_count,
            max_move=self._max_move,
            weights=self.weights,
        )
        effort = min(self.proposals, _SWEEPS * max(len(start), 1))
        search = Search(effort, self.seconds, hot=0.25, cold=0.04, pairs=0.05, bounded=False)
        nearest = Nearest(search, bounded)
        rng = stream(0, "protect:adjust")
        return nearest(problem, start, is_network=is_two_way(table.design), rng=rng)

    def _check_reach(self, table: Table) -> None:
        """Refuse a largest move that a small count cannot keep whatever the others do."""
        from discreet.solve.integer.domain import LimitError
        from discreet.solve.integer.problem import cell_name

        z, least = table.z, self._min_count
        needed = np.where((z > 0) & (z < least), np.minimum(z, least - z), 0)
        if (needed > self._max_move).any():
            k = int(np.argmax(needed > self._max_move))
            raise LimitError(
                f"cell {cell_name(table.design, k)} has a small count, which becomes 0 or at least "
                f"{least}: it moves by {needed[k]} or more, but max_move is {self._max_move:g}. "
                "Raise it."
            )

    def _statement(self, before: Statement, found: Found) -> Statement:
        weights = None if self.weights is None else {str(k): v for k, v in self.weights.items()}
        given = {"min_count": self._min_count, "max_move": self.max_move, "weights": weights}
        sentences = [
            "Perturbed counts were then adjusted as little as possible so that the table adds up; "
            "empty cells stay empty."
        ]
        if self._min_count > 1:
            sentences.append(f"No count of 1 to {self._min_count - 1} is published.")
        if math.isfinite(self._max_move):
            sentences.append(self._reach(found.violations))
        before = before.without(QUALITY_STEP)
        text = before.text.replace(margins_sentence("own"), "").strip()
        step = Step(f"protect:{self.name}", {k: v for k, v in given.items() if v is not None})
        return replace(before, text=text).then(step, " ".join(sentences))

    def _reach(self, exceptions: int) -> str:
        reach = f"{self._max_move:g} from its true count"
        if not exceptions:
            return f"No cell lies further than {reach}."
        return f"{exceptions:,} cells lie further than {reach}."


def with_adjusted_margins(
    method: Any, table: Table, rng: np.random.Generator | None = None
) -> Release:
    """A table whose inner cells are adjusted to margins that have noise of their own.

    A cell weighs four times as much for each variable it has fewer, so margins hardly move.
    """
    axes = len(table.design.axes)
    weights = {k: MARGIN_FACTOR ** (axes - k) for k in range(axes + 1)} if axes else None
    return Adjust(replace(method, margins="own"), weights=weights)(table, rng=rng)


def _seen_from(table: Table, release: Release) -> Whole:
    """Released counts of the table's own published cells."""
    design = table.design
    if isinstance(design, StructuredDesign) and getattr(design, "occurring", False):
        return np.asarray(release.z[design.public()[1]])
    return release.z


def _placed(values: Whole, where: NDArray[Any], n: int) -> Whole:
    placed = np.zeros(n, dtype=np.int64)
    placed[where] = values
    return placed
