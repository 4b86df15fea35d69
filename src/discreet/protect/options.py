"""Options of methods as plain values, checked when they are written, and when they are published.

Where nobody counts releases, every value of a continuous option would be one more draw to average.
So publication without a ledger takes such options from the short lists that stand here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np

from discreet.arrays import Real, Whole
from discreet.errors import ParameterError, positive
from discreet.tables.truth import Bounds

AnyMethod = TypeVar("AnyMethod")
WEIGHTS = (1.0, 4.0, 16.0, 64.0)
"""Weights of cells in the loss: a cell weighs four times as much for each variable it has fewer."""
DEVIATIONS = (None, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 50.0, math.inf)
"""Bounds of deviations and moves, in counts."""
BASES = (2, 3, 4, 5, 7, 10)
"""Bases of rounding."""
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 0.9, 1.0)
"""Shares and probabilities."""
SCALES = (0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0)
"""Parameters of laws and lengths of residuals."""
REACHES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 15)
"""Largest moves of a law of noise, in steps."""
GRIDS = tuple(float(f"{m}e{k}") for k in range(-2, 7) for m in (1, 1.5, 2, 3, 5, 7))
"""Steps of weighted counts."""
_VALUES = 10  # the largest key of options by value
AS_IT_IS = (None,)
"""What is left to experiments, such as the effort of a search."""
OptionLists = Mapping[str, tuple[Any, ...]]
"""Options of a method that come from a short list where nobody counts releases."""


DeclaredGrid = Literal["mean-weight", "cell-weight"]


@dataclass(frozen=True)
class RecordSteps:
    """Steps of weighted counts whose noise goes by the number of sampled records."""

    size: float  # one step: the declared mean weight
    # How noise of sample counts moves weighted counts: by whole steps (``"mean-weight"``), or by
    # the mean weight of the cell's own records, rounded to steps (``"cell-weight"``).
    by: DeclaredGrid


Grid = float | DeclaredGrid | RecordSteps | None
"""A public step of weighted counts, as given or as declared; `None` publishes counts."""


def check_grid(grid: Grid) -> None:
    """Refuse a grid that is neither a positive number nor a declared one."""
    if isinstance(grid, str) and grid not in get_args(DeclaredGrid):
        known = " or ".join(map(repr, get_args(DeclaredGrid)))
        raise ParameterError(f"grid must be a positive number, {known}, got {grid!r}.")
    if grid is not None and not isinstance(grid, str):
        positive("grid", step_of_grid(grid) or 0.0)


def step_of_grid(grid: Grid) -> float | None:
    """The size of one step; `None` where counts are published, or nothing is declared yet."""
    if isinstance(grid, RecordSteps):
        return grid.size
    return None if isinstance(grid, str) else grid


def with_declared_grid(method: AnyMethod, bounds: Bounds) -> AnyMethod:
    """The method with the declared mean weight in the place of a grid that names it."""
    grid = getattr(method, "grid", None)
    if not isinstance(grid, str):
        return method
    if bounds.mean_weight is None:
        raise ParameterError(
            f"grid={grid!r} takes its steps from a declared figure, and these records have none. "
            "Declare what a record stands for on average, population over sample size: "
            "`people.with_roles(mean_weight=50)`."
        )
    steps = RecordSteps(float(bounds.mean_weight), grid)  # type: ignore[arg-type]
    return replace(method, grid=steps)  # type: ignore[type-var]


class Effort(NamedTuple):
    """How long a search is for a table of so many cells; the size decides, nobody's choice."""

    sweeps: float  # proposals for each cell
    most: float  # proposals at most

    def of(self, cells: int, given: float | None) -> float:
        """Proposals of a search over so many cells; an experiment may name its own number."""
        return min(self.most, self.sweeps * max(cells, 1)) if given is None else given


def check_listed(method: Any, variables: int = 8) -> None:
    """Refuse options that are on no public list; for publication where nobody counts releases.

    A method names its lists in `option_lists`, by option; the table has so many variables.
    """
    inside = (getattr(method, name, None) for name in ("method", "decimals", "counts"))
    for each in (method, *inside):
        for name, values in getattr(each, "option_lists", {}).items():
            given = getattr(each, name)
            if isinstance(given, Mapping):
                _check_keys(name, given, _VALUES if name == "value_weights" else variables)
            several = given.values() if isinstance(given, Mapping) else given
            # a pair of numbers is looked up number by number
            several = several if isinstance(given, Mapping) or type(given) is tuple else (given,)
            for each_value in several:
                # a mean weight that is declared anew draws anew, as a grid does
                is_declared = isinstance(each_value, RecordSteps)
                value = each_value.size if is_declared else each_value
                if isinstance(value, np.ndarray) or value not in values:
                    raise ParameterError(
                        _not_listed("mean_weight" if is_declared else name, value, values)
                    )


def _check_keys(name: str, given: Mapping[int, float], last: int) -> None:
    """Refuse keys that no cell of the table has: they change nothing but the draw."""
    for key in given:
        if key not in range(last + 1):
            raise ParameterError(
                f"without a ledger nobody counts releases, and every other key of {name}= would "
                f"draw anew. Keys are 0 to {last} here, got {key!r}. With a ledger "
                "(ledger='ledger.db') any key will do, once."
            )


def _not_listed(name: str, value: Any, values: tuple[Any, ...]) -> str:
    if values == AS_IT_IS:
        shown = f"{name}= is for experiments (`table.simulate`); leave it out here"
    else:
        known = [v for v in values if v is not None]
        if len(known) > 12 and isinstance(value, (int, float)):
            known = sorted(sorted(known, key=lambda v: abs(v - value))[:4])
        listed = ", ".join(f"{v:g}" for v in known)
        shown = f"{name}= takes {listed}{' or nothing' if None in values else ''} here"
    what = "an array" if isinstance(value, np.ndarray) else repr(value)
    return (
        f"without a ledger nobody counts releases, and every other value of {name}= would draw "
        f"anew: 40 such releases average to the truth. {shown}, got {what}. With a ledger "
        "(ledger='ledger.db') any value will do, once."
    )


def by_order(name: str, given: object, *, positive: bool = False) -> dict[int, float] | None:
    """Numbers by number of variables; recipes give the keys as text."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise ParameterError(
            f"{name} go by number of variables, such as {{1: 2, 2: 4}}, got {given!r}."
        )
    found = {_number_of_variables(name, k): _finite(name, value) for k, value in given.items()}
    if any(value < 0 or (positive and value == 0) for value in found.values()):
        wanted = "be positive" if positive else "not be negative"
        raise ParameterError(f"{name} must {wanted}, got {dict(given)}.")
    return found


def look_up_by_order(given: Mapping[int, float] | None, orders: Whole, other: float) -> Real:
    """What is given for each cell by the number of its variables; the other number where not."""
    most = int(orders.max(initial=0)) + 1
    return np.array([(given or {}).get(k, other) for k in range(most)])[orders]


def with_text_keys(given: Mapping[int, float] | None) -> dict[str, float] | None:
    """Numbers by number of variables, as statements hold them."""
    return None if given is None else {str(k): value for k, value in given.items()}


def check_effort(proposals: float | None, seconds: float | None) -> None:
    """Refuse an effort that is none."""
    if proposals is not None:
        at_least("proposals", proposals, 1)
    if seconds is not None:
        positive("seconds", seconds)


def at_least(name: str, value: Any, least: float) -> float:
    """A finite number that is not below the least one."""
    found = _finite(name, value)
    if found < least:
        raise ParameterError(f"{name} must be at least {least:g}, got {found:g}.")
    return found


def numbers(name: str, given: Any) -> Real:
    """A list of finite numbers."""
    try:
        found = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.array(math.nan)
    if found.ndim != 1 or not np.isfinite(found).all():
        raise ParameterError(f"{name} must be a list of finite numbers, got {given!r}.")
    return found


def whole_numbers(name: str, given: Any) -> Whole:
    """A list of whole numbers."""
    found = numbers(name, given)
    if (found != np.rint(found)).any():
        raise ParameterError(f"{name} must be whole numbers, got {given!r}.")
    return np.asarray(given).astype(np.int64)


def _number_of_variables(name: str, key: Any) -> int:
    try:
        order = int(key)
    except (TypeError, ValueError, OverflowError):
        order = -1
    if order < 0 or (not isinstance(key, str) and order != key):
        raise ParameterError(f"keys of {name} are numbers of variables (0, 1, 2, …), got {key!r}.")
    return order


def _finite(name: str, value: Any) -> float:
    if not isinstance(value, (int, float, np.number)) or not math.isfinite(value):
        raise ParameterError(f"{name}: a finite number is needed, got {value!r}.")
    return float(value)
