"""The source of passes for a graphics processor.

A table over axes `0 … d` and a long axis `j` is `y = link(S[c] + V[j, …])`: `S` holds what does not
depend on `j`, one value for each combination `c` of the other axes, and row `j` of `V` all faces
that do, side by side. Two kernels compute every cell and keep sums only: `over_inner` has a thread
for each `c` and sums over `j`; `over_outer` has threads for each `j` and for one outer axis, and
sums over the others in registers. No sum depends on the order in which threads run.

A starting table `T` and a table of variances `Q`, where there are any, lie in memory with the long
axis outermost: threads that run side by side then read side by side in both kernels.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from discreet.design.fused.links import CellFormula
from discreet.design.fused.source import AxisSet

BLOCK = 256
"""Threads of a block."""
_REGISTERS = 96  # sums that a thread keeps at most
_SHARED = 40_000  # bytes of shared memory that a block takes at most
_LONGEST_UNROLLED = 512  # cells that a nest of unrolled loops may have
_MOST_ROWS = 16  # rows of V that a block of `over_inner` holds at once
_ARGUMENTS = ", ".join(f"const double* {name}" for name in ("S", "V", "Sd", "Vd", "T", "Q"))


@dataclass(frozen=True)
class CudaSource:
    """Writes the kernels of one pass."""

    sizes: tuple[int, ...]  # categories of the axes, the long one last
    # Faces that hold the long axis, without it, in the order of the columns of `V`.
    faces: tuple[AxisSet, ...]
    n_summed: int  # how many of them are summed, the first ones
    formula: CellFormula  # what is computed in each cell

    @property
    def outer(self) -> tuple[int, ...]:
        """Categories of the axes beside the long one."""
        return self.sizes[:-1]

    @property
    def n_outer(self) -> int:
        """Combinations of the axes beside the long one."""
        return math.prod(self.outer)

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """Where each face starts in a row of `V`, and the length of a row at the end."""
        return tuple(itertools.accumulate(map(self._width, self.faces), initial=0))

    @cached_property
    def groups(self) -> list[Group]:
        """Faces that `over_outer` sums together.

        A face lies in the first group that has room for its sums, else in one of its own with
        threads along its longest axis.
        """
        made: list[Group] = []
        for f in sorted(range(self.n_summed), key=lambda f: -self._width(self.faces[f])):
            for g, group in enumerate(made):
                wider = Group(self, group.axis, (*group.members, f))
                if wider.registers <= _REGISTERS:
                    made[g] = wider
                    break
            else:
                axis = max(self.faces[f] or range(len(self.outer)), key=lambda p: self.sizes[p])
                made.append(Group(self, axis, (f,)))
        return made

    @property
    def fits(self) -> bool:
        """Whether every group's sums fit a thread's registers, and its rows shared memory."""
        return bool(self.outer) and self._row_bytes <= _SHARED and all(g.fits for g in self.groups)

    @property
    def text(self) -> str:
        """The kernels."""
        kernels = [self._over_inner()]
        if self.formula.is_summed:
            kernels += [group.kernel(g) for g, group in enumerate(self.groups)]
        return "\n".join(line for kernel in kernels for line in kernel)

    def cell(self, at: str, by: str, j: str) -> Iterator[str]:
        """One cell, `y`, from the sums over its faces; `j` is its place on the long axis."""
        stored = self.formula.stored
        yield f"double at = {f'exp({at})' if self.formula.link.joins == '*' else at};"
        if any(stored):
            yield f"long place = (long)({j}) * {self.n_outer} + c;"
        if stored.start:
            yield "double start = T[place];"
        if stored.variance:
            yield "double variance = Q[place];"
        if any(stored):
            yield f"at = {in_c(self.formula.argument)};"
        if self.formula.reads_direction:
            yield f"double by = {by};"
        yield f"double y = {in_c(self.formula.value)};"

    def place(self, face: AxisSet) -> str:
        """Position of a face's cell."""
        text = ""
        for p in face:
            text = f"({text}) * {self.sizes[p]} + i{p}" if text else f"i{p}"
        return text or "0"

    def _width(self, face: AxisSet) -> int:
        return math.prod(self.sizes[p] for p in face)

    @property
    def _row_bytes(self) -> int:
        """A row of `V`, twice where a direction is read; as for a change, so that kinds agree."""
        return 16 * max(self.columns[-1], 1)

    @property
    def _tile(self) -> int:
        return max(1, min(_MOST_ROWS, _SHARED // self._row_bytes))

    def _over_inner(self) -> Iterator[str]:
        """A thread for each combination of the other axes; rows of `V` go through shared memory.

        A gradient has no sums: in their place stands where on the long axis it is largest.
        """
        yield f'extern "C" __global__ void over_inner({_ARGUMENTS},'
        yield "    double* out, double* potential, double* largest, int J, int per) {"
        yield from self._thread_of_inner()
        yield f"  for (int j = j0; j < j1; j += {self._tile}) {{"
        yield f"    int n = min({self._tile}, j1 - j);"
        width = self.columns[-1]
        # All threads load, also those beyond the table: they must meet at both barriers.
        yield "    __syncthreads();"
        yield f"    for (int k = threadIdx.x; k < n * {width}; k += blockDim.x) {{"
        yield f"      (&v[0][0])[k] = V[(long)j * {width} + k];"
        if self.formula.reads_direction:
            yield f"      (&w[0][0])[k] = Vd[(long)j * {width} + k];"
        yield "    }"
        yield "    __syncthreads();"
        yield "    if (on) for (int k = 0; k < n; k++) {"
        at = " + ".join(["s", *(f"v[k][a{f}]" for f in range(len(self.faces)))])
        by = " + ".join(["sd", *(f"w[k][a{f}]" for f in range(len(self.faces)))])
        yield from ("      " + line for line in self.cell(at, by, "j + k"))
        if self.formula.is_summed:
            yield "      sum += y;"
        else:
            yield "      if (y > top) { top = y; sum = j + k; }"
        if self.formula.kind == "table":
            yield f"      pot += {in_c(self.formula.potential)};"
        yield "    }"
        yield "  }"
        yield f"  long cell = (long)blockIdx.y * {self.n_outer} + c;"
        yield "  if (on) { out[cell] = sum; potential[cell] = pot; largest[cell] = top; }"
        yield "}"

    def _thread_of_inner(self) -> Iterator[str]:
        """What a thread of `over_inner` knows before it begins."""
        width = max(self.columns[-1], 1)
        yield f"  __shared__ double v[{self._tile}][{width}];"
        if self.formula.reads_direction:
            yield f"  __shared__ double w[{self._tile}][{width}];"
        yield f"  int c = blockIdx.x * blockDim.x + threadIdx.x; bool on = c < {self.n_outer};"
        yield "  int r = c;"
        for p in reversed(range(len(self.outer))):
            yield f"  int i{p} = r % {self.sizes[p]}; r /= {self.sizes[p]};"
        for f, face in enumerate(self.faces):
            yield f"  int a{f} = {self.columns[f]} + {self.place(face)};"
        yield "  double s = on ? S[c] : 0.0, sum = 0.0, pot = 0.0, top = 0.0;"
        if self.formula.reads_direction:
            yield "  double sd = on ? Sd[c] : 0.0;"
        yield "  int j0 = blockIdx.y * per, j1 = min(J, j0 + per);"


@dataclass(frozen=True)
class Group:
    """One kernel `over_outer`: threads lie along an axis and a few `j`, the other axes are loops.

    Attributes:
      source: The pass.
      axis: The axis that threads lie along.
      members: Faces that are summed.
    """

    source: CudaSource
    axis: int
    members: tuple[int, ...]

    @property
    def registers(self) -> int:
        """Sums that one thread keeps."""
        return sum(self._n_sums(f) for f in self.members)

    @property
    def fits(self) -> bool:
        """Whether the kernel's sums fit registers and shared memory."""
        used = {p for f in self.members for p in self.source.faces[f] if p != self.axis}
        unrolled = math.prod(self.source.sizes[p] for p in used)
        return self.registers <= _REGISTERS and self.beside > 0 and unrolled <= _LONGEST_UNROLLED

    @cached_property
    def beside(self) -> int:
        """Categories of the long axis that a block takes; zero if none fits."""
        room = _SHARED // (8 * self._entries * self.along) if self._entries else BLOCK
        return min(BLOCK // self.along, room)

    @property
    def along(self) -> int:
        """Categories of the axis that threads lie along."""
        return self.source.sizes[self.axis]

    @property
    def _shared_faces(self) -> list[int]:
        """Faces without the threads' axis: all threads have parts of their sums."""
        return [f for f in self.members if self.axis not in self.source.faces[f]]

    @property
    def _entries(self) -> int:
        return sum(self._n_sums(f) for f in self._shared_faces)

    def _n_sums(self, f: int) -> int:
        return math.prod(self.source.sizes[p] for p in self._loop_axes(f))

    def _loop_axes(self, f: int) -> AxisSet:
        return tuple(p for p in self.source.faces[f] if p != self.axis)

    def kernel(self, g: int) -> Iterator[str]:
        """The kernel `over_outer_g`."""
        width = self.source.columns[-1]
        yield f'extern "C" __global__ void over_outer_{g}({_ARGUMENTS}, double* Out, int J) {{'
        if self._entries:
            yield f"  __shared__ double part[{self.beside}][{self._entries}][{self.along}];"
        yield f"  int i{self.axis} = threadIdx.x % {self.along}, b = threadIdx.x / {self.along};"
        yield f"  int j = blockIdx.x * {self.beside} + b; bool on = b < {self.beside} && j < J;"
        yield f"  const double* v = V + (long)j * {width};"
        if self.source.formula.reads_direction:
            yield f"  const double* w = Vd + (long)j * {width};"
        for f in self.members:
            yield f"  double x{f}[{self._n_sums(f)}] = {{0}};"
        yield "  if (on) {"
        yield from self._nest()
        yield "  }"
        for f in self.members:
            if f not in self._shared_faces:
                yield from self._write(f)
        if self._entries:
            yield from self._write_shared()
        yield "}"

    def _nest(self) -> Iterator[str]:
        """The loops over the other axes; what is complete at a depth joins the sum there."""
        used = {p for f in self.members for p in self.source.faces[f]}
        loops = [p for p in range(len(self.source.outer)) if p != self.axis]
        done = {self.axis}
        yield from self._join_faces(0, done, None)
        # Axes of no member first: their loops stay loops. Those of members are unrolled inside,
        # since an array lies in registers only where its indices are constants.
        sizes = self.source.sizes
        for depth, p in enumerate(sorted(loops, key=lambda p: (p in used, sizes[p])), 1):
            if p in used:
                yield "#pragma unroll"
            yield f"for (int i{p} = 0; i{p} < {sizes[p]}; i{p}++) {{"
            done = done | {p}
            yield from self._join_faces(depth, done, p)
        last = len(loops)
        yield f"int c = {self.source.place(tuple(range(len(self.source.outer))))};"
        yield from self.source.cell(f"__ldg(S + c) + t{last}", f"__ldg(Sd + c) + d{last}", "j")
        for f in self.members:
            yield f"x{f}[{self.source.place(self._loop_axes(f))}] += y;"
        yield "}" * last

    def _join_faces(self, depth: int, done: set[int], newest: int | None) -> Iterator[str]:
        """Faces whose axes all have a value now, and had not before."""
        own = [
            f
            for f, face in enumerate(self.source.faces)
            if set(face) <= done and (newest is None or newest in face)
        ]
        for name, row in (("t", "v"), ("d", "w"))[: 1 + self.source.formula.reads_direction]:
            terms = [f"{name}{depth - 1}"] if depth else ["0.0"]
            terms += [f"{row}[{self._column(f)}]" for f in own]
            yield f"double {name}{depth} = {' + '.join(terms)};"

    def _column(self, f: int) -> str:
        return f"{self.source.columns[f]} + {self.source.place(self.source.faces[f])}"

    def _write(self, f: int) -> Iterator[str]:
        """Sums that a thread has alone."""
        yield "  if (on) {"
        for p in self._loop_axes(f):
            yield "#pragma unroll"
            yield f"for (int i{p} = 0; i{p} < {self.source.sizes[p]}; i{p}++) {{"
        row = f"(long)j * {self.source.columns[-1]}"
        register = self.source.place(self._loop_axes(f))
        yield f"Out[{row} + {self._column(f)}] = x{f}[{register}];"
        yield "}" * len(self._loop_axes(f)) + "}"

    def _write_shared(self) -> Iterator[str]:
        """Sums that all threads have parts of, added up in the order of the threads."""
        start = 0
        for f in self._shared_faces:
            yield "#pragma unroll"
            yield f"  for (int e = 0; e < {self._n_sums(f)}; e++)"
            yield f"    if (b < {self.beside}) part[b][{start} + e][i{self.axis}] = x{f}[e];"
            start += self._n_sums(f)
        yield "  __syncthreads();"
        yield f"  for (int k = threadIdx.x; k < {self.beside * start}; k += blockDim.x) {{"
        yield f"    int e = k % {start}, q = k / {start}, jj = blockIdx.x * {self.beside} + q;"
        yield "    if (jj >= J) continue;"
        yield "    double sum = 0.0;"
        yield f"    for (int i = 0; i < {self.along}; i++) sum += part[q][e][i];"
        start = 0
        for f in self._shared_faces:
            end = start + self._n_sums(f)
            column = f"(long)jj * {self.source.columns[-1]} + {self.source.columns[f]}"
            yield f"    if (e >= {start} && e < {end}) Out[{column} + e - {start}] = sum;"
            start = end
        yield "  }"


_OPERATORS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Mult: "*", ast.Div: "/"}


def in_c(formula: str) -> str:
    """A formula of a link, written in Python, as an expression of C."""
    return _in_c(ast.parse(formula, mode="eval").body)


def _in_c(node: ast.expr) -> str:
    if isinstance(node, ast.IfExp):
        return f"({_in_c(node.test)} ? {_in_c(node.body)} : {_in_c(node.orelse)})"
    if isinstance(node, ast.Compare):
        return f"{_in_c(node.left)} > {_in_c(node.comparators[0])}"
    if isinstance(node, ast.BinOp):
        return f"{_in_c(node.left)} {_OPERATORS[type(node.op)]} {_in_c(node.right)}"
    if isinstance(node, ast.UnaryOp):
        return f"-{_in_c(node.operand)}"
    return ast.unparse(node)
