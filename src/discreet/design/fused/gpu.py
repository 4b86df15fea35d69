"""The same passes on a graphics processor, through CuPy."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from discreet.arrays import Real
from discreet.design.axis import Level
from discreet.design.fused.cuda_source import BLOCK, CudaSource
from discreet.design.fused.faces import Faces
from discreet.design.fused.links import (
    POSITIVE,
    CellFormula,
    check_device,
    cupy,
    has_gpu,
    require_gpu,
)
from discreet.design.fused.null_space import NullSpace
from discreet.design.fused.passes import FusedPass, MarginSums, Passes, in_walking_order
from discreet.design.structured import StructuredDesign
from discreet.errors import DesignError

_PER = 320  # categories of the long axis that one block of `over_inner` sums


class GpuFaces(Faces):
    """Faces of vectors that lie on a graphics processor; sums over groups are matrix products."""

    @classmethod
    def of(cls, design: StructuredDesign) -> GpuFaces:
        """The faces of a design whose structural zeros are masks."""
        faces = super().of(design)
        return replace(faces, embedding=faces.embedding.on_gpu(cupy()))

    def _to_device(self, values: Any) -> Any:
        return cupy().asarray(values)

    @cached_property
    def _groups(self) -> dict[Level, Any]:
        """Categories × groups of each level: which category lies in which group."""
        used = {level for block in self.design.blocks for level in block.levels if level}
        return {
            level: cupy().asarray((level.group[:, None] == np.arange(len(level))).astype(float))
            for level in used
            if not level.is_identity
        }

    def _spread_groups(self, wide: Any, level: Level, a: int) -> Any:
        return self._multiply(wide, self._groups[level].T, a)

    def _sum_groups(self, values: Any, level: Level, a: int) -> Any:
        return self._multiply(values, self._groups[level], a)

    def _multiply(self, values: Any, matrix: Any, a: int) -> Any:
        cp = cupy()
        return cp.moveaxis(cp.tensordot(values, matrix, axes=(a, 0)), -1, a)


class GpuPass(Passes):
    """The same passes on a graphics processor; vectors are arrays of CuPy.

    The result does not depend on how threads are scheduled.
    """

    device = "gpu"

    def _faces_of(self, design: StructuredDesign) -> Faces:
        require_gpu()
        if not self.suits(design):
            raise DesignError(
                "this design has no kernel for graphics processors: a margin with its longest "
                "variable has too many cells. Use device='cpu' or device='auto'."
            )
        return GpuFaces.of(design)

    def _laid(self, *tables: Real | None) -> tuple[Any, ...]:
        *others, longest = self.faces.order
        laid = in_walking_order(self.design, (longest, *others), tables)
        on_card = {id(table): cupy().asarray(table) for table in laid}
        return tuple(on_card[id(table)] for table in laid)

    @staticmethod
    def suits(design: StructuredDesign) -> bool:
        """Whether kernels can be written for a design."""
        return cuda_source(Faces.of(design), CellFormula(POSITIVE, "table")).fits

    def to_device(self, values: Any) -> Any:
        """An array of NumPy, or a projection, on the graphics processor."""
        if isinstance(values, NullSpace):
            return values.on_gpu()
        return cupy().asarray(values)

    def to_host(self, values: Any) -> Any:
        """An array on the graphics processor as one of NumPy."""
        return cupy().asnumpy(values)

    def dot(self, a: Any, b: Any) -> float:
        """A scalar product."""
        return float(a @ b)

    def _sums(self, kind: str, nu: Any, direction: Any = None) -> MarginSums:
        cp = cupy()
        source, module = self._source(kind), _module(self._source(kind).text)
        s, v = self._at(nu)
        sd, vd = (s, v) if direction is None else self._operands(direction, kind == "gradient")
        read = (s, v, sd, vd, *self._tables)
        length, pieces = source.sizes[-1], -(-source.sizes[-1] // _PER)
        sums, potential, largest = cp.empty((3, pieces, source.n_outer))
        rows = cp.empty((length, source.columns[-1]))
        module.get_function("over_inner")(
            (-(-source.n_outer // BLOCK), pieces),
            (BLOCK,),
            (*read, sums, potential, largest, np.int32(length), np.int32(_PER)),
        )
        if kind == "gradient":
            return self._steepest(sums.ravel(), largest.ravel())
        for g, group in enumerate(source.groups):
            module.get_function(f"over_outer_{g}")(
                (-(-length // group.beside),),
                (group.beside * group.along,),
                (*read, rows, np.int32(length)),
            )
        margins = self._margins(sums.sum(axis=0), rows)
        return MarginSums(margins, float(potential.sum()) if kind == "table" else 0.0)

    def _steepest(self, where: Any, largest: Any) -> MarginSums:
        """The largest gradient, from that of each thread's cells and its place on the long axis."""
        thread = int(largest.argmax())
        outer, length = thread % math.prod(self.faces.sizes[:-1]), self.faces.sizes[-1]
        place = outer * length + int(where[thread])
        return MarginSums(where[:0], largest=float(largest[thread]), place=place)

    def _on_faces(self, nu: Any) -> tuple[Any, Any]:
        return self._operands(nu, True)

    def _source(self, kind: str) -> CudaSource:
        return cuda_source(self.faces, self.formula(kind))

    def _operands(self, values: Any, closed: bool) -> tuple[Any, Any]:
        """`S` and `V` from published values, closed by structural zeros where they matter."""
        cp = cupy()
        faces, last = self.faces.spread(values), len(self.faces.sizes) - 1
        if closed:
            faces = self.faces.with_zeros(faces)
        s, columns = cp.zeros(self.faces.sizes[:-1]), []
        for f, face in enumerate(self.faces.sets):
            view = self.faces.view(faces, f)
            if last in face:
                columns.append(view.reshape(-1, self.faces.sizes[-1]).T)
            else:
                s += view.reshape([n if p in face else 1 for p, n in enumerate(s.shape)])
        if not columns:
            columns.append(cp.zeros((self.faces.sizes[-1], 0)))
        return s, cp.ascontiguousarray(cp.concatenate(columns, axis=1))

    def _margins(self, sums: Any, rows: Any) -> Any:
        """Published values from the sums over the long axis and the rows of the others."""
        cp = cupy()
        table, last = sums.reshape(self.faces.sizes[:-1]), len(self.faces.sizes) - 1
        faces, start = cp.empty(self.faces.n), 0
        for f, face in enumerate(self.faces.summed_sets):
            view = self.faces.view(faces, f)
            if last in face:
                width = view.size // self.faces.sizes[-1]
                view[...] = rows[:, start : start + width].T.reshape(view.shape)
                start += width
            else:
                gone = tuple(p for p in range(last) if p not in face)
                view[...] = table.sum(axis=gone)
        return self.faces.to_published(faces)


def cuda_source(faces: Faces, formula: CellFormula) -> CudaSource:
    """The kernels of one pass: for the faces that hold the longest axis, without it."""
    last = len(faces.sizes) - 1
    long = tuple(face[:-1] for face in faces.sets if last in face)
    n_summed = sum(last in face for face in faces.summed_sets)
    return CudaSource(faces.sizes, long, n_summed, formula)


@functools.cache
def _module(text: str) -> Any:
    return cupy().RawModule(code=text, options=("-std=c++17",))


WORTH_A_GPU = 20_000_000  # inner cells that make up for compiling kernels


def passes_over(
    design: StructuredDesign,
    link: str,
    *,
    start: Real | None,
    variance: Real | None,
    threads: int | None,
    device: str,
) -> Passes:
    """Passes on the device that is asked for; see `StructuredDesign.fused`."""
    check_device(device)
    if not design.has_passes:
        raise DesignError("the structural zeros of this design are no product of small masks.")
    is_large = design.n_inner >= WORTH_A_GPU
    if device == "gpu" or (device == "auto" and is_large and has_gpu() and GpuPass.suits(design)):
        return GpuPass(design, link, start, variance)
    return FusedPass(design, link, start, variance, threads)
