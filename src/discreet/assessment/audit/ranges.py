r"""What a perturbed value says of its true count, from the statement alone.

A published value :math:`j` can come from the counts :math:`\{i : P_{ij} > 0\}` of the published
law, from :math:`|i - j| \le D` where only the largest move is known, and from anything where noise
has no bound. Nothing else is used here: neither keys nor other cells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.arrays import Array, Mask, Real, Whole
from discreet.assessment.audit.equations import DisagreementError
from discreet.design.base import Design
from discreet.errors import DesignError, ParameterError, whole
from discreet.noise.matrix import TransitionMatrix
from discreet.release.inference.law import MATRICES, make_again
from discreet.solve.integer.rounding import is_two_way
from discreet.tables.protected import COUNT, CellStatus, Protected
from discreet.tables.statement import Step

_LEAVES_VALUES = ("data", "protect:quality", "tabulate")  # steps that change no value
_BOUNDS_CELLS = tuple(
    f"protect:{name}"
    for name in (
        *("cell-key", "drop-add", "pram", "adjust"),
        *("discrete-laplace", "discrete-gaussian", "laplace"),
    )
)
"""Methods that can bound each published value by itself, whatever else is published."""


@dataclass(frozen=True, eq=False)
class CountRanges:
    """The true counts that released values leave possible, cell by cell."""

    low: Real  # smallest true count of each published cell
    high: Real  # largest one, infinite where the noise has no bound
    inner_low: Real  # smallest true count of each inner cell
    inner_high: Real  # largest one
    known_from: str  # what this rests on, in words
    # For each published cell the list of its possible counts in `lists`; −1 for all in range.
    kind: Whole
    lists: tuple[Whole, ...] = ()  # increasing possible counts, for values whose range has gaps

    @classmethod
    def of_cells(cls, design: Design, low: Array, high: Array, known_from: str) -> CountRanges:
        """Ranges of published cells; inner cells are not negative."""
        n = design.n_inner
        no_gaps = np.full(design.n_published, -1, dtype=np.int64)
        ends = np.maximum(low, 0).astype(np.float64), np.asarray(high, dtype=np.float64)
        return cls(*ends, np.zeros(n), np.full(n, np.inf), known_from, no_gaps)

    @classmethod
    def of_inner(cls, design: Design, low: Array, high: Array, known_from: str) -> CountRanges:
        """Ranges of inner cells; of published ones no more is known than follows."""
        n = design.n_published
        ends = np.maximum(low, 0).astype(np.float64), np.asarray(high, dtype=np.float64)
        no_gaps = np.full(n, -1, dtype=np.int64)
        return cls(np.zeros(n), np.full(n, np.inf), *ends, known_from, no_gaps)

    def snap(self, low: Real, high: Real) -> tuple[Real, Real]:
        """Ends of published cells moved inwards to counts that their value can come from."""
        low, high = low.copy(), high.copy()
        for which, counts in enumerate(self.lists):
            cells = np.flatnonzero(self.kind == which)
            first = np.searchsorted(counts, low[cells], side="left")
            last = np.searchsorted(counts, high[cells], side="right") - 1
            if (first > last).any():
                raise DisagreementError(IMPOSSIBLE)
            low[cells], high[cells] = counts[first], counts[last]
        return low, high


IMPOSSIBLE = (
    "no true table can have given these values under the law of the statement. Either the release "
    "was changed afterwards, or the law is not the one that was used: give it as law=."
)


def is_perturbed(release: Protected) -> bool:
    """Whether values were changed, not only hidden; of a release, or one that it was made from."""
    names = {step.name for step in release.statement.steps}
    made = names - {"data", "protect:quality"}
    return "protect:suppress" not in names and bool(made)


def ranges_of(release: Protected, law: TransitionMatrix | int | None = None) -> CountRanges:
    """What each value says of its true count.

    Args:
      release: A release of counts; its statement says how values were changed.
      law: The law of the noise, or its largest move, where the statement does not give it.

    Raises:
      ParameterError: The values are no counts, or the law cannot be made from the statement.
    """
    if release.unit != COUNT:
        raise ParameterError(
            f"the audit of perturbed values is about counts, but this release has {release.unit!r}."
        )
    step = _last_change(release)
    if isinstance(law, int):
        low, high = release.z - whole("law", law, 0), release.z + law
        return CountRanges.of_cells(release.design, low, high, f"no count moved by more than {law}")
    if step is not None and _sums_of_unseen_cells(release, step):
        return _unbounded_ranges(
            release, "sums of inner cells of a larger release; audit that one for their bounds"
        )
    if law is not None:
        return _by_law(release, law, step.parameters if step else {})
    by_method: dict[str, Callable[[Protected, Mapping[str, Any]], CountRanges]] = {
        "protect:cell-key": _keyed_ranges,
        "protect:drop-add": _keyed_ranges,
        "protect:pram": _keyed_ranges,
        "protect:adjust": _adjusted_ranges,
        "protect:safe": _safe,
        "protect:controlled-rounding": _controlled_rounding,
        "protect:small-count-rounding": _small_count_rounding,
        "protect:discrete-laplace": _private,
        "protect:discrete-gaussian": _private,
        "protect:laplace": _private,
    }
    if step is None or step.name not in by_method:
        name = "nothing" if step is None else step.name
        return _unbounded_ranges(
            release, f"{name} bounds no deviation; only signs and sums are known"
        )
    return _with_structural_zeros(release, by_method[step.name](release, step.parameters))


def law_of(parameters: Mapping[str, Any], name: str | None = None) -> TransitionMatrix:
    """The law of keyed noise, made again from the public parameters of a statement."""
    kind = name or MATRICES.get(str(parameters.get("matrix")))
    if kind is None:
        told = "does not tell the law of the noise"
        if "matrix" in parameters:
            matrix = parameters["matrix"]
            told = f"names the matrix {matrix!r}, which cannot be made from its parameters"
        raise ParameterError(
            f"the statement {told}. Give the law: `dc.audit(release, law=matrix)`."
        )
    try:
        return make_again(kind, parameters)
    except TypeError:
        raise ParameterError(
            f"the statement keeps parameters of its {kind} back. Give the law: "
            "`dc.audit(release, law=matrix)`."
        ) from None


def _last_change(release: Protected) -> Step | None:
    """The last step that changed values."""
    changes = [step for step in release.statement.steps if step.name not in _LEAVES_VALUES]
    return changes[-1] if changes else None


def _sums_of_unseen_cells(release: Protected, step: Step) -> bool:
    """Whether values are sums of inner cells that another release has, and this one has not.

    Such a sum moved as far as all its inner cells together, which a part of the release cannot
    count. Values with noise of their own keep it in every table that they are taken into.
    """
    was_tabulated = any(s.name == "tabulate" for s in release.statement.steps)
    if not was_tabulated and not getattr(release, "table_name", ""):
        return False
    has_own = step.parameters.get("margins", "own") == "own" and step.name in _BOUNDS_CELLS
    return not has_own or (was_tabulated and release.y is not None)


def _keyed_ranges(release: Protected, parameters: Mapping[str, Any]) -> CountRanges:
    if parameters.get("small_cells") is False:
        # Ones to threes become zero or three, threes and larger counts move by two at most.
        z = release.z.astype(np.int64)
        low = np.select([z == 0, z == 3], [0, 1], np.maximum(z - 2, 3))
        said = "zeros stayed, ones and twos became 0 or 3, others moved by at most 2, threes to 0"
        return CountRanges.of_cells(release.design, low, np.where(z == 0, 3, z + 2), said)
    is_drop_add = "share" in parameters and "matrix" not in parameters
    return _by_law(release, law_of(parameters, "drop-add" if is_drop_add else None), parameters)


def _by_law(
    release: Protected, law: TransitionMatrix, parameters: Mapping[str, Any]
) -> CountRanges:
    if parameters.get("grid") is not None:
        raise ParameterError("the audit of perturbed values is about counts, not weighted ones.")
    if parameters.get("invariant"):
        # Its matrix is secret; it never leaves twice the reach, and zeros keep to themselves.
        z, reach = release.z.astype(np.int64), 2 * law.max_move
        low, high = np.maximum(z - reach, z > 0), np.where(z > 0, z + reach, 0)
        said = f"no count moved by more than {reach}, and zeros stayed"
        return CountRanges.of_cells(release.design, low, high, said)
    said = f"the published law of the noise (moves up to {law.max_move})"
    if parameters.get("margins", "own") == "own":
        hidden_below = parameters.get("threshold")
        return _from_law(release, law, release.hidden, hidden_below, said)
    if release.y is not None:
        low, high, *_ = _counts_behind(law, np.asarray(release.y))
        return CountRanges.of_inner(release.design, low, high, said)
    # Noise of inner cells that are not shown adds up.
    reaches = law.max_move * _members(release.design)
    return CountRanges.of_cells(release.design, release.z - reaches, release.z + reaches, said)


def _from_law(
    release: Protected, law: TransitionMatrix, hidden: Mask, threshold: int | None, said: str
) -> CountRanges:
    low, high, kind, lists = _counts_behind(law, np.where(hidden, 0, release.z).astype(np.int64))
    if hidden.any():
        if threshold is None:
            raise ParameterError("cells are hidden, but the statement names no threshold.")
        small = np.arange(threshold)
        reached = [counts for value in small if len(counts := _behind(law, int(value)))]
        every = np.unique(np.concatenate(reached))
        low[hidden], high[hidden] = every[0], every[-1]
        kind[hidden], lists = len(lists), (*lists, every)
    found = CountRanges.of_cells(release.design, low, high, said)
    return replace(found, kind=kind, lists=lists)


def _counts_behind(
    law: TransitionMatrix, values: Array
) -> tuple[Whole, Whole, Whole, tuple[Whole, ...]]:
    """Smallest and largest count behind each value, and the lists of those with gaps."""
    distinct, place = np.unique(values, return_inverse=True)
    every = [_behind(law, int(value)) for value in distinct]
    if not all(map(len, every)):
        raise DisagreementError(IMPOSSIBLE)
    ends = np.array([(counts[0], counts[-1]) for counts in every], dtype=np.int64).reshape(-1, 2)
    has_gaps = np.array([len(c) < c[-1] - c[0] + 1 for c in every], dtype=bool)
    number = np.where(has_gaps, np.cumsum(has_gaps) - 1, -1)
    lists = tuple(counts for counts, gaps in zip(every, has_gaps, strict=True) if gaps)
    return ends[place, 0], ends[place, 1], number[place], lists


def _behind(law: TransitionMatrix, value: int) -> Whole:
    """The counts that can become a value."""
    counts = np.arange(max(value - law.max_move, 0), value + law.max_move + 1)
    chance = law.law[law.row_of(counts), value - counts + law.max_move]
    return counts[chance > 0]


def _adjusted_ranges(release: Protected, parameters: Mapping[str, Any]) -> CountRanges:
    reach = parameters.get("max_move")
    z = release.z
    low = np.maximum(z - (np.inf if reach is None else reach), z > 0)
    said = "true zeros stayed zero"
    if reach is None:
        return CountRanges.of_cells(release.design, low, np.full(len(z), np.inf), said)
    said = f"no count moved by more than {reach:g}, and {said}"
    found = CountRanges.of_cells(release.design, low, z + reach, said)
    if parameters.get("sensitive") is None:
        return found
    # Sensitive counts left their intervals, so that a value near to one is not that count.
    (below, above), most = parameters["protection"], int(parameters["sensitive"])
    values, kind = np.unique(z, return_inverse=True)
    lists = []
    for value in values.tolist():
        counts = np.arange(max(value - int(reach), int(value > 0)), value + int(reach) + 1)
        is_near = (counts - below < value) & (counts + above > value)
        lists.append(counts[~(is_near & (counts >= 1) & (counts <= most))])
    return replace(found, kind=kind, lists=tuple(lists))


def _safe(release: Protected, parameters: Mapping[str, Any]) -> CountRanges:
    """Inner cells by their largest move; deviations of controlled cells are not published."""
    reach, y = float(parameters["max_move"]), np.asarray(release.y)
    stays = not parameters.get("opens_zeros")
    low = np.maximum(y - reach, (y > 0) & stays)
    said = f"no inner cell moved by more than {reach:g}" + (", and zeros stayed" if stays else "")
    return CountRanges.of_inner(release.design, low, y + reach, said)


def _controlled_rounding(release: Protected, parameters: Mapping[str, Any]) -> CountRanges:
    reach = int(parameters["base"]) - 1
    if _is_network(release.design):
        said = f"no count moved by more than {reach}, and zeros stayed"
        low = np.maximum(release.z - reach, release.z > 0)
        return CountRanges.of_cells(release.design, low, release.z + reach, said)
    # In other tables sums may leave the multiples next to them; inner cells never do.
    found = _of_inner_values(release, reach, keeps_zeros=True)
    if found is None:
        return _unbounded_ranges(release, "inner cells are not shown, and sums may move further")
    return found


def _is_network(design: Design) -> bool:
    """Whether every vertex of a rounding program is whole, so that sums are next to theirs."""
    return is_two_way(design) and sum(len(axis.levels) > 1 for axis in design.axes) <= 1


def _small_count_rounding(release: Protected, parameters: Mapping[str, Any]) -> CountRanges:
    base, opens = int(parameters["base"]), bool(parameters.get("zero_candidates"))
    if parameters.get("pre_rounded"):
        return _unbounded_ranges(release, "inner cells rounded before have no bound")
    reach = base if opens else base - 1
    found = _of_inner_values(release, reach, keeps_zeros=not opens, base=base)
    if found is not None:
        return found
    reached, said = reach * _members(release.design), f"no inner cell moved by more than {reach}"
    low = np.maximum(release.z - reached, (release.z > 0) & (not opens))
    return CountRanges.of_cells(release.design, low, release.z + reached, said)


def _of_inner_values(
    release: Protected, reach: int, *, keeps_zeros: bool, base: int = 0
) -> CountRanges | None:
    """Ranges of inner cells that are shown, where each moved by at most so much.

    With a base only its multiples moved: other values are true.
    """
    y = _inner_values(release)
    if y is None:
        return None
    moved = np.where((y % base == 0) if base else np.full(len(y), fill_value=True), reach, 0)
    low = np.maximum(y - moved, (y > 0) & keeps_zeros)
    said = f"no inner cell moved by more than {reach}"
    return CountRanges.of_inner(release.design, low, y + moved, said)


def _private(release: Protected, parameters: Mapping[str, Any]) -> CountRanges:
    """Noise with a cap moves cells that far; cells without noise are what they show."""
    said = "noise without a bound; only signs, sums and known margins count"
    low, high = np.zeros(len(release.z)), np.full(len(release.z), np.inf)
    if parameters.get("margins", "own") == "own" and parameters.get("cap") is not None:
        reach = int(parameters["cap"])
        low, high = np.maximum(release.z - reach, 0), release.z + reach
        said = f"noise was cut off at {reach}"
    if release.precision is not None and not release.statement.says("known-rounded"):
        exact = np.isinf(release.precision)
        low, high = np.where(exact, release.z, low), np.where(exact, release.z, high)
    return CountRanges.of_cells(release.design, low, high, said)


def _unbounded_ranges(release: Protected, why: str) -> CountRanges:
    n = release.design.n_published
    return CountRanges.of_cells(release.design, np.zeros(n), np.full(n, np.inf), why)


def _inner_values(release: Protected) -> Array | None:
    """Released inner cells: given, or published one by one."""
    if release.y is not None:
        return np.asarray(release.y)
    place = release.design.inner_in_published()
    return np.asarray(release.z)[place] if (place >= 0).all() else None


def _members(design: Design) -> Whole:
    """How many inner cells each published cell has."""
    return np.asarray(design.aggregate(np.ones(design.n_inner, dtype=np.int64)))


def _with_structural_zeros(release: Protected, found: CountRanges) -> CountRanges:
    """Cells that cannot hold records are empty."""
    if release.status is None:
        return found
    empty = release.status == CellStatus.structural_zero
    if (found.low[empty] > 0).any():
        raise DesignError("a cell that cannot hold records is published above zero.")
    found.low[empty] = found.high[empty] = 0.0
    found.kind[empty] = -1
    return found
