"""The source of a pass, written for the faces of a design.

A pass walks the table once, outer axes first, and stores nothing of its size. Whatever does not
change along an axis is gathered outside its loop, and sums are handed out on the way back. Along
the innermost axis everything is a row::

    for i0 …                      values of faces over axis 0 join the row `f1`
        for i1 …                  values of faces over axes 0 and 1 join the row `f2`
            t = link(row)         one row of the table
            out += t              sums of faces over axis 1 take the row; `a1` collects it
        out += a1                 sums of faces over axis 0 take what was collected

A starting table and a table of variances, where there are any, are read row by row in the same
order; they are all of the table's size that a pass looks at. A pass may be one piece of the table:
the part `k0 … k1` of the innermost axis and `j0 … j1` of the one before it. The text depends on the
faces alone, not on their sizes, so that few texts serve many designs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from discreet.design.fused.links import CellFormula

AxisSet = tuple[int, ...]


@dataclass(frozen=True)
class PassSource:
    """Writes one pass."""

    n_axes: int  # axes of the table, the last one innermost
    faces: tuple[AxisSet, ...]  # the faces that are read
    n_summed: int  # how many of them are summed, the first ones
    formula: CellFormula  # what is computed in each cell

    @property
    def text(self) -> str:
        """The source, a function `run`."""
        tables, rows = "starts, variances", "f, g, a, t"
        head = f"def run(nu, by, {tables}, out, off, size, k0, k1, j0, j1, {rows}):"
        return "\n".join([head, *self._body()])

    @property
    def levels(self) -> int:
        """Loops outside the innermost axis."""
        return self.n_axes - 1

    def _body(self) -> Iterator[str]:
        for p in range(self.n_axes):
            yield f"    n{p} = size[{p}]"
        for number in range(len(self.faces)):
            yield f"    o{number} = off[{number}]"
        yield "    m = k1 - k0"
        yield "    potential = 0.0"
        yield "    largest = 0.0"
        yield "    place = k0"
        yield from self._level(0, 1)
        yield "    return potential, largest, place"

    def _level(self, level: int, indent: int) -> Iterator[str]:
        """The code at one depth; level 0 lies outside all loops."""
        pad = "    " * indent
        yield from (pad + line for line in self._gather(level))
        if level == self.levels:
            yield from (pad + line for line in self._row())
        else:
            if self._collects(level):
                yield pad + f"for k in range(m): a[{level}, k] = 0.0"
            ends = "j0, j1" if level == self.levels - 1 else f"n{level}"
            yield pad + f"for i{level} in range({ends}):"
            yield from self._level(level + 1, indent + 1)
            if self._collects(level):  # faces complete here take what was collected below
                yield from (pad + line for line in self._give(level, f"a[{level}, k]"))

    def _gather(self, level: int) -> Iterator[str]:
        """What joins the sum at this level: scalars, and rows unless the row itself comes next."""
        for stream, joins, row, scalar in self._streams():
            own = self._complete(level, inner=False, stream=stream)
            terms = [f"{stream}[{self._index(f)}]" for f in own]
            before = [f"{scalar}{level - 1}"] if level else ["1.0" if joins == "*" else "0.0"]
            yield f"{scalar}{level} = " + f" {joins} ".join([*before, *terms])
            if stream == "nu" and level and own:  # a structural zero: no cell below it counts
                yield f"if {scalar}{level} <= {self.formula.link.nothing}: continue"
            if level < self.levels and self._complete(level, inner=True, stream=stream):
                rows = self._row_terms(level, stream, row)
                yield f"for k in range(m): {row}[{level}, k] = " + f" {joins} ".join(rows)

    def _row(self) -> Iterator[str]:
        """The innermost loop: a row of the table, and where it goes."""
        level = self.levels
        yield f"row = {self._position(range(self.n_axes))}"
        yield "for k in range(m):"
        for stream, joins, row, scalar in self._streams():
            terms = [f"{scalar}{level}", *self._row_terms(level, stream, row)]
            yield f"    {stream}_k = " + f" {joins} ".join(terms)
        if any(self.formula.stored):
            yield from ("    " + line for line in self._read())
            yield "    nu_k = " + self.formula.argument.replace("at", "nu_k")
        yield "    y = " + self.formula.value.replace("by", "by_k").replace("at", "nu_k")
        yield "    t[k] = y"
        if not self.formula.is_summed:
            yield from self._find_largest()
            return
        if self.formula.kind == "table":  # in a loop of its own: the one above has no running sum
            yield "for k in range(m):"
            yield from ("    " + line for line in self._read())
            yield "    y = t[k]"
            yield f"    potential += {self.formula.potential}"
        yield from self._give(level, "t[k]")

    def _read(self) -> Iterator[str]:
        """What is stored of a cell."""
        if self.formula.stored.start:
            yield "start = starts[row + k]"
        if self.formula.stored.variance:
            yield "variance = variances[row + k]"

    def _find_largest(self) -> Iterator[str]:
        """The largest of a row, and where it lies when it is the largest so far."""
        # The place is looked for only then: the loop over every cell keeps a maximum and no branch.
        yield "top = largest"
        yield "for k in range(m): top = t[k] if t[k] > top else top"
        yield "if top > largest:"
        yield "    largest = top"
        yield "    for k in range(m):"
        yield "        if t[k] == top: place = row + k"

    def _give(self, level: int, source: str) -> Iterator[str]:
        """Hand a row to the sums of faces that are complete here, and to the collector above."""
        own = self._complete(level, inner=True, stream="out")
        rows = [f"out[{self._index(f)} + k]" for f in own]
        # The nearest loop outside that collects; loops between hand nothing out themselves.
        above = next((j for j in range(level - 1, -1, -1) if self._collects(j)), None)
        if above is not None:
            rows.append(f"a[{above}, k]")
        scalars = self._complete(level, inner=False, stream="out")
        if scalars:
            yield "s = 0.0"
        if rows or scalars:
            yield "for k in range(m):"
            yield f"    y = {source}"
            if scalars:
                yield "    s += y"
            yield from (f"    {row} += y" for row in rows)
        yield from (f"out[{self._index(f)}] += s" for f in scalars)

    def _streams(self) -> Iterator[tuple[str, str, str, str]]:
        yield "nu", self.formula.link.joins, "f", "c"
        if self.formula.reads_direction:
            yield "by", "+", "g", "e"

    def _row_terms(self, level: int, stream: str, row: str) -> list[str]:
        """What makes up the row at a level: the row so far, and the faces complete here."""
        complete = [self._complete(j, inner=True, stream=stream) for j in range(level + 1)]
        own = [f"{stream}[{self._index(f)} + k]" for f in complete[level]]
        above = next((j for j in range(level - 1, -1, -1) if complete[j]), None)
        return own if above is None else [f"{row}[{above}, k]", *own]

    def _collects(self, level: int) -> bool:
        """Whether faces complete at this level wait for what lies below it."""
        return any(self._complete(level, inner=inner, stream="out") for inner in (True, False))

    def _complete(self, level: int, *, inner: bool, stream: str) -> list[int]:
        """Faces whose outer axes all run at this level and not before it."""
        if stream == "out" and not self.formula.is_summed:
            return []
        faces = self.faces[: self.n_summed] if stream == "out" else self.faces
        return [
            f
            for f, face in enumerate(faces)
            if (self.levels in face) == inner
            and max((p + 1 for p in face if p < self.levels), default=0) == level
        ]

    def _index(self, f: int) -> str:
        """Position of a face's cell, or of the first cell of its row."""
        text = self._position(self.faces[f])
        return f"o{f} + {text}" if text else f"o{f}"

    def _position(self, axes: Iterable[int]) -> str:
        """Position in an array over some axes; of the row where the last one is among them."""
        text = ""
        for p in axes:
            code = "k0" if p == self.levels else f"i{p}"
            text = f"({text}) * n{p} + {code}" if text else code
        return text
