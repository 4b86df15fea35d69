"""The source of passes for a graphics processor.

A table over axes `0 … d` and a long axis `j` is `y = link(S[c] + V[j, …])`: `S` holds what does not
depend on `j`, one value for each combination `c` of the other axes, and row `j` of `V` all faces
that do, side by side. Two kernels compute every cell and keep sums only: `over_inner` has a thread
for each `c` and sums over `j`; `over_outer` has threads for each `j` and for one outer axis, and
sums over the others in registers. No sum depends on the order in which threads run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from discreet.design.fused.faces import AxisSet

REGISTERS = 96
"""Sums that a thread keeps at most."""
BLOCK = 256
_SHARED = 40_000
_LONGEST_UNROLLED = 512
VALUES = {"positive": "(t > 0.0 ? t : 0.0)", "exponential": "exp(t)"}
PULLS = {
    "positive": "({d} > 0.0 ? {d} : (t > 0.0 ? -{d} : 0.0))",
    "exponential": "fabs({d})",
}
SLOPES = {"positive": "(t > 0.0 ? {d} : 0.0)", "exponential": "exp(t) * {d}"}
POTENTIALS = {"positive": "0.5 * y * y", "exponential": "y"}


@dataclass(frozen=True)
class CudaSource:
    """Writes the kernels of one pass.

    Attributes:
      sizes: Categories of the axes, the long one last.
      faces: Faces that hold the long axis, without it, in the order of the columns of `V`.
      link: `"positive"` or `"exponential"`.
      kind: `"table"`, `"slope"`, `"change"` or `"pull"`.
    """

    sizes: tuple[int, ...]
    faces: tuple[AxisSet, ...]
    link: str
    kind: str

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
        ends = [0]
        for face in self.faces:
            ends.append(ends[-1] + self.width(face))
        return tuple(ends)

    def width(self, face: AxisSet) -> int:
        """Cells of a face for one category of the long axis."""
        return math.prod(self.sizes[p] for p in face)

    @cached_property
    def groups(self) -> list[tuple[int, tuple[int, ...]]]:
        """Faces that `over_outer` sums together, each group with the axis its threads lie along.

        A face lies in the group of its longest axis, or in the first group that has room for all
        its cells in the registers of a thread.
        """
        made: list[tuple[int, list[int]]] = []
        by_size = sorted(range(len(self.faces)), key=lambda f: -self.width(self.faces[f]))
        for f in by_size:
            for axis, members in made:
                if self._registers(axis, [*members, f]) <= REGISTERS:
                    members.append(f)
                    break
            else:
                axis = max(self.faces[f] or range(len(self.outer)), key=lambda p: self.sizes[p])
                made.append((axis, [f]))
        return [(axis, tuple(members)) for axis, members in made]

    @property
    def fits(self) -> bool:
        """Whether every group's sums fit a thread's registers."""
        return bool(self.outer) and all(
            self._registers(axis, list(members)) <= REGISTERS
            and self.beside(axis, members) > 0
            and self._unrolled(axis, members) <= _LONGEST_UNROLLED
            for axis, members in self.groups
        )

    def beside(self, axis: int, members: tuple[int, ...]) -> int:
        """Categories of the long axis that a block of `over_outer` takes; zero if none fits."""
        shared = sum(self.kept(axis, f) for f in members if axis not in self.faces[f])
        room = _SHARED // (8 * shared * self.sizes[axis]) if shared else BLOCK
        return min(BLOCK // self.sizes[axis], room)

    def kept(self, axis: int, f: int) -> int:
        """Sums of a face that one thread of a group keeps."""
        return math.prod(self.sizes[p] for p in self.faces[f] if p != axis)

    def _registers(self, axis: int, members: list[int]) -> int:
        return sum(self.kept(axis, f) for f in members)

    def _unrolled(self, axis: int, members: tuple[int, ...]) -> int:
        used = {p for f in members for p in self.faces[f] if p != axis}
        return math.prod(self.sizes[p] for p in used)

    @property
    def changes(self) -> bool:
        """Whether a direction is read beside the point."""
        return self.kind in ("change", "pull")

    @property
    def text(self) -> str:
        """The kernels."""
        kernels = [self._over_inner()]
        if self.kind != "pull":
            kernels += [self._over_outer(g, axis, m) for g, (axis, m) in enumerate(self.groups)]
        return "\n".join(line for kernel in kernels for line in kernel)

    def _cell(self, t: str, d: str) -> Iterator[str]:
        yield f"double t = {t};"
        if self.kind == "table":
            yield f"double y = {VALUES[self.link]};"
        elif self.kind == "pull":
            yield f"double d = {d}, y = {PULLS[self.link].format(d='d')};"
        else:
            yield f"double y = {SLOPES[self.link].format(d=f'({d})' if self.changes else '1.0')};"

    @property
    def tile(self) -> int:
        """Rows of `V` that a block holds at once."""
        row = 8 * self.columns[-1] * (2 if self.changes else 1)
        return max(1, min(16, _SHARED // max(row, 1)))

    def _over_inner(self) -> Iterator[str]:
        width, tile = self.columns[-1], self.tile
        yield 'extern "C" __global__ void over_inner(const double* S, const double* V,'
        yield "    const double* Sd, const double* Vd, double* out, double* potential, double* largest, int J, int per) {"
        yield f"  __shared__ double v[{tile}][{width}];"
        if self.changes:
            yield f"  __shared__ double w[{tile}][{width}];"
        yield f"  int c = blockIdx.x * blockDim.x + threadIdx.x; bool on = c < {self.n_outer};"
        yield "  int r = c;"
        for p in reversed(range(len(self.outer))):
            yield f"  int i{p} = r % {self.sizes[p]}; r /= {self.sizes[p]};"
        for f, face in enumerate(self.faces):
            yield f"  int a{f} = {self.columns[f]} + {self._place(face)};"
        yield "  double s = on ? S[c] : 0.0, sum = 0.0, pot = 0.0, top = 0.0;"
        if self.changes:
            yield "  double sd = on ? Sd[c] : 0.0;"
        yield "  int j0 = blockIdx.y * per, j1 = min(J, j0 + per);"
        yield f"  for (int j = j0; j < j1; j += {tile}) {{"
        yield f"    int n = min({tile}, j1 - j);"
        yield "    __syncthreads();"
        yield f"    for (int k = threadIdx.x; k < n * {width}; k += blockDim.x) {{"
        yield f"      (&v[0][0])[k] = V[(long)j * {width} + k];"
        if self.changes:
            yield f"      (&w[0][0])[k] = Vd[(long)j * {width} + k];"
        yield "    }"
        yield "    __syncthreads();"
        yield "    if (on) for (int k = 0; k < n; k++) {"
        names = range(len(self.faces))
        t = " + ".join(["s", *(f"v[k][a{f}]" for f in names)])
        d = " + ".join(["sd", *(f"w[k][a{f}]" for f in names)])
        yield from ("      " + line for line in self._cell(t, d))
        yield "      sum += y;"
        if self.kind == "table":
            yield f"      pot += {POTENTIALS[self.link]};"
        yield "      top = fmax(top, y);"
        yield "    }"
        yield "  }"
        yield f"  long at = (long)blockIdx.y * {self.n_outer} + c;"
        yield "  if (on) { out[at] = sum; potential[at] = pot; largest[at] = top; }"
        yield "}"

    def _place(self, face: AxisSet) -> str:
        text = "0"
        for p in face:
            text = f"({text}) * {self.sizes[p]} + i{p}" if text != "0" else f"i{p}"
        return text

    def _over_outer(self, g: int, axis: int, members: tuple[int, ...]) -> Iterator[str]:
        """Threads lie along an axis and a few `j`; the other axes are loops."""
        width, along = self.columns[-1], self.sizes[axis]
        beside = self.beside(axis, members)
        loops = [p for p in range(len(self.outer)) if p != axis]
        shared = [f for f in members if axis not in self.faces[f]]
        entries = sum(self.kept(axis, f) for f in shared)
        yield f'extern "C" __global__ void over_outer_{g}(const double* S, const double* V,'
        yield "    const double* Sd, const double* Vd, double* Out, int J) {"
        if entries:
            yield f"  __shared__ double part[{beside}][{entries}][{along}];"
        yield f"  int i{axis} = threadIdx.x % {along}, b = threadIdx.x / {along};"
        yield f"  int j = blockIdx.x * {beside} + b; bool on = b < {beside} && j < J;"
        yield f"  const double* v = V + (long)j * {width};"
        if self.changes:
            yield f"  const double* w = Vd + (long)j * {width};"
        for f in members:
            yield f"  double x{f}[{self.kept(axis, f)}] = {{0}};"
        yield "  if (on) {"
        yield from self._nest(axis, members, loops)
        yield "  }"
        yield from self._results(axis, members, shared, beside, entries)
        yield "}"

    def _nest(self, axis: int, members: tuple[int, ...], loops: list[int]) -> Iterator[str]:
        """The loops over the other axes; what is complete at a depth joins the sum there."""
        used = {p for f in members for p in self.faces[f]}
        ordered = sorted(loops, key=lambda p: (p in used, self.sizes[p]))
        done = {axis}
        yield self._joined("    ", 0, done, None)
        for depth, p in enumerate(ordered, 1):
            pad = "  " * (depth + 1)
            if p in used:
                yield f"{pad}#pragma unroll"
            yield f"{pad}for (int i{p} = 0; i{p} < {self.sizes[p]}; i{p}++) {{"
            done = done | {p}
            yield self._joined(pad + "  ", depth, done, p)
        pad, last = "  " * (len(ordered) + 2), len(ordered)
        c = self._place(tuple(range(len(self.outer))))
        yield f"{pad}int c = {c};"
        yield from (
            pad + line for line in self._cell(f"__ldg(S + c) + t{last}", f"__ldg(Sd + c) + d{last}")
        )
        for f in members:
            yield f"{pad}x{f}[{self._register(axis, f)}] += y;"
        yield "    " + "}" * last

    def _joined(self, pad: str, depth: int, done: set[int], newest: int | None) -> str:
        """Faces whose axes all have a value now, and had not before."""
        own = [
            f
            for f, face in enumerate(self.faces)
            if set(face) <= done and (newest is None or newest in face)
        ]
        lines = []
        for name, row in (("t", "v"), ("d", "w")):
            if name == "d" and not self.changes:
                continue
            terms = [f"{name}{depth - 1}"] if depth else ["0.0"]
            terms += [f"{row}[{self.columns[f]} + {self._place(self.faces[f])}]" for f in own]
            lines.append(f"{pad}double {name}{depth} = {' + '.join(terms)};")
        return "\n".join(lines)

    def _register(self, axis: int, f: int) -> str:
        return self._place(tuple(p for p in self.faces[f] if p != axis))

    def _results(
        self, axis: int, members: tuple[int, ...], shared: list[int], beside: int, entries: int
    ) -> Iterator[str]:
        """Write what a thread has alone, and add up what all threads have parts of."""
        width, along = self.columns[-1], self.sizes[axis]
        for f in members:
            if f not in shared:
                yield "  if (on) {"
                yield from self._each(axis, f)
                yield (
                    f"    Out[(long)j * {width} + {self.columns[f]} + {self._place(self.faces[f])}]"
                    f" = x{f}[{self._register(axis, f)}];"
                )
                yield "  " + "}" * (1 + len([p for p in self.faces[f] if p != axis]))
        start = 0
        for f in shared:
            n = self.kept(axis, f)
            yield "  #pragma unroll"
            yield f"  for (int e = 0; e < {n}; e++)"
            yield f"    if (b < {beside}) part[b][{start} + e][i{axis}] = x{f}[e];"
            start += n
        if not entries:
            return
        yield "  __syncthreads();"
        yield f"  for (int k = threadIdx.x; k < {beside * entries}; k += blockDim.x) {{"
        yield f"    int e = k % {entries}, q = k / {entries}, jj = blockIdx.x * {beside} + q;"
        yield "    if (jj < J) {"
        yield "      double sum = 0.0;"
        yield f"      for (int i = 0; i < {along}; i++) sum += part[q][e][i];"
        start = 0
        for f in shared:
            n = self.kept(axis, f)
            yield (
                f"      if (e >= {start} && e < {start + n}) Out[(long)jj * {width} + "
                f"{self.columns[f]} + e - {start}] = sum;"
            )
            start += n
        yield "    }"
        yield "  }"

    def _each(self, axis: int, f: int) -> Iterator[str]:
        for p in self.faces[f]:
            if p != axis:
                yield "  #pragma unroll"
                yield f"  for (int i{p} = 0; i{p} < {self.sizes[p]}; i{p}++) {{"
