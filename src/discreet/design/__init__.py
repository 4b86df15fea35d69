"""The home of `z = X'y`: hierarchies, axes, formulas, designs and passes that store no table.

Every kind of design is a file of its own. What a design of one kind gives of another
(`Design.product`, `design.restricted`, `design.fused`) is tied together here, where all kinds are
known.
"""

from typing import TYPE_CHECKING, Any

from discreet.design.axis import Axis
from discreet.design.base import MAKERS
from discreet.design.sparse import MatrixDesign, SparseDesign, complete_design
from discreet.lazy import lazy_names

if TYPE_CHECKING:
    from discreet.design.fused.passes import Passes
    from discreet.design.structured import StructuredDesign

__all__ = ["Axis"]


def _passes(design: "StructuredDesign", link: str, **options: Any) -> "Passes":
    from discreet.design.fused.gpu import passes_over  # start-up time: compiled loops need Numba

    return passes_over(design, link, **options)


MAKERS.update(
    complete=complete_design,
    chosen=SparseDesign,
    within=SparseDesign.within,
    matrix=MatrixDesign,
    passes=_passes,
)

__getattr__ = lazy_names(
    __name__,
    {
        "codes": "MISSING",
        "incidence": "Incidence",
        "inner": "ModelTable",
        "product": "ProductDesign",
    },
)
