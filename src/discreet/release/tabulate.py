"""Further public tables, summed from released inner cells."""

from __future__ import annotations

import numpy as np

from discreet.design.formula import Margins, parse, shown
from discreet.design.product import ProductDesign
from discreet.design.release import Release
from discreet.design.sparse import SparseDesign
from discreet.design.statement import Step
from discreet.design.structured import StructuredDesign
from discreet.errors import DesignError


def tabulate(release: Release, margins: Margins) -> Release:
    """A public table of other margins of the released inner cells; see `Release.tabulate`.

    Promise: tables of one release agree with each other, and a further table tells nothing that
    the released inner cells do not.
    """
    if release.y is None:
        raise DesignError(
            "inner cells are not part of this release, so it gives no further tables. Protect "
            "with a method that releases them (Safe, SmallCountRounding with force_inner=True), or "
            "fit the release first."
        )
    design = with_margins(release.design, margins)
    terms = [shown(term) for term in parse(margins)]
    step = Step("tabulate", {"margins": terms})
    return release.with_parts(
        design=design,
        z=design.aggregate(np.asarray(release.y)),
        precision=None,
        statement=release.statement.then(step, changes_values=False),
    )


def with_margins(design: object, margins: Margins) -> StructuredDesign:
    """The same inner cells with other margins published."""
    if not isinstance(design, StructuredDesign):
        raise DesignError("a design made from a matrix has no variables to tabulate by.")
    if isinstance(design, SparseDesign):
        return SparseDesign(design.axes, margins, design.inner_codes())
    return ProductDesign(design.axes, margins)
