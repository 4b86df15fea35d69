"""The side of the custodian: the truth, and the same release drawn without some of the records.

Attacks never see this. Of each draw some records are taken out, at most one in twenty, so that what
an attack says about them is what it says when there is nothing to learn of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from discreet import registry
from discreet.arrays import Mask, Real, Whole
from discreet.assessment.audit.ranges import law_of
from discreet.assessment.cells import true_values
from discreet.attacks.frame import Knowledge
from discreet.design.codes import cell_text
from discreet.errors import DiscreetError, ParameterError
from discreet.facade.table import Table
from discreet.progress import report
from discreet.randomness import stream
from discreet.tables.protected import COUNT, Method, Protected
from discreet.tables.truth import CellValues

Maker = Callable[[Table, int], Protected]
"""Releases a table as an experiment from a seed."""
MOST_TARGETS = 200  # people that success and baseline are about: ±7 points at 95 %
_SHARE_OUT = 20  # one in so many records is taken out of a draw at most: others hardly notice
_DECIMALS = 6  # of true values: sums of weights are not exact beyond
_MOST_DRAWS = 8  # of the release without some records; each costs a run of every attack


@dataclass(frozen=True, eq=False)
class Draw:
    """A release of the table without some records.

    Attributes:
      out: The inner cells that one record each was taken out of, in the release's order.
      release: What was drawn; `None` where the release cannot be drawn again.
      others: The other releases, drawn without these records too; empty where nobody takes them out
        there.
    """

    out: Whole
    release: Protected | None
    others: tuple[Protected, ...] = ()


@dataclass(frozen=True, eq=False)
class Custodian:
    """**Confidential.** All that is needed to judge an attack.

    Attributes:
      table: The true table, or the original records of synthetic ones.
      release: What is attacked.
      knowledge: What the intruder knows beside it.
      before: True tables of the earlier releases, oldest first.
      method: The method of the release, where it is known.
      maker: Draws the release of another table; `None` where nobody knows how.
      seed: Root of the targets and of the draws.
      others: The side of the custodian of each further release that people are in or not, where
        claims are about what these releases differ in.
    """

    table: Any
    release: Any
    knowledge: Knowledge
    before: tuple[Table, ...] = ()
    method: Any = None
    maker: Maker | None = None
    seed: int = 1
    others: tuple[Custodian, ...] = ()

    @classmethod
    def of(
        cls,
        table: Table,
        release: Protected,
        knowledge: Knowledge,
        *,
        before: Sequence[Table] = (),
        method: Method | Maker | str | None = None,
        seed: int = 1,
    ) -> Custodian:
        """With the method that the statement names, unless one is given.

        Args:
          table: The true table.
          release: What is attacked.
          knowledge: What the intruder knows beside it.
          before: True tables of the earlier releases.
          method: The method, or a function of a table and a seed that makes a trial.
          seed: Root of the targets and of the draws.
        """
        chosen: Any = registry.build("method", method) if isinstance(method, str) else method
        chosen = _method_of(release) if chosen is None else chosen
        maker = chosen
        if hasattr(chosen, "source"):
            unit = release.unit if release.unit != COUNT else None

            def maker(other: Table, number: int) -> Protected:
                return other.simulate(chosen, seed=number, unit=unit)

        elif chosen is not None and not callable(chosen):
            raise ParameterError(
                "method= is a method, its name, or a function of a table and a seed that makes a "
                f"trial; got {chosen!r}."
            )
        return cls(table, release, knowledge, tuple(before), chosen, maker, seed)

    @cached_property
    def z(self) -> Real:
        """True published values in the order of the release."""
        found = true_values(self.table, self.release.design, "published", self.release.unit)
        return np.asarray(np.round(found, _DECIMALS), dtype=np.float64)

    @cached_property
    def records(self) -> Real:
        """How many records each published cell has, also where values are weighted."""
        found = true_values(self.table, self.release.design, "published", COUNT)
        return np.asarray(found, dtype=np.float64)

    @cached_property
    def y(self) -> Whole:
        """True inner counts in the order of the release."""
        return np.asarray(true_values(self.table, self.release.design, "inner"))

    @cached_property
    def _rows(self) -> Whole:
        """The inner cells of the release by their positions in the table."""
        # A table of positions instead of counts says which inner cell of the table is meant.
        n = self.table.design.n_inner
        numbered = replace(self.table, inner=CellValues(np.arange(1, n + 1)), contributions=None)
        return np.asarray(true_values(numbered, self.release.design, "inner")) - 1

    @cached_property
    def primary(self) -> Mask:
        """Which published cells are sensitive by themselves."""
        if not hasattr(self.method, "pattern"):
            raise ParameterError("which cells are sensitive is asked of Suppress: give method=.")
        found: Mask = self.method.pattern(self.table).primary
        if len(found) != len(self.release.z):
            raise ParameterError("sensitive cells are told where the table has all its cells.")
        return found

    @cached_property
    def draws(self) -> tuple[Draw, ...]:
        """Some people, and releases without them."""
        made: list[Draw] = []
        for k, out in enumerate(self._sample()):
            report("draws without some records", k / _MOST_DRAWS)
            parts = [(self, out), *((each, self._in(each, out)) for each in self.others)]
            drawn: list[Protected | None] = [None] * len(parts)
            if not made or made[0].release is not None:
                seed = self.seed + 7919 * (k + 1)
                # by key the same records have the same noise in all releases
                apart = getattr(self.method, "source", "") != "keys"
                drawn = [
                    each._draw_without(some, seed + j * apart)
                    for j, (each, some) in enumerate(parts)
                ]
            release, *others = (None,) if None in drawn else drawn
            made.append(Draw(out, release, tuple(each for each in others if each is not None)))
        return tuple(made)

    @cached_property
    def outside(self) -> Whole:
        """How many people of each inner cell are missing in one of the other releases."""
        missing = np.zeros_like(self.y)
        for each in self.others:
            missing = np.maximum(missing, self.y - each.y[self._places(each)])
        return missing

    @property
    def is_redrawn(self) -> bool:
        """Whether the release was drawn again without the targets."""
        return all(draw.release is not None for draw in self.draws)

    def _sample(self) -> Iterator[Whole]:
        """Inner cells with a record, half of them under hidden cells where there are some."""
        rng, y, release = stream(self.seed, "attack: targets"), self.y, self.release
        if self.outside.any():
            y = self.outside
        some = np.flatnonzero(y > 0)
        if not len(some):
            raise ParameterError("the table has no records, so there is nobody to find.")
        each = max(1, int(y.sum()) // _SHARE_OUT)
        n = min(MOST_TARGETS, _MOST_DRAWS * each, len(some))
        chosen = rng.permutation(some)
        if release.hidden.any():
            under = release.design.adjoint(release.hidden.astype(np.float64))[chosen] > 0
            half = n // 2
            chosen = np.concatenate([chosen[under][:half], chosen[~under], chosen[under][half:]])
        chosen = chosen[:n]
        return (chosen[k : k + each] for k in range(0, n, each))

    def _places(self, other: Custodian) -> Whole:
        """The inner cells of this release by their positions in another one."""
        one, two = self.release.design, other.release.design
        sizes = [len(axis) for axis in one.axes]
        codes = dict(zip((axis.name for axis in two.axes), two.inner_codes(), strict=True))
        number = np.ravel_multi_index([codes[axis.name] for axis in one.axes], sizes)
        place = np.full(int(np.prod(sizes)), -1)
        place[number] = np.arange(two.n_inner)
        found: Whole = place[np.ravel_multi_index(list(one.inner_codes()), sizes)]
        return found

    def _in(self, other: Custodian, out: Whole) -> Whole:
        """Where the people of some inner cells are in another release, if all are in both."""
        places = self._places(other)
        is_same = np.array_equal(self.y, other.y[places])
        return places[out] if is_same else out[:0]

    def _draw_without(self, out: Whole, seed: int) -> Protected | None:
        """An experiment without some records; nothing where nobody knows how to make one."""
        if self.maker is None:
            return None
        drawn = self.maker(self._without(out), seed)
        return drawn if self._is_like(drawn) else None

    def _without(self, out: Whole) -> Table:
        """The table without one record of each of some inner cells."""
        table, inner = self.table, self.table.require_inner()
        place = self._rows[out]
        count = inner.count - np.bincount(place, minlength=table.design.n_inner)
        rest = count / np.maximum(inner.count, 1)
        parts: dict[str, Any] = {"count": count}
        for name in ("weight", "weight_squared"):
            if getattr(inner, name) is not None:
                parts[name] = getattr(inner, name) * rest
        key = inner.key
        if key is not None:
            key = np.where(count > 0, key, 0)
            for other in self.others:  # whoever is left of a cell has the keys known from there
                theirs, rows = other.table.require_inner(), other._rows[self._places(other)[out]]
                if theirs.key is not None:
                    same = count[place] == theirs.count[rows]
                    key[place[same]] = theirs.key[rows[same]]
        values = CellValues(key=key, **parts)
        summed = values.apply_linear(table.design.aggregate, table.convention)
        found: Table = replace(table, inner=values, published=summed, sketches=None)
        return found

    def _is_like(self, drawn: Protected) -> bool:
        """Whether a draw was made as the release was: by the same steps and parameters."""
        return _steps(drawn) == _steps(self.release)


def _steps(release: Protected) -> list[Any]:
    return [(s.name, dict(s.parameters)) for s in release.statement.steps if s.name != "data"]


def _method_of(release: Protected) -> Any:
    """The method of a statement, or `None` where its parameters do not tell it."""
    built: Any = None
    for name, parameters in _steps(release):
        kind = name.removeprefix("protect:")
        if kind == name or kind not in registry.names("method"):
            return None
        known = inspect.signature(registry.load("method", kind)).parameters.keys()
        given = {key: value for key, value in parameters.items() if key in known - {"matrix"}}
        try:
            # A method that makes its matrix of ε makes it again, as large as its counts need.
            if "matrix" in parameters and "epsilon" not in given:
                given["matrix"] = law_of(parameters)
            if "method" in known:
                given["method"] = built
            built = registry.make(registry.load("method", kind), given, f"method {kind!r}")
        except DiscreetError:
            return None
    return built


def names_of_cells(release: Protected, positions: Mapping[int, Any], *, inner: bool) -> list[str]:
    """Cells in words, with what was claimed of them."""
    found = []
    for position, value in positions.items():
        name = release.design.inner_cell if inner else release.design.cell
        codes = name(int(position)) if release.design.axes else {"cell": position}
        found.append(f"{cell_text(codes)}: {value}")
    return found
