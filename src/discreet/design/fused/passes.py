r"""Margins of a table that is never stored.

Every smooth fit has the form :math:`y = \varphi(s + qX\nu)` with one value of :math:`\nu` for each
published cell. A pass computes the table cell by cell and keeps its margins only. A starting table
:math:`s` and variances :math:`q` are stored where they are given, and nothing else of that size.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import itertools
import math
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from discreet import __version__
from discreet.arrays import Real
from discreet.design.base import dot
from discreet.design.fused.faces import Faces, Place
from discreet.design.fused.links import CellFormula, Stored, checked_link, processors
from discreet.design.fused.source import PassSource
from discreet.design.structured import StructuredDesign
from discreet.design.support import spread

Piece = tuple[int, int, int, int]


class MarginSums(NamedTuple):
    """What a pass over the table leaves behind."""

    margins: Real  # the published cells
    potential: float = 0.0  # sum of the link's potential over all cells
    largest: float = 0.0  # the largest entry of a projected gradient
    place: int = 0  # where that cell lies, in the order of the pass


LARGEST_ROWS = 128 * 1024  # bytes that the innermost loops go through again: what a core keeps near
SHORTEST_ROW = 64  # categories; shorter rows would spend their time on the loops around them
WORTH_A_THREAD = 500_000  # cells that make a second piece of work worth its thread
MOST_PIECES = 16


class Passes(ABC):
    r"""Margins of :math:`y = \varphi(s + qX\nu)`, and of its change along a direction.

    Args:
      design: A complete design, or one whose structural zeros are masks.
      link: `"positive"`, :math:`y = \max(0, s + qt)`, `"exponential"`, :math:`y = s\,e^t`, or
        `"linear"`, :math:`y = s + qt`.
      start: The table :math:`s`, a value for each inner cell; zeros, or ones for `"exponential"`.
      variance: The table :math:`q`, ones by default; `"exponential"` has none. Where it is zero the
        start must be.
      threads: Threads on the processor at most; by default as many as it has.

    Attributes:
      device: `"cpu"` or `"gpu"`.
      n_passes: Passes made so far.
    """

    device: str

    def __init__(
        self,
        design: StructuredDesign,
        link: str,
        start: Real | None = None,
        variance: Real | None = None,
        threads: int | None = None,
    ) -> None:
        self.design, self.link = design, checked_link(link, start, variance)
        self.threads = processors() if threads is None else threads
        self.faces = self._faces_of(design)
        self.stored = Stored(start is not None, variance is not None)
        self._tables = self._laid(start, variance)
        self._point: tuple[Any, Any] | None = None
        self.n_passes = 0

    @abstractmethod
    def _faces_of(self, design: StructuredDesign) -> Faces:
        """The faces of the design, or an error where it has no passes."""

    @abstractmethod
    def _laid(self, *tables: Real | None) -> tuple[Any, ...]:
        """Tables in the order in which they are read."""

    @abstractmethod
    def _on_faces(self, nu: Any) -> Any:
        """A point as passes read it."""

    @abstractmethod
    def to_device(self, values: Any) -> Any:
        """An array of NumPy, or a projection, where these passes compute."""

    @abstractmethod
    def to_host(self, values: Any) -> Real:
        """Such an array as one of NumPy."""

    @abstractmethod
    def dot(self, a: Any, b: Any) -> float:
        """A scalar product."""

    @abstractmethod
    def _sums(self, kind: str, nu: Any, direction: Any = None) -> MarginSums:
        """One pass; see `CellFormula` for its kinds."""

    def table(self, nu: Any) -> MarginSums:
        r"""Margins of :math:`y = \varphi(s + qX\nu)`, and its potential."""
        return self._run("table", nu)

    def change(self, nu: Any, direction: Any) -> Any:
        r"""Margins of :math:`q \varphi' \circ X\delta`: the Hessian times a direction."""
        return self._run("change", nu, direction).margins

    def slope(self, nu: Any) -> Any:
        r"""Margins of :math:`q \varphi'`: the diagonal of the Hessian."""
        return self._run("slope", nu).margins

    def largest_gradient(self, nu: Any, residuals: Any) -> float:
        r"""The largest entry of the projected gradient, with weighted residuals :math:`u`.

        The gradient of a fit is :math:`-Xu`. Projected, it has no entries that would only move
        cells at a bound of the link beyond it, given the table at :math:`\nu`.
        """
        return self._run("gradient", nu, residuals).largest

    def steepest_cell(self, nu: Any, residuals: Any) -> tuple[float, Place]:
        """The same, and the leaf positions of the cell that has this entry."""
        found = self._run("gradient", nu, residuals)
        return found.largest, self.faces.leaves(found.place)

    def formula(self, kind: str) -> CellFormula:
        """What a pass of some kind computes in each cell."""
        return CellFormula(self.link, kind, self.stored)

    def _at(self, nu: Any) -> Any:
        """A point as passes read it; kept, as many products are asked for at one point."""
        if self._point is None or self._point[0] is not nu:
            self._point = nu, self._on_faces(nu)
        return self._point[1]

    def _run(self, kind: str, nu: Any, direction: Any = None) -> MarginSums:
        self.n_passes += 1
        return self._sums(kind, nu, direction)


class FusedPass(Passes):
    """Passes on the processor.

    Promise: the same numbers for any number of threads, since the table is cut into pieces by its
    shape alone and their sums are added in order.
    Cost: one to two nanoseconds of a core for each inner cell; memory for the published cells, and
    for the starting table and the variances where they are given.
    """

    device = "cpu"

    def _faces_of(self, design: StructuredDesign) -> Faces:
        return Faces.of(design)

    def _laid(self, *tables: Real | None) -> tuple[Real, ...]:
        return in_walking_order(self.design, self.faces.order, tables)

    def to_device(self, values: Any) -> Any:
        """The values as they are."""
        return values

    def to_host(self, values: Real) -> Real:
        """The values as they are."""
        return values

    def dot(self, a: Real, b: Real) -> float:
        """A scalar product on one core."""
        return dot(a, b)

    def _sums(self, kind: str, nu: Real, direction: Real | None = None) -> MarginSums:
        at = self._at(nu)
        by = at[:0] if direction is None else self.faces.spread(direction)
        if kind == "gradient":  # no gradient moves structural zeros
            by = self.faces.with_zeros(by)
        run = compile_pass(self._source(kind))
        done = self._map(lambda piece: self._piece(run, at, by, piece))
        total = next(done)
        for more in done:
            margins = total.margins
            margins += more.margins
            potential = total.potential + more.potential
            top = max(total, more, key=lambda sums: sums.largest)
            total = MarginSums(margins, potential, top.largest, top.place)
        return total._replace(margins=self.faces.to_published(total.margins))

    def _on_faces(self, nu: Real) -> Real:
        at: Real = self.faces.with_zeros(self.faces.spread(nu))
        if self.link.joins == "*":
            with np.errstate(over="ignore"):  # a step too far, which its potential tells
                at = np.exp(at)
        return at

    def _map(self, work: Callable[[Piece], MarginSums]) -> Iterator[MarginSums]:
        """The pieces of a pass, in order, on as many threads as there are."""
        if len(self._pieces) == 1 or self.threads == 1:
            yield from map(work, self._pieces)
            return
        with ThreadPoolExecutor(self.threads) as pool:
            yield from pool.map(work, self._pieces)

    def _piece(self, run: Run, at: Real, by: Real, piece: Piece) -> MarginSums:
        """MarginSums of all faces over one part of the table."""
        sums, potential, largest, place = np.zeros(self.faces.n), 0.0, 0.0, 0
        rows = [np.empty((len(self.faces.sizes), self._row)) for _ in range(3)]
        # Unsigned sizes: positions are never negative, and a loop need not look for that.
        sizes = np.array(self.faces.sizes, dtype=np.uint64)
        known = (at, by, *self._tables, sums, self.faces.offsets.astype(np.uint64), sizes)
        first, last, *beside = piece
        for start in range(first, last, self._row):
            ends = np.array([start, min(start + self._row, last), *beside], dtype=np.uint64)
            added, top, there = run(*known, *ends, *rows, np.empty(self._row))
            potential += added
            if top > largest:
                largest, place = top, int(there)
        return MarginSums(sums, potential, largest, place)

    @cached_property
    def _row(self) -> int:
        """Length of the rows: what is read and written inside the last outer loop stays near."""
        last = len(self.faces.sizes) - 1
        near = 0  # rows of faces: one, or one for each turn of the last outer loop
        for face in (face for face in self.faces.sets if last in face):
            outer = face[:-1] if face[-2:] == (last - 1, last) else ()
            near += math.prod(self.faces.sizes[p] for p in outer)
        longest = LARGEST_ROWS // (16 * max(near, 1))
        return min(max(longest, SHORTEST_ROW), self.faces.sizes[-1])

    @cached_property
    def _pieces(self) -> list[Piece]:
        """Parts of the two innermost axes, by the shape of the table alone; rows stay long."""
        wanted = min(MOST_PIECES, math.prod(self.faces.sizes) // WORTH_A_THREAD)
        beside, length = (1, *self.faces.sizes)[-2:]
        along = max(min(wanted, length // SHORTEST_ROW), 1)
        across = max(min(wanted // along, beside), 1)
        parts = itertools.product(_parts(beside, across), _parts(length, along))
        return [(*part, *other) for other, part in parts]

    def _source(self, kind: str) -> PassSource:
        n_axes, n_summed = len(self.faces.sizes), len(self.faces.summed_sets)
        return PassSource(n_axes, self.faces.sets, n_summed, self.formula(kind))


def in_walking_order(
    design: StructuredDesign, order: tuple[int, ...], tables: tuple[Real | None, ...]
) -> tuple[Real, ...]:
    """Tables of inner cells in the order in which a pass walks the crossing, zero where none is.

    One that is given twice is laid out once; one that is not given is empty.
    """
    laid: dict[int, Real] = {}
    for table in tables:
        if table is not None and id(table) not in laid:
            full = design.crossing.design
            values = np.asarray(table, dtype=np.float64)
            if design.crossing.inner is None:
                values = spread(values, design.flat_cells(), full.n_inner)
            ordered = values.reshape(full.shape).transpose(order)
            laid[id(table)] = np.ascontiguousarray(ordered).ravel()
    return tuple(np.zeros(0) if table is None else laid[id(table)] for table in tables)


def _parts(length: int, n: int) -> list[tuple[int, int]]:
    """An axis in `n` parts."""
    cuts = [length * i // n for i in range(n + 1)]
    return list(itertools.pairwise(cuts))


Run = Callable[..., tuple[float, float, int]]
_HEAD = '''"""Written by discreet {version}; safe to delete."""
import numba


@numba.njit(cache=True, nogil=True, boundscheck=False, fastmath={fast})
'''
_FAST = '{"reassoc", "contract", "nsz", "nnan"}'
"""MarginSums may be taken in another order, the same one every time; zeros have no sign."""


def folder() -> Path:
    """Where compiled passes are kept: `$DISCREET_CACHE`, or the user's cache folder."""
    home = os.environ.get("DISCREET_CACHE") or Path(
        os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "discreet"
    )
    return Path(home) / "passes"


@functools.cache
def compile_pass(source: PassSource) -> Run:
    """The pass as machine code; its text lies in `folder()` for whoever wants to read it."""
    text = _HEAD.format(version=__version__, fast=_FAST) + source.text + "\n"
    name = "pass_" + hashlib.sha256(text.encode()).hexdigest()[:16]
    path = folder() / f"{name}.py"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            # Written beside and moved into place: other processes may read it at any time.
            part = path.with_suffix(f".{os.getpid()}.part")
            part.write_text(text, encoding="utf-8", newline="\n")
            part.replace(path)
    except OSError:  # no folder that can be written: compile without keeping
        return _compile_here(text)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        return _compile_here(text)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # compiled code on disk asks for its module by name
    spec.loader.exec_module(module)
    run: Run = module.run
    return run


def _compile_here(text: str) -> Run:
    space: dict[str, Any] = {}
    exec(text.replace("cache=True, ", ""), space)
    run: Run = space["run"]
    return run
