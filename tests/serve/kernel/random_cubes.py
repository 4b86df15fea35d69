"""Random cubes, with names of every length and signs of many kinds, for both sides to work on."""

import numpy as np

from discreet.release import Cube, CubeAxis, CubeEntry
from discreet.release.cube import ABSENT
from discreet.serve import View
from discreet.serve.static.rules import _statement
from discreet.tables import CellStatus, Statement

_WORDS = ["men", "women", "Øst", "the northern part of", "0–14", "W", "%", "a < b & c", 'said "so"']
_WORDS += [
    "=1+1",
    "-3",
    "@x",
    "Upper",
    "Lower",
    "region",
    "1,000",
    "\U0001f600",
    "of all persons who",
]
_OTHERS = [CellStatus.suppressed, CellStatus.structural_zero, CellStatus.below_threshold, ABSENT]
REVIVED = """
const { Cube, CubeAxis, CubeEntry } = await client("cube.js");
const { Statement } = await client("statement.js");
const revived = (one) => new Cube(
  one.axes.map((axis) => new CubeAxis(axis.name, axis.label,
    axis.entries.map((e) => new CubeEntry(...e)))),
  Float64Array.from(one.values), Int8Array.from(one.status),
  { unit: one.unit, is_integer: one.is_integer, statement: Statement.of(one.statement) });
"""
"""JavaScript that makes a cube of what `told` says."""


class RandomCubes:
    """Cubes drawn from a seed."""

    def __init__(self, seed):
        self.draws = np.random.default_rng(seed)

    def one_of(self, *choices):
        """One of these."""
        return choices[self.draws.integers(len(choices))]

    def name(self):
        """A name of one to six words."""
        return " ".join(self.draws.choice(_WORDS, self.draws.integers(1, 7)))

    def axis(self, name, most=9):
        """A variable with a total or without, in one level or two."""
        entries = [] if self.draws.random() < 0.2 else [CubeEntry("ALL", "Total", 0, is_sum=True)]
        depth, n = 1, int(self.draws.integers(1, most))
        start = self.name() if self.draws.random() < 0.4 else ""
        for k in range(n):
            label = f"{start} {self.name()}".strip() if self.draws.random() < 0.9 else f"{name}{k}"
            entries.append(CubeEntry(f"{name}{k}", label, depth, is_sum=False))
            depth = self.one_of(1, 1, 2) if depth == 1 else self.one_of(1, 2)
        following = [e.depth for e in entries[1:]] + [0]
        pairs = zip(entries, following, strict=True)
        made = [CubeEntry(e.code, e.label, e.depth, is_sum=below > e.depth) for e, below in pairs]
        return CubeAxis(name, self.name(), tuple(made))

    def cube(self, n_axes, most=9):
        """Counts, sums or shares, some of them hidden, absent, impossible or no number."""
        axes = tuple(self.axis(f"v{k}", most) for k in range(n_axes))
        shape = [len(axis) for axis in axes]
        size = self.one_of(1, 20, 3_000, 5_000_000)
        values = self.draws.integers(-3 if self.draws.random() < 0.2 else 0, size + 1, shape)
        kind, status = self.draws.integers(5), np.zeros(shape, dtype=np.int8)
        if kind == 1:
            values = values / 8
        elif kind == 2:
            values = np.round(values * self.draws.random(shape), 1)
        elif kind == 3:
            values = np.where(
                self.draws.random(shape) < 0.1, np.nan, 100 * self.draws.random(shape)
            )
        if self.draws.random() < 0.6:
            found = self.draws.choice(_OTHERS, shape)
            status = np.where(self.draws.random(shape) < self.one_of(0.1, 0.7), found, 0).astype(
                np.int8
            )
        return Cube(axes, values, status, self.one_of("count", "weight", "turnover"), Statement())

    def view(self, cube, n_rows):
        """What is folded, without totals, or sorted."""
        folded = {
            axis.name: tuple(e.code for e in axis.entries if e.is_sum and self.draws.random() < 0.2)
            for axis in cube.axes
        }
        ends = [axis.codes[-1] for axis in cube.axes[n_rows:]]
        sort = self.one_of("", "", "-") + ("|".join(ends) or "value")
        sort = sort if self.draws.random() < 0.3 else ""
        return View(totals=bool(self.draws.random() < 0.8), folded=folded, sort=sort)


def told(cube):
    """A cube as plain data."""
    return {
        "axes": [
            {
                "name": axis.name,
                "label": axis.label,
                "entries": [[e.code, e.label, e.depth, e.is_sum] for e in axis.entries],
            }
            for axis in cube.axes
        ],
        "values": cube.values.reshape(-1).tolist(),
        "status": cube.status.reshape(-1).tolist(),
        "unit": cube.unit,
        "is_integer": cube.values.dtype.kind != "f",
        "statement": _statement(cube.statement),
    }
