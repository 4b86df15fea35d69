"""Further public tables, summed from released inner cells."""

from __future__ import annotations

import numpy as np

from discreet.design.formula import Margins, parse, shown
from discreet.design.release import Release
from discreet.design.statement import Step
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
    design = release.design.structured("variables to tabulate by").with_margins(margins)
    terms = [shown(term) for term in parse(margins)]
    step = Step("tabulate", {"margins": terms})
    return release.with_parts(
        design=design,
        z=design.aggregate(np.asarray(release.y)),
        precision=None,
        statement=release.statement.then(step, changes_values=False),
    )
